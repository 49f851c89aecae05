"""The verdict in a diagnosis: what it is judged from, and what must be said about it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from composcope.activations import Subject
from composcope.diagnosis.points import Points
from composcope.diagnosis.truth import additive_cross
from composcope.measures.grid import grid_index
from composcope.tasks.base import Images, Task
from composcope.verdict import Verdict, judge
from composcope.verdict.judgement import MOST_CANDIDATES
from composcope.verdict.residuals import scaling_axes

# As many images are drawn twice to see whether the module is random.
DRAWN_TWICE = 64


def drawn_images(subject: Subject, codes: Tensor, draws: int, notes: dict[str, str]) -> list[Images]:
    """The module's images of all codes, `draws` times; a note says so if two calls of the module differ."""
    some = codes[torch.linspace(0, len(codes) - 1, min(len(codes), DRAWN_TWICE)).long()]
    first, second = subject.draws(some, 2)
    images = subject.draws(codes, draws)
    if not torch.equal(first, second):
        spread = ((first - second).square().mean() / 2).sqrt().item()
        deviation = first.std(0, correction=0).square().mean().sqrt().item()
        notes["random outputs"] = (
            f"two calls of the module differ: its pixels have a standard deviation of {spread:.3g} between calls and "
            f"{deviation:.3g} between combinations; the verdict is of {draws} draw{'s' if draws > 1 else ''} (draws=)"
        )
    return images


def judged(
    task: Task, outputs: Sequence[Images], truth: Images, points: Points, seed: int, notes: dict[str, str]
) -> Verdict | None:
    """The verdict on foregrounds over the points, one per draw, with notes; None where nothing is held out."""
    if not points.heldout.any():
        notes["verdict"] = "no point is held out"
        return None
    cross = additive_cross(task, points.latents)
    if cross is None:
        notes["verdict.cross"] = f"{task.kind} cannot draw a factor alone: the cross of stripes is not a reference"
    index = grid_index(points.latents, points.factors)
    scaling = [points.factors[axis].name for axis in scaling_axes(truth, index)]
    if scaling:
        notes["verdict.scale"] = f"{', '.join(scaling)} only scales the image, so references are not scaled to fit"
    verdict = judge(outputs, truth, points.latents, points.heldout, points.factors, cross, seed)
    _note_limits(verdict, points, notes)
    if verdict.spread is not None and "random outputs" in notes:
        notes["random outputs"] += f"; its score has a standard deviation of {verdict.spread:.3f} over draws"
    return verdict


def _note_limits(verdict: Verdict, points: Points, notes: dict[str, str]) -> None:
    """What the verdict does not cover."""
    heldout = len(verdict.classes)
    if verdict.judged is not None and verdict.judged < heldout:
        notes["verdict.points"] = f"{verdict.judged} of the {heldout} held-out images, drawn at random, are judged"
    if len(points.latents) > MOST_CANDIDATES:
        notes["verdict.candidates"] = (
            f"images are placed among {MOST_CANDIDATES} of the {len(points.latents)} combinations, drawn at random, "
            "and all that differ from one of the judged in one factor"
        )
    if verdict.without_dictionary:
        notes["verdict.superposer"] = (
            f"{verdict.without_dictionary} of {verdict.judged} held-out points have no seen point that shares all but "
            "one factor's value"
        )
