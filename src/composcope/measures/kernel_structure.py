"""The structure of a kernel over the latent grid: products of factors, their number, orders of interaction, blocks."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from composcope.factors import Factor
from composcope.measures.grid import grid_index, grid_sizes

Gram = Float[Tensor, "points points"]
Term = tuple[str, ...]


@dataclass(frozen=True)
class Schmidt:
    """A kernel as sum_r s_r A_r(x, x') B_r(y, y') with orthonormal A and B: the values s, in decreasing order."""

    values: Float[Tensor, "terms"]

    def rank(self, tolerance: float = 1e-6) -> int:
        """Number of values above `tolerance` times the first."""
        return int((self.values > tolerance * self.values[0]).sum())

    def rank_to(self, epsilon: float) -> int:
        """Least number of terms that leave at most `epsilon` of the kernel's Frobenius norm."""
        tail = self.values.square().flip(0).cumsum(0).flip(0).sqrt()
        return int((tail > epsilon * tail[0]).sum())

    @property
    def effective_rank(self) -> float:
        """exp of the entropy of p_r = s_r^2 / sum s^2: 1 for a product kernel."""
        share = self.values.square() / self.values.square().sum()
        return torch.exp(torch.special.entr(share).sum()).item()


def schmidt(gram: Gram, factors: Sequence[Factor]) -> Schmidt:
    """Singular values of the kernel rearranged from K[(x y), (x' y')] to K[(x x'), (y y')]   (two factors).

    A symmetric kernel keeps symmetric and antisymmetric pairs (x, x') apart, so each half is decomposed separately, at
    a quarter of the cost.

    >>> schmidt(torch.eye(6), [Factor("x", (0, 1)), Factor("y", (0, 1, 2))]).rank()
    1
    """
    if len(factors) != 2:
        raise ValueError(f"the Schmidt decomposition is defined for two factors; there are {len(factors)}")
    x, y = grid_sizes(factors)
    check_gram(gram, factors)
    gram = gram.double()
    table = rearrange(gram, "(x y) (u v) -> x u y v", x=x, y=y, u=x, v=y)
    if not torch.allclose(gram, gram.T, rtol=0, atol=1e-12 * gram.abs().max().item()):
        return Schmidt(torch.linalg.svdvals(table.reshape(x * x, y * y)))
    values = [
        torch.linalg.svdvals(_pairs(_pairs(table, (0, 1), sign), (1, 2), sign))
        for sign in (1, -1)
        if min(x, y) > 1 or sign > 0
    ]
    return Schmidt(torch.cat(values).sort(descending=True).values)


def _pairs(table: Tensor, axes: tuple[int, int], sign: int) -> Tensor:
    """Replace two axes by one over unordered pairs: (t_ij + sign t_ji) / sqrt 2, and t_ii if symmetric."""
    table = table.movedim(axes, (0, 1))
    size = len(table)
    i, j = torch.triu_indices(size, size, offset=1)
    mixed = (table[i, j] + sign * table[j, i]) / 2**0.5
    if sign > 0:
        every = torch.arange(size)
        mixed = torch.cat([table[every, every], mixed])
    return mixed.movedim(0, axes[0])


def check_gram(gram: Tensor, factors: Sequence[Factor]) -> None:
    """ValueError unless the kernel is over the factors' whole grid."""
    points = torch.tensor(grid_sizes(factors)).prod().item()
    if gram.shape != (points, points):
        raise ValueError(f"the grid has {points} points; the kernel has shape {tuple(gram.shape)}")


@dataclass(frozen=True)
class KernelTerms:
    """Size theta of each term of a kernel, by the factors that it varies with, and the norm of what fits no term."""

    theta: dict[Term, float]
    mixed: float

    def pf_coeff(self, subset: int | Iterable[Term] = 1, weight: Callable[[float], float] = abs) -> float | None:
        """PF_Coeff(S) = sum_{l in S} w(theta_l) / sum_l w(theta_l)   (paper eq. 33); None for a constant kernel.

        - `subset`: all terms of at most this many factors, or a list of terms such as `[("x",), ("x", "y")]`.
        - `weight`: w; the size itself by default, `lambda theta: theta**2` for energies.
        """
        chosen = [t for t in self.theta if len(t) <= subset] if isinstance(subset, int) else [tuple(t) for t in subset]
        strange = set(chosen) - set(self.theta)
        if strange:
            raise ValueError(f"no terms {sorted(strange)}; there are {sorted(self.theta)}")
        total = sum(weight(theta) for theta in self.theta.values())
        return sum(weight(self.theta[term]) for term in set(chosen)) / total if total > 0 else None

    def cumulative(self) -> tuple[float, ...] | None:
        """PF_Coeff of the terms of at most 1, 2, ... factors: it rises to 1. None for a constant kernel."""
        orders = range(1, max(map(len, self.theta)) + 1)
        shares = [self.pf_coeff(order) for order in orders]
        return None if None in shares else tuple(share for share in shares if share is not None)


