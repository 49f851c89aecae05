"""How many products of single-factor functions an image, or a distribution, consists of."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor

from composcope.factors import Factor
from composcope.measures.error import Images
from composcope.measures.grid import on_grid

# Of the search for a mixture: expectation maximisation may end in a local minimum, so several starts are made; it has
# converged long before the last step.
RESTARTS, MAX_STEPS = 4, 500


@dataclass(frozen=True)
class Complexity:
    """Number of product terms of every pixel: exactly (to rounding), and leaving at most `epsilon` of its norm.

    - `mean`, `maximum`: over the pixels, of the exact numbers; `mean_to_epsilon`, `maximum_to_epsilon`: of the others.
    """

    exact: Int[Tensor, "pixels"]
    to_epsilon: Int[Tensor, "pixels"]
    epsilon: float
    mean: float = field(init=False)
    maximum: int = field(init=False)
    mean_to_epsilon: float = field(init=False)
    maximum_to_epsilon: int = field(init=False)

    def __post_init__(self) -> None:
        for suffix, counts in (("", self.exact), ("_to_epsilon", self.to_epsilon)):
            object.__setattr__(self, f"mean{suffix}", counts.double().mean().item())
            object.__setattr__(self, f"maximum{suffix}", int(counts.max()))


def pixel_complexity(foreground: Images, factors: Sequence[Factor], epsilon: float = 0.05) -> Complexity:
    """Least R with f(x, y) = sum_{r <= R} phi_r(x) psi_r(y), for each pixel by itself: the rank of its x-by-y table.

    - `foreground`: images over the whole grid of two factors.

    A pixel that is empty (to 1e-6 of the strongest) in every image has rank 0. A bright bump has rank 1 everywhere, the
    sum of two stripes rank 2.
    """
    if len(factors) != 2:
        raise ValueError(f"pixel complexity is defined for two factors; there are {len(factors)}")
    tables = rearrange(on_grid(foreground.flatten(1), factors), "x y pixels -> pixels x y")
    values = torch.linalg.svdvals(tables.double())
    rounding = torch.finfo(foreground.dtype).eps * max(tables.shape[1:])
    tail = values.square().flip(1).cumsum(1).flip(1).sqrt()
    filled = tail[:, :1] > 1e-6 * tail[:, 0].max()
    exact = ((values > rounding * values[:, :1]) & filled).sum(1)
    return Complexity(exact, ((tail > epsilon * tail[:, :1]) & filled).sum(1), epsilon)


def independent_blocks(
    values: Float[Tensor, "points ..."], factors: Sequence[Factor], epsilon: float = 1e-6
) -> tuple[tuple[str, ...], ...]:
    """The finest split of the factors into blocks B with f = prod_B phi_B(factors in B): partial factorization.

    - `values`: one function over the grid, or several that must split alike, such as the pixels of the foreground.
    - `epsilon`: the share of the norm (of all functions together) that the split may miss.

    >>> x, y = torch.meshgrid(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]), indexing="ij")
    >>> two = [Factor("x", (1, 2)), Factor("y", (1, 3))]
    >>> independent_blocks((x * y).flatten(), two), independent_blocks((x + y).flatten(), two)
    ((('x',), ('y',)), (('x', 'y'),))

    A set of factors splits off if the table of its values against the rest's has rank 1; two factors share a block if
    no such set separates them.
    """
    table = on_grid(values.double().flatten(1) if values.ndim > 1 else values.double()[:, None], factors)
    energy = table.square().sum()
    axes = range(len(factors))
    apart: set[tuple[int, int]] = set()
    for size in range(1, len(factors) // 2 + 1):
        for chosen in combinations(axes, size):
            others = [axis for axis in axes if axis not in chosen]
            rows = math.prod(table.shape[axis] for axis in chosen)
            matrices = table.permute(-1, *chosen, *others).reshape(table.shape[-1], rows, -1)
            beyond_rank_one = torch.linalg.svdvals(matrices)[:, 1:].square().sum()
            if beyond_rank_one <= epsilon**2 * energy:
                apart |= {(min(a, b), max(a, b)) for a in chosen for b in others}
    blocks: list[list[int]] = []
    for axis in axes:
        home = next((block for block in blocks if (block[0], axis) not in apart), None)
        blocks.append([axis]) if home is None else home.append(axis)
    return tuple(tuple(factors[axis].name for axis in block) for block in blocks)


@dataclass(frozen=True)
class DistributionComplexity:
    """Divergence reached with 1, 2, ... products, and the least number that reaches `epsilon`, None if none does."""

    components: int | None
    divergences: tuple[float, ...]
    epsilon: float


def distribution_complexity(
    joint: Float[Tensor, "..."], generator: torch.Generator, epsilon: float = 0.01, most: int = 8
) -> DistributionComplexity:
    """Least R with KL(p | sum_{r <= R} w_r prod_i q_ir(t_i)) <= epsilon nats, over nonnegative w and q.

    - `joint`: a table of probabilities, one axis per factor; it is normalised.
    - `generator`: starts of the search, four for each R; `most`: the largest R tried.

    The nonnegative factorization is found by expectation maximisation, which lowers the divergence at every step but
    may end in a local minimum, so the number is an upper bound. Use it on the distribution of factor values in a
    training set: independent factors have complexity 1, a square hole needs 2 products.

    >>> rng = torch.Generator().manual_seed(0)
    >>> independent = torch.outer(torch.tensor([0.2, 0.8]), torch.tensor([0.5, 0.3, 0.2]))
    >>> distribution_complexity(independent, rng).components
    1
    >>> with_hole = torch.ones(4, 4)
    >>> with_hole[1:3, 1:3] = 0
    >>> distribution_complexity(with_hole, rng).components
    2
    """
    if (joint < 0).any() or not joint.sum() > 0:
        raise ValueError("a distribution must have no negative entries and a positive sum")
    joint = joint.double() / joint.double().sum()
    divergences: list[float] = []
    for components in range(1, most + 1):
        tries = RESTARTS if components > 1 else 1
        divergences.append(min(_mixture_divergence(joint, components, generator) for _ in range(tries)))
        if divergences[-1] <= epsilon:
            return DistributionComplexity(components, tuple(divergences), epsilon)
    return DistributionComplexity(None, tuple(divergences), epsilon)


def _mixture_divergence(joint: Tensor, components: int, generator: torch.Generator) -> float:
    """KL from the joint to the best mixture that expectation maximisation reaches from one random start."""
    axes = range(joint.ndim)
    weight = torch.full((components,), 1 / components, dtype=joint.dtype)
    profiles = [torch.rand(components, size, generator=generator, dtype=joint.dtype) + 0.1 for size in joint.shape]
    profiles = [profile / profile.sum(1, keepdim=True) for profile in profiles]
    divergence = math.inf
    for _ in range(MAX_STEPS):
        terms = weight.reshape(-1, *[1] * joint.ndim)
        for axis, profile in enumerate(profiles):
            terms = terms * profile.reshape(components, *[-1 if other == axis else 1 for other in axes])
        mixture = terms.sum(0)
        positive = joint > 0
        latest = (joint[positive] * (joint[positive] / mixture[positive]).log()).sum().item()
        if divergence - latest < 1e-9:
            return max(latest, 0.0)
        divergence = latest
        counts = terms * torch.where(positive, joint / mixture.clamp(min=1e-300), 0.0)
        weight = counts.flatten(1).sum(1)
        profiles = [counts.sum([o + 1 for o in axes if o != axis]) if joint.ndim > 1 else counts for axis in axes]
        profiles = [profile / weight.clamp(min=1e-300)[:, None] for profile in profiles]
    return max(divergence, 0.0)
