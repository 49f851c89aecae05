"""Combinations that are held out at random."""

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field

from composcope.components import register
from composcope.factors import Factor, Latents, absent, combination_numbers
from composcope.holdouts.regions import Factors, Holdout, Mask

MASK64 = 2**64 - 1


@register("cells")
class Cells(Holdout):
    """A share of all combinations, chosen at random, such that every value, or pair of values, is still seen.

    Each combination of grid values is a cell, and latents belong to the cell of the nearest values. The choice depends
    on the factors' numbers of values and on the seed only, and is the same on every machine.

    - `share`: of all combinations, rounded to a whole number of them.
    - `seen`: "values": every value of every factor remains seen; "pairs": every two values of any two factors too.

    >>> from composcope.factors import latent_grid
    >>> factors = [Factor("x", range(4)), Factor("y", range(4)), Factor("z", range(4))]
    >>> int(Cells(0.25, seen="pairs").contains(latent_grid(factors), factors).sum())
    16
    """

    share: Annotated[float, Field(gt=0, lt=1)]
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    seen: Literal["values", "pairs"] = "values"

    def contains(self, latents: Latents, factors: Factors = None) -> Mask:
        if factors is None:
            raise ValueError("cells are counted on the factors' grid: call contains(latents, task.factors)")
        sizes = tuple(factor.size for factor in factors)
        heldout = torch.from_numpy(_chosen(sizes, self.share, self.seed, self.seen)).to(latents.device)
        missing = absent(latents)
        columns = zip(latents.nan_to_num().unbind(1), factors, strict=True)
        cell = combination_numbers(torch.stack([_nearest(values, factor) for values, factor in columns], 1), sizes)
        return heldout[cell] & ~missing.any(1)

    def check(self, factors: Sequence[Factor]) -> None:
        _chosen(tuple(factor.size for factor in factors), self.share, self.seed, self.seen)


def _nearest(values: torch.Tensor, factor: Factor) -> torch.Tensor:
    """The index of the nearest of the factor's values."""
    index = factor.index(values)
    between = index < 0
    if between.any():
        index[between] = factor.difference(values[between, None], factor.tensor().to(values)).abs().argmin(1)
    return index


@lru_cache(maxsize=32)
def _chosen(sizes: tuple[int, ...], share: float, seed: int, seen: str) -> np.ndarray:
    """Which cells of a grid of these sizes are held out, the first factor varying slowest."""
    total = int(np.prod(sizes, dtype=np.int64))
    if len(sizes) < 2 or (seen == "pairs" and len(sizes) < 3):
        raise ValueError(f"cells with seen = {seen!r} need at least {2 if seen == 'values' else 3} factors")
    rank = _random(total, seed)
    kept = _cover(rank, sizes, 1 if seen == "values" else 2)
    count, most = round(share * total), total - int(kept.sum())
    if not 1 <= count <= most:
        raise ValueError(
            f"share = {share:g} holds out {count} of {total} combinations; 1 to {most} are possible if all {seen} "
            f"remain seen, a share of up to {most / total:.3g}"
        )
    free = np.flatnonzero(~kept)
    chosen = np.zeros(total, dtype=bool)
    chosen[free[np.argsort(rank[free], kind="stable")[:count]]] = True
    return chosen


def _random(count: int, seed: int) -> np.ndarray:
    """A 64-bit number for each cell, from whole numbers only: the SplitMix64 sequence that starts at the seed."""
    with np.errstate(over="ignore"):
        state = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed & MASK64)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return state ^ (state >> np.uint64(31))


def _cover(rank: np.ndarray, sizes: tuple[int, ...], order: int) -> np.ndarray:
    """Cells that stay seen: with them, every combination of values of any `order` factors occurs at least once."""
    kept = np.zeros(len(rank), dtype=bool)
    indices = torch.from_numpy(np.stack(np.unravel_index(np.arange(len(rank)), sizes), 1))
    for columns in itertools.combinations(range(len(sizes)), order):
        own = [sizes[column] for column in columns]
        number = combination_numbers(indices[:, columns], own).numpy()
        occurs = np.zeros(int(np.prod(own)), dtype=bool)
        occurs[number[kept]] = True
        by_number = np.lexsort((rank, number))
        last = by_number[np.flatnonzero(np.diff(number[by_number], append=-1))]  # of each number, the highest rank
        kept[last[~occurs]] = True
    return kept