def kernel_terms(gram: Gram, factors: Sequence[Factor]) -> KernelTerms:
    """theta_S = |(Q on the factors in S, P on the others) K (the same)|, for every non-empty set S of factors.

    P replaces a factor by its mean, Q = 1 - P keeps the rest; both act on the rows' and on the columns' factor. A sum
    of single-factor kernels has only single terms, a product of centred kernels only the highest. What has Q on one
    side and P on the other (none in a stationary kernel) fits no term: its norm is `mixed`.

    >>> same_x = torch.kron(torch.eye(2), torch.ones(2, 2))
    >>> kernel_terms(same_x, [Factor("x", (0, 1)), Factor("y", (0, 1))]).theta
    {('x',): 2.0, ('y',): 0.0, ('x', 'y'): 0.0}
    """
    check_gram(gram, factors)
    sizes, count = grid_sizes(factors), len(factors)
    table = gram.double().reshape(*sizes, *sizes)
    names = [factor.name for factor in factors]
    theta: dict[Term, float] = {}
    constant = table.mean().item() * len(gram)
    for order in range(1, count + 1):
        for chosen in combinations(range(count), order):
            theta[tuple(names[i] for i in chosen)] = _component_norm(table, chosen, sizes)
    kept = constant**2 + sum(value**2 for value in theta.values())
    total = table.square().sum().item()
    mixed = (total - kept) ** 0.5 if total - kept > 1e-12 * total else 0.0
    return KernelTerms(theta, mixed)


def _component_norm(table: Tensor, chosen: tuple[int, ...], sizes: tuple[int, ...]) -> float:
    """Norm of the component with Q on the chosen factors and P on the rest, without writing the constant axes out."""
    count = len(sizes)
    averaged = [i for i in range(count) if i not in chosen]
    if averaged:
        table = table.mean([*averaged, *(i + count for i in averaged)], keepdim=True)
    for i in chosen:
        table = table - table.mean(i, keepdim=True)
        table = table - table.mean(i + count, keepdim=True)
    spread = torch.tensor([sizes[i] for i in averaged]).prod().item() if averaged else 1
    return table.norm().item() * spread


def block_score(
    gram: Float[Tensor, "n n"], latents: Float[Tensor, "n factors"], factors: Sequence[Factor]
) -> float | None:
    """1 - Var(K | which values are shared) / Var(K), over pairs of different points.

    Points that share a factor's value form a block. The score is the share of the kernel's variance that is explained
    by which factors two points share, and nothing else: 1 for the binary factorized kernel and any other that is
    constant on blocks, near 0 for one unrelated to blocks, in between for one that decays with distance. None if
    the kernel is constant off its diagonal. Give the latents of one factor only for that factor's blocks.
    """
    index = grid_index(latents, factors)
    pattern = torch.zeros(gram.shape, dtype=torch.long)
    for axis in range(len(factors)):
        same = (index[:, None, axis] == index[None, :, axis]) & (index[:, None, axis] >= 0)
        pattern += same.long() << axis
    pairs = ~torch.eye(len(gram), dtype=torch.bool)
    entries, groups = gram.double()[pairs], pattern[pairs]
    entries = entries - entries.mean()
    total = entries.square().sum()
    if total <= 1e-20 * max(1.0, gram.abs().max().item()) ** 2 * len(entries):
        return None
    counts = torch.bincount(groups, minlength=2 ** len(factors)).clamp(min=1)
    sums = torch.zeros(2 ** len(factors), dtype=torch.float64).index_add(0, groups, entries)
    return ((sums.square() / counts).sum() / total).clamp(0, 1).item()


Modes = list[Float[Tensor, "_ terms"]]
# Coordinate descent ends when a sweep lowers the squared error by less than this share of the kernel's energy.
MIN_GAIN = 1e-7
# Besides the start from the last solution, for each number of products.
RANDOM_STARTS = 2


@dataclass(frozen=True)
class KernelRank:
    """The share of the kernel's norm that 1, 2, ... products leave, and the least number that leaves `epsilon`.

    - `rank`: None if even the largest number that was tried leaves more. An upper bound: the search may end in a local
      minimum.
    """

    errors: tuple[float, ...]
    epsilon: float
    rank: int | None


