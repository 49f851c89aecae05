"""The points at which a decoder is measured: the task's grid in its order, which of it is held out, and samples."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from composcope.errors import BadInput
from composcope.factors import Factor, Latents, combination_numbers
from composcope.holdouts import GivenHoldout, Split, certify, split
from composcope.measures.grid import grid_index, grid_order, grid_sizes
from composcope.tasks.base import Images, Task

Notes = dict[str, str]
"""What could not be measured, or was measured another way, and why; by what it is about."""

# Larger grids are sampled even if their images are small, since every layer is measured at every point.
MAX_COMBINATIONS = 50_000
# Measures that compare all pairs of points (kernels, probes) use at most this many of them.
MAX_PAIRED = 1024
# As many points of a sampled grid have all their neighbours drawn, or fewer if these are too many.
MAX_CHOICE = 600
SAMPLES = 6  # held-out images that are shown beside the truth


@dataclass(frozen=True)
class Points:
    """The points measured: their latents in grid order, and which are held out.

    - `full`: whether they are the factors' whole grid. `sample`: the points whose pairs are all compared, fewer than
      all where there are many.
    - `classifiable`: where the points are only some of the task's, those whose neighbours on the grid are among them;
      None where they are all of them.
    """

    latents: Float[Tensor, "n factors"]
    heldout: Bool[Tensor, "n"]
    factors: tuple[Factor, ...]
    full: bool
    sample: Tensor
    classifiable: Bool[Tensor, "n"] | None = None

    @property
    def split(self) -> Split:
        """The points as a split, in grid order."""
        return Split(self.latents, self.heldout, certify(self.factors, self.latents, self.heldout))

    @property
    def sampled(self) -> bool:
        """Whether the points are only some of the task's."""
        return self.classifiable is not None

    @property
    def whole(self) -> bool:
        """Whether the sample is everything."""
        return len(self.sample) == len(self.latents)


def grid_split(task: Task, holdout: GivenHoldout) -> Split:
    """`split` with its points in grid order, which a table of the user's own need not have."""
    parts = split(task, holdout)
    order = grid_order(parts.latents, task.factors)
    return Split(parts.latents[order], parts.mask[order], parts.certificate)


def points_of(
    task: Task, parts: Split, most: int, generator: torch.Generator, most_drawn: int = MAX_COMBINATIONS
) -> Points:
    """The points of a split in grid order, at most `most` of them to be compared in pairs.

    Of more than `most_drawn` points some are chosen at random: held-out and seen ones to be classified, everything that
    differs from these in one factor (which they are compared with), and others as long as there is room.
    """
    index = grid_index(parts.latents, task.factors)
    if len(index) > most_drawn:
        rows, classifiable = _chosen(index, parts.mask, most_drawn, generator)
        latents, mask = parts.latents[rows], parts.mask[rows]
        return Points(latents, mask, tuple(task.factors), False, sampled(mask, most, generator), classifiable[rows])
    # As many points as the grid has, none of them off it; the split has checked that none occurs twice.
    full = len(index) == math.prod(grid_sizes(task.factors)) and bool((index >= 0).all())
    return Points(parts.latents, parts.mask, tuple(task.factors), full, sampled(parts.mask, most, generator))


def _chosen(
    index: Int[Tensor, "n factors"], heldout: Bool[Tensor, "n"], most: int, generator: torch.Generator
) -> tuple[Int[Tensor, "rows"], Bool[Tensor, "n"]]:
    """Which rows are drawn, in order, and which of all points have their neighbours among them."""
    order = torch.randperm(len(index), generator=generator)
    held, seen = order[heldout[order]], order[~heldout[order]]
    count = min(MAX_CHOICE, len(index))
    while True:
        classifiable = torch.zeros(len(index), dtype=torch.bool)
        classifiable[torch.cat([held[: 2 * count // 3], seen[: count // 3 + 1]])] = True
        selected = classifiable.clone()
        selected[neighbouring_rows(index, classifiable.nonzero()[:, 0])] = True
        if int(selected.sum()) <= most or count <= 3:
            break
        count = count * 2 // 3
    others = order[~selected[order]]
    selected[others[: max(0, most - int(selected.sum()))]] = True
    return selected.nonzero()[:, 0], classifiable


def neighbouring_rows(index: Int[Tensor, "n factors"], rows: Int[Tensor, "m"]) -> Int[Tensor, "k"]:
    """The rows that differ from one of these in a single factor, found by their numbers."""
    sizes = (index.amax(0) + 2).tolist()  # one more, for an index of -1
    place = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    number = combination_numbers(index + 1, sizes)
    ordered, order = number.sort()
    neighbours = []
    for axis, size in enumerate(sizes):
        moved = number[rows][:, None] + (torch.arange(size) - (index[rows, axis, None] + 1)) * place[axis]
        position = torch.searchsorted(ordered, moved.flatten()).clamp(max=len(ordered) - 1)
        neighbours.append(order[position[ordered[position] == moved.flatten()]])
    return torch.cat(neighbours).unique()


def checked_split(task: Task, holdout: GivenHoldout) -> Split:
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


@dataclass(frozen=True)
class Samples:
    """What is held out, in grid order, and some held-out images beside the truth.

    - `rows`: indices of the points shown among the held-out ones, or among all points where nothing is held out.
    """

    heldout: Bool[Tensor, "points"]
    rows: tuple[int, ...]
    latents: Float[Tensor, "shown factors"]
    truth: Float[Tensor, "shown channels height width"]
    images: Float[Tensor, "shown channels height width"]


def samples_of(task: Task, parts: Split, draw: Callable[[Latents], Images]) -> Samples:
    """A few held-out points of a split in grid order, evenly spaced: the truth, and what `draw` makes of them."""
    candidates = parts.heldout if parts.mask.any() else parts.latents
    rows = torch.linspace(0, len(candidates) - 1, min(SAMPLES, len(candidates))).round().long()
    latents = candidates[rows]
    return Samples(parts.mask, tuple(rows.tolist()), latents, task.render(latents).float(), draw(latents))
