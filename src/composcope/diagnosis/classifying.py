"""The verdict in a diagnosis: which images are classified, and what must be said about it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from composcope.activations import Subject
from composcope.diagnosis.errors import each_error
from composcope.diagnosis.points import Notes, Points
from composcope.diagnosis.superposition import additive_cross
from composcope.display import counted
from composcope.errors import BadInput
from composcope.factors import Latents
from composcope.measures.grid import grid_index
from composcope.tasks.base import Images, Task
from composcope.verdict import Verdict, classify
from composcope.verdict.references import Pictures, rendered
from composcope.verdict.residuals import scaling_axes
from composcope.verdict.verdict import MAX_CANDIDATES

# As many images are drawn twice to see whether the module is random.
DRAWN_TWICE = 64
CHUNK = 256  # images at a time


def randomness(subject: Subject, codes: Tensor, draws: int) -> str:
    """By how much two calls of the module differ, as a note; empty if they do not."""
    some = codes[torch.linspace(0, len(codes) - 1, min(len(codes), DRAWN_TWICE)).long()]
    first, second = subject.draws(some, 2)
    if torch.equal(first, second):
        return ""
    spread = ((first - second).square().mean() / 2).sqrt().item()
    deviation = first.std(0, correction=0).square().mean().sqrt().item()
    return (
        f"two calls of the module differ: its pixels have a standard deviation of {spread:.3g} between calls and "
        f"{deviation:.3g} between combinations; the verdict is of {counted(draws, 'draw')} (draws=)"
    )


class _Comparison:
    """Compares images with the truth as they are made, some at a time, so that only the foregrounds are kept."""

    def __init__(self, task: Task, points: Points, structural: bool) -> None:
        self.task, self.points = task, points
        self.span = _span(task, points) if structural else None
        self.each: dict[str, Tensor] = {}
        self.compared = self.broken = 0

    def __call__(self, start: int, images: Images) -> Images:
        if not images.sum().isfinite():  # one pass over the pixels, unless something is wrong
            self.broken += int((~images.flatten(1).isfinite()).any(1).sum())
        if start == self.compared and not self.broken:  # in the first of several draws
            latents = self.points.latents[start : start + len(images)]
            errors = each_error(self.task, images, self.task.render(latents).float(), latents, self.span)
            for name, values in errors.items():
                # All at once and beforehand: small tensors that stay would break up the memory of the images.
                every = self.each.setdefault(name, torch.empty(len(self.points.latents), dtype=values.dtype))
                every[start : start + len(images)] = values
            self.compared += len(images)
        return self.task.foreground(images)


def outputs_and_errors(
    subject: Subject, codes: Tensor, task: Task, points: Points, draws: int, structural: bool
) -> tuple[list[Images], dict[str, Tensor]]:
    """The foregrounds that the module draws, `draws` times, and every error of the first draw's images, by name."""
    comparison = _Comparison(task, points, structural)
    outputs = subject.draws(codes, draws, comparison)
    if comparison.broken:
        total = draws * len(codes)
        raise BadInput(f"{comparison.broken} of the module's {total} images have pixels that are not finite")
    return outputs, comparison.each


def _span(task: Task, points: Points) -> float:
    """The range of the true pixels, 1 if they are all the same."""
    extremes = [
        (images.amin().item(), images.amax().item()) for images in map(task.render, points.latents.split(CHUNK))
    ]
    return max(high for _, high in extremes) - min(low for low, _ in extremes) or 1.0


def _cross(task: Task, latents: Latents) -> Images:
    cross = additive_cross(task, latents)
    assert cross is not None  # it was asked for one point
    return cross


def verdict_of(
    task: Task, outputs: Sequence[Images], truth: Pictures, points: Points, seed: int, memory: int
) -> tuple[Verdict | None, Notes]:
    """The verdict on foregrounds over the points, one per draw; None where nothing is held out."""
    if not points.heldout.any():
        return None, {"verdict": "no point is held out"}
    notes: Notes = {}
    cross: Pictures | None = None
    if additive_cross(task, points.latents[:1]) is not None:
        cross = rendered(lambda rows: _cross(task, points.latents[rows]), len(points.latents), memory / 8)
    else:
        notes["verdict.cross"] = f"{task.kind} cannot draw a factor alone: the cross of stripes is not a reference"
    index = grid_index(points.latents, points.factors)
    scaling = [points.factors[axis].name for axis in scaling_axes(truth, index)]
    if scaling:
        notes["verdict.scale"] = f"{', '.join(scaling)} only scales the image, so references are not scaled to fit"
    verdict = classify(outputs, truth, points.latents, points.heldout, points.factors, cross, seed, points.classifiable)
    return verdict, notes | _limits(verdict, points)


def _limits(verdict: Verdict, points: Points) -> Notes:
    """What the verdict does not cover."""
    notes: Notes = {}
    heldout = len(verdict.classes)
    if verdict.judged is not None and verdict.judged < heldout:
        notes["verdict.points"] = f"{verdict.judged} of the {heldout} held-out images, drawn at random, are classified"
    if len(points.latents) > MAX_CANDIDATES:
        notes["verdict.candidates"] = (
            f"images are placed among {MAX_CANDIDATES} of the {len(points.latents)} combinations, drawn at random, "
            "and all that differ from one of the classified in one factor"
        )
    if verdict.without_dictionary:
        notes["verdict.superposer"] = (
            f"{verdict.without_dictionary} of {verdict.judged} held-out points have no seen point that shares all but "
            "one factor's value"
        )
    return notes
