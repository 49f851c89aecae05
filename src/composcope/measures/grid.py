"""Positions on the latent grid: which axis is which factor, and how many steps lie between two combinations."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from composcope.factors import Factor


def grid_sizes(factors: Sequence[Factor]) -> tuple[int, ...]:
    """Number of values of each factor, the grid's shape."""
    return tuple(factor.size for factor in factors)


def on_grid(values: Shaped[Tensor, "points ..."], factors: Sequence[Factor]) -> Tensor:
    """Rows over the grid -> an array with one leading axis per factor, the first factor slowest.

    >>> on_grid(torch.arange(6), [Factor("x", range(2)), Factor("y", range(3))]).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    sizes = grid_sizes(factors)
    if len(values) != math.prod(sizes):
        raise ValueError(
            f"the grid of {', '.join(map(repr, factors))} has {math.prod(sizes)} points; got {len(values)}"
        )
    return values.reshape(*sizes, *values.shape[1:])


def grid_index(latents: Float[Tensor, "n factors"], factors: Sequence[Factor]) -> Int[Tensor, "n factors"]:
    """Each latent's index among its factor's values; -1 where it is none of them, or absent."""
    if latents.shape[1] != len(factors):
        raise ValueError(f"{len(factors)} factors are named; latents have shape {tuple(latents.shape)}")
    indices = [factor.index(latents[:, column]) for column, factor in enumerate(factors)]
    return torch.stack(indices, 1) if indices else torch.empty(len(latents), 0, dtype=torch.long)


def grid_order(latents: Float[Tensor, "n factors"], factors: Sequence[Factor]) -> Int[Tensor, "n"]:
    """Rows of the latents in the order of the grid, the first factor slowest: `latents[grid_order(...)]` is sorted.

    >>> xy = [Factor("x", range(2)), Factor("y", range(2))]
    >>> grid_order(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), xy).tolist()
    [2, 1, 0]
    """
    index = grid_index(latents, factors)
    order = torch.arange(len(latents))
    for column in reversed(range(len(factors))):
        order = order[index[order, column].argsort(stable=True)]
    return order


def wraps(factor: Factor) -> bool:
    """Whether a circular factor's values go all the way round: from last to first is at most 1.5 of the widest step.

    1.5 rather than 1 tolerates uneven values, but not a gap as wide as a missing value.
    """
    if factor.period is None or factor.size < 3:
        return False
    widest = max(later - earlier for earlier, later in zip(factor.values, factor.values[1:], strict=False))
    return factor.values[0] + factor.period - factor.values[-1] <= 1.5 * widest


def grid_steps(
    a: Int[Tensor, "n factors"], b: Int[Tensor, "m factors"], factors: Sequence[Factor]
) -> Float[Tensor, "n m"]:
    """sum_i |a_i - b_i| in steps of the grid: how many one-value moves lead from a to b.

    - `a`, `b`: positions on the grid, from `grid_index`.

    A circular factor that goes all the way round takes the short way; any two categories are one step apart. An
    index of -1 (absent, or off the grid) is infinitely far.
    """
    steps = torch.zeros(len(a), len(b))
    for column, factor in enumerate(factors):
        difference = (a[:, None, column] - b[None, :, column]).abs()
        if factor.kind == "categorical":
            difference = difference.clamp(max=1)
        elif wraps(factor):
            difference = torch.minimum(difference, factor.size - difference)
        steps += difference
    off = (a < 0).any(1)[:, None] | (b < 0).any(1)[None, :]
    return steps.masked_fill(off, torch.inf)
