"""The points at which a decoder is measured: the task's grid in its order, and which of it is held out."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.errors import BadInput
from composcope.factors import Factor
from composcope.holdouts import Holdout, Split, split
from composcope.measures.grid import grid_index, grid_order, grid_sizes
from composcope.tasks.base import Task


@dataclass(frozen=True)
class Points:
    """The points measured: their latents in grid order, and which are held out.

    - `full`: whether they are the factors' whole grid. `sample`: the points whose pairs are all compared, fewer than
      all where there are many.
    """

    latents: Float[Tensor, "n factors"]
    heldout: Bool[Tensor, "n"]
    factors: tuple[Factor, ...]
    full: bool
    sample: Tensor

    @property
    def whole(self) -> bool:
        """Whether the sample is everything."""
        return len(self.sample) == len(self.latents)


def grid_split(task: Task, holdout: Holdout) -> Split:
    """`split` with its points in grid order, which a table of the user's own need not have."""
    parts = split(task, holdout)
    order = grid_order(parts.latents, task.factors)
    return Split(parts.latents[order], parts.mask[order], parts.certificate)


def points_of(task: Task, parts: Split, most: int, generator: torch.Generator) -> Points:
    """The points of a split in grid order, at most `most` of them to be compared in pairs."""
    index = grid_index(parts.latents, task.factors)
    # As many points as the grid has, none of them off it; the split has checked that none occurs twice.
    full = len(index) == math.prod(grid_sizes(task.factors)) and bool((index >= 0).all())
    return Points(parts.latents, parts.mask, tuple(task.factors), full, sampled(parts.mask, most, generator))


def checked_split(task: Task, holdout: Holdout) -> Split:
    """`grid_split`, with BadInput for a holdout that does not fit the task."""
    try:
        return grid_split(task, holdout)
    except ValueError as error:
        raise BadInput(str(error)) from None


def sampled(heldout: Bool[Tensor, "n"], most: int, generator: torch.Generator) -> Tensor:
    """At most `most` of the points, in order, seen and held-out in their proportion."""
    if len(heldout) <= most:
        return torch.arange(len(heldout))
    chosen = []
    for side in (heldout, ~heldout):
        rows = side.nonzero()[:, 0]
        count = min(len(rows), max(1, round(most * len(rows) / len(heldout)))) if len(rows) else 0
        chosen.append(rows[torch.randperm(len(rows), generator=generator)[:count]])
    return torch.cat(chosen).sort().values
