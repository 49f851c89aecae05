"""How many products of single-factor kernels a kernel over any number of factors is: its CP rank."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.factors import Factor
from composcope.measures.grid import grid_sizes
from composcope.measures.kernel_structure import Gram, check_gram

Modes = list[Float[Tensor, "_ terms"]]
# Coordinate descent ends when a sweep lowers the squared error by less than this share of the kernel's energy.
LEAST_GAIN = 1e-7


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
    restarts: int = 3,
    steps: int = 300,
    seed: int = 0,
) -> KernelRank:
    """Least R with |K - sum_{r <= R} prod_i k_ir(t_i, t_i')| <= epsilon |K|, every k_ir >= 0 and symmetric (eq. 31).

    - `gram`: symmetric, over the whole grid of two or more factors. `most`: the largest R that is tried.
    - `restarts`: starts of the search for each R > 1: the last solution with a new random term, and random ones.

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
    rng = torch.Generator().manual_seed(seed)
    errors: list[float] = []
    modes: Modes = [torch.zeros(size, 0, dtype=torch.float64) for size in table.shape]
    for terms in range(1, most + 1):
        begun = [torch.cat([mode, new], 1) for mode, new in zip(modes, _random(table, 1, rng), strict=True)]
        tries = [_descended(table, begun, steps)]
        if terms > 1:
            tries += [_descended(table, _random(table, terms, rng), steps) for _ in range(restarts - 1)]
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
        if gain < LEAST_GAIN * energy:
            break
    return modes, max(0.0, error)


def _products(modes: Modes) -> Float[Tensor, "combinations terms"]:
    """Of each term, the products of its parts over all combinations of pairs; the first mode varies slowest."""
    product = modes[0]
    for mode in modes[1:]:
        product = (product[:, None] * mode[None]).flatten(0, 1)
    return product
