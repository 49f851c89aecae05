"""What a decoder draws at some held-out combinations, as a page shows it."""

from typing import Any

import torch
from torch import nn
from torch.nn.functional import adaptive_avg_pool2d

from composcope.activations import Encode, Pick, Subject, adapted, encoded
from composcope.diagnosis.samples import Samples, samples
from composcope.factors import Latents
from composcope.holdouts import GivenHoldout
from composcope.pages.maps import MOST, levels
from composcope.pages.page import packed
from composcope.runs.run import Run
from composcope.tasks.base import Images, Task

__all__ = ["Samples", "module_samples", "packed_images", "run_samples", "samples"]


def module_samples(
    module: nn.Module, task: Task, holdout: GivenHoldout, encoding: Encode, pick: Pick = None
) -> Samples:
    """Samples of any module from codes to images."""

    def draw(latents: Latents) -> Images:
        codes, layout = encoded(encoding, latents, task.factors)
        return Subject(adapted(module, layout), codes, pick).images(codes)

    return samples(task, holdout, draw)


def run_samples(run: Run) -> Samples:
    """Samples of a run."""
    return samples(run.spec.task, run.spec.holdout, run.draw)


def packed_images(shown: Samples, expected: Images | None = None) -> dict[str, Any]:
    """Truth, drawn and, if given, expected images, (2 or 3, images, height, width, channels), as 0..254.

    They are averaged where they are large.

    Black and white are 0 and 1, or the least and the greatest pixel of the truth where these go beyond.
    """
    rows = torch.stack([shown.truth, shown.images, *([] if expected is None else [expected])]).flip(-2)
    height, width = rows.shape[-2:]
    if max(height, width) > MOST:
        rows = torch.stack([adaptive_avg_pool2d(images, (min(height, MOST), min(width, MOST))) for images in rows])
    if rows.shape[2] not in (1, 3):
        rows = rows.mean(2, keepdim=True)
    low, high = min(0.0, shown.truth.min().item()), max(1.0, shown.truth.max().item())
    return packed(levels(rows.movedim(2, -1), low, high))
