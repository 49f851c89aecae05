"""What a decoder draws at some held-out combinations, beside the truth."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.diagnosis.points import grid_split
from composcope.factors import Latents
from composcope.holdouts import GivenHoldout, Split
from composcope.tasks.base import Images, Task


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


def samples(task: Task, holdout: GivenHoldout, draw: Callable[[Latents], Images], count: int = 6) -> Samples:
    """`count` held-out points, evenly spaced in grid order: the truth, and what `draw` makes of them."""
    return samples_of(task, grid_split(task, holdout), draw, count)


def samples_of(task: Task, parts: Split, draw: Callable[[Latents], Images], count: int = 6) -> Samples:
    """The same of a split whose points are in grid order."""
    candidates = parts.heldout if parts.mask.any() else parts.latents
    rows = torch.linspace(0, len(candidates) - 1, min(count, len(candidates))).round().long()
    shown = candidates[rows]
    return Samples(parts.mask, tuple(rows.tolist()), shown, task.render(shown).float(), draw(shown))
