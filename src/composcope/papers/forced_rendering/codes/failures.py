"""How a decoder fails: what it draws on held-out combinations, image by image."""

from collections.abc import Callable

from jaxtyping import Bool
from torch import Tensor

from composcope.papers.forced_rendering.similarity.numbers import Peaks, inner_peaks, peaks
from composcope.papers.forced_rendering.similarity.plan import sizes_of
from composcope.runs.run import Run
from composcope.study.claim import Effect, Value
from composcope.study.effects import of_runs
from composcope.study.evidence import Evidence
from composcope.study.plan import Key

ALIKE = 0.2
SAME_SHARES = "a fifth of the images either way; decoders that fail in the same way fail as often in each way"
FAINT = 0.5
"""A bump is drawn where a foreground reaches this share of a true bump's height."""


def nothing_drawn(run: Run) -> Bool[Tensor, "heldout"]:
    """Held-out images in which no pixel reaches half of a bump's height."""
    heldout = run.split.mask
    drawn = run.spec.task.foreground(run.draw()[heldout])
    height = run.spec.task.foreground(run.truth[heldout]).amax((1, 2, 3))
    return drawn.amax((1, 2, 3)) < FAINT * height


def misplaced(run: Run) -> Bool[Tensor, "heldout"]:
    """Held-out images of a single bump that is more than 1 pixel from the true position."""
    heldout = run.split.mask
    counts = peaks(run.spec.task.foreground(run.draw()[heldout]), run.split.latents[heldout]).counts
    placed = run.point_errors.placed
    assert placed is not None  # a bump task locates its bumps
    return ~nothing_drawn(run) & (counts == 1) & (placed[heldout] < 0.5)


def nothing_share(run: Run) -> float:
    """Share of held-out images with nothing drawn."""
    return nothing_drawn(run).double().mean().item()


def misplaced_share(run: Run) -> float:
    """Share of held-out images with a single bump at a wrong place."""
    return misplaced(run).double().mean().item()


def bumps_inside(key: Key, number: Callable[[Peaks], float]) -> Effect:
    """A number of the bumps in images of the inner part of the hole."""

    def effect(evidence: Evidence) -> dict[int, Value]:
        inner = sizes_of(evidence.preset).inner
        return dict(of_runs(key, lambda run: number(inner_peaks(run, inner)))(evidence))

    return effect
