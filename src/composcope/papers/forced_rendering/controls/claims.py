"""Claims 19 and 24: the failure comes with a hole in a corner as well, and does not come without a hole."""

from composcope.experiments.run import Run
from composcope.papers.forced_rendering.base import sizes_of
from composcope.papers.forced_rendering.controls import plan
from composcope.papers.forced_rendering.controls.numbers import Region, compared_region, region
from composcope.papers.forced_rendering.errors import FEW, LARGE, SMALL, accuracy, heldout_share, seen_share
from composcope.study.claim import Claim, Part
from composcope.study.effects import Number, difference, of_runs
from composcope.study.evidence import Evidence


def middle(run: Run, evidence: Evidence) -> Region:
    """A run's numbers in the hole, or where it would be, and outside."""
    return region(run, compared_region(run, sizes_of(evidence.preset).hole))


def unevenness(evidence: Evidence) -> Number:
    """|log10 of the image's volume in the middle over that of the rest|, beyond what true images have."""

    def number(run: Run) -> float | None:
        gap = middle(run, evidence).volume_gap
        return None if gap is None else abs(gap)

    return number


def unevenness_without_hole(evidence: Evidence) -> dict[int, float]:
    """The unevenness of runs trained without a hole."""
    return dict(of_runs("no hole", unevenness(evidence))(evidence))


def unevenness_due_to_hole(evidence: Evidence) -> dict[int, float]:
    """The unevenness with a hole minus that without."""
    return dict(difference("square", "no hole", unevenness(evidence))(evidence))


def error_ratio(evidence: Evidence) -> dict[int, float]:
    """Mean error in the middle over that of the rest, without a hole."""
    shares = {run.spec.seed: middle(run, evidence).share for run in evidence["no hole"]}
    return {seed: inside / outside for seed, (inside, outside) in shares.items()}


def accuracy_in_the_middle(evidence: Evidence) -> dict[int, float]:
    """Share within 1 pixel of the true position in the middle, without a hole."""
    return {run.spec.seed: middle(run, evidence).accuracy[0] for run in evidence["no hole"]}


CLAIMS = (
    Claim(
        number=19,
        statement="The decoder fails in the same way when a corner is held out instead of the middle.",
        source="variant of Fig. 1",
        figures=("controls",),
        plan=plan.corner,
        parts=(
            Part("seen MSE / blank MSE", of_runs("corner", seen_share), "<", 0.1, SMALL),
            Part("held-out MSE / blank MSE", of_runs("corner", heldout_share), ">", 0.5, LARGE),
            Part(
                "share of held-out images within 1 pixel of the true position",
                of_runs("corner", accuracy),
                "<",
                0.5,
                FEW,
            ),
        ),
    ),
    Claim(
        number=24,
        statement="Trained without a hole, the decoder draws the middle as well as the rest, and the volume of its "
        "images is even.",
        source="Sec. 3.4 (our control)",
        figures=("controls",),
        plan=plan.with_and_without_hole,
        parts=(
            Part(
                "MSE in the middle / MSE of the rest, no hole",
                error_ratio,
                "<",
                2.0,
                "a factor of two is little compared with the effect of a hole",
            ),
            Part(
                "share within 1 pixel of the true position in the middle, no hole",
                accuracy_in_the_middle,
                ">",
                0.95,
                "all but a few",
            ),
            Part(
                "|log10 of the volume in the middle over that of the rest|, no hole",
                unevenness_without_hole,
                "<",
                0.3,
                "a factor of two, after subtracting the effect of the frame on true images",
            ),
            Part(
                "the same with a hole, minus that without",
                unevenness_due_to_hole,
                ">",
                0.3,
                "the hole adds more than a factor of two",
            ),
        ),
    ),
)