def cp_rank(
    gram: Gram,
    factors: Sequence[Factor],
    epsilon: float = 0.05,
    most: int = 8,
    steps: int = 300,
) -> KernelRank:
    """Least R with |K - sum_{r <= R} prod_i k_ir(t_i, t_i')| <= epsilon |K|, every k_ir >= 0 and symmetric (eq. 31).

    - `gram`: symmetric, over the whole grid of two or more factors. `most`: the largest R that is tried.

    Each search for R > 1 starts from the last solution with a new random term, and from two random ones.
    Without the constraint a fit's terms cancel each other, and the search is unreliable. With it one factor's part of
    one term, all others given, is its least-squares value without the negative entries, so every step lowers the error.
    A product kernel has rank 1, the binary factorized kernel as many as there are factors.

    >>> same = torch.kron(torch.kron(torch.eye(2), torch.ones(2, 2)), torch.eye(2))
    >>> cp_rank(same, [Factor(name, (0, 1)) for name in "xyz"]).rank
    1
    """
    check_gram(gram, factors)
    table = symmetric_table(gram, factors)
    norm = gram.double().norm().item()
    if not norm > 0:
        return KernelRank((), epsilon, 0)
    lost = norm**2 - table.square().sum().item()  # antisymmetric in two factors, which symmetric parts cannot be
    rng = torch.Generator().manual_seed(0)
    errors: list[float] = []
    modes: Modes = [torch.zeros(size, 0, dtype=torch.float64) for size in table.shape]
    for terms in range(1, most + 1):
        begun = [torch.cat([mode, new], 1) for mode, new in zip(modes, _random(table, 1, rng), strict=True)]
        tries = [_descended(table, begun, steps)]
        if terms > 1:
            tries += [_descended(table, _random(table, terms, rng), steps) for _ in range(RANDOM_STARTS)]
        modes, error = min(tries, key=lambda found: found[1])
        # A search that ends higher than the one before stands for that one with a term of zeros.
        errors.append(min([math.sqrt(max(0.0, error + lost)) / norm, *errors[-1:]]))
        if errors[-1] <= epsilon:
            return KernelRank(tuple(errors), epsilon, terms)
    return KernelRank(tuple(errors), epsilon, None)


def symmetric_table(gram: Gram, factors: Sequence[Factor]) -> Float[Tensor, "..."]:
    """K[(x y ..), (x' y' ..)] as an array with one axis per factor, over unordered pairs of its values: (xx', yy', ..).

    A pair of different values stands for two entries and is their mean times sqrt 2, so that norms are kept.
    """
    sizes, count = grid_sizes(factors), len(factors)
    table = gram.double().reshape(*sizes, *sizes)
    table = table.permute(*(axis for i in range(count) for axis in (i, i + count)))
    for i, size in enumerate(sizes):
        table = table.movedim((i, i + 1), (0, 1))
        a, b = torch.triu_indices(size, size)
        weight = torch.where(a == b, 0.5, math.sqrt(0.5)).double().reshape(-1, *[1] * (table.ndim - 2))
        table = (weight * (table[a, b] + table[b, a])).movedim(0, i)
    return table


def _random(table: Tensor, terms: int, rng: torch.Generator) -> Modes:
    """Random parts of about the size of the table's."""
    scale = (table.norm().item() / math.sqrt(table.numel())) ** (1 / table.ndim)
    return [scale * 2 * torch.rand(size, terms, generator=rng, dtype=torch.float64) for size in table.shape]


def _descended(table: Tensor, start: Modes, steps: int) -> tuple[Modes, float]:
    """Coordinate descent, one factor's part of one term at a time; the modes, and |table - fit|^2."""
    modes, energy = [mode.clone() for mode in start], table.square().sum().item()
    unfolded = [table.movedim(axis, 0).flatten(1).contiguous() for axis in range(table.ndim)]
    error = math.inf
    for _ in range(steps):
        for axis, mode in enumerate(modes):
            others = [other for index, other in enumerate(modes) if index != axis]
            overlap = torch.stack([other.T @ other for other in others]).prod(0)
            target = unfolded[axis] @ _products(others)
            for term in range(mode.shape[1]):
                if overlap[term, term] > 0:
                    step = (target[:, term] - mode @ overlap[:, term]) / overlap[term, term]
                    mode[:, term] = (mode[:, term] + step).clamp(min=0)
        fit = (mode * target).sum().item()
        latest = energy - 2 * fit + ((mode.T @ mode) * overlap).sum().item()
        gain, error = error - latest, latest
        if gain < MIN_GAIN * energy:
            break
    return modes, max(0.0, error)


def _products(modes: Modes) -> Float[Tensor, "combinations terms"]:
    """Of each term, the products of its parts over all combinations of pairs; the first mode varies slowest."""
    product = modes[0]
    for mode in modes[1:]:
        product = (product[:, None] * mode[None]).flatten(0, 1)
    return product
