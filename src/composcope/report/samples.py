"""What a decoder draws at some held-out combinations, beside the truth."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d

from composcope.activations import Pick, Subject
from composcope.diagnosis.points import grid_split
from composcope.encodings import Encoding
from composcope.experiments.run import Run
from composcope.factors import Latents
from composcope.holdouts import Holdout
from composcope.report.maps import MOST, levels
from composcope.report.page import packed
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


def samples(task: Task, holdout: Holdout, draw: Callable[[Latents], Images], count: int = 6) -> Samples:
    """`count` held-out points, evenly spaced in grid order: the truth, and what `draw` makes of them."""
    parts = grid_split(task, holdout)
    candidates = parts.heldout if parts.mask.any() else parts.latents
    rows = torch.linspace(0, len(candidates) - 1, min(count, len(candidates))).round().long()
    shown = candidates[rows]
    return Samples(parts.mask, tuple(rows.tolist()), shown, task.render(shown).float(), draw(shown))


def module_samples(module: nn.Module, task: Task, holdout: Holdout, encoding: Encoding, pick: Pick = None) -> Samples:
    """Samples of any module from codes to images."""

    def draw(latents: Latents) -> Images:
        codes = encoding.encode(latents, task.factors)
        return Subject(module, codes, pick).images(codes)

    return samples(task, holdout, draw)


def run_samples(run: Run) -> Samples:
    """Samples of a run."""
    return samples(run.spec.task, run.spec.holdout, run.draw)


def packed_images(shown: Samples) -> dict[str, Any]:
    """Truth and drawn images, (2, images, height, width, channels), as 0..254; averaged where they are large.

    Black and white are 0 and 1, or the least and the greatest pixel of the truth where these go beyond.
    """
    pair = torch.stack([shown.truth, shown.images]).flip(-2)
    height, width = pair.shape[-2:]
    if max(height, width) > MOST:
        pair = torch.stack([adaptive_avg_pool2d(images, (min(height, MOST), min(width, MOST))) for images in pair])
    if pair.shape[2] not in (1, 3):
        pair = pair.mean(2, keepdim=True)
    low, high = min(0.0, shown.truth.min().item()), max(1.0, shown.truth.max().item())
    return packed(levels(pair.movedim(2, -1), low, high))
