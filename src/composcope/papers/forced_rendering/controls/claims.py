"""Claims 19 and 24: the failure comes with a hole in a corner as well, and does not come without a hole."""

import math

from composcope.papers.forced_rendering.base import sizes_of
from composcope.papers.forced_rendering.codes.failures import ALIKE, SAME_SHARES, misplaced_share, nothing_share
from composcope.papers.forced_rendering.controls import plan
from composcope.papers.forced_rendering.controls.numbers import Region, compared_region, region
from composcope.papers.forced_rendering.errors import FEW, LARGE, SMALL, accuracy, heldout_share, seen_share
from composcope.papers.forced_rendering.gates import learned, once_learned
from composcope.runs.run import Run
from composcope.study.claim import Claim, Part, Value
from composcope.study.effects import Number, difference, of_runs
from composcope.study.evidence import Evidence

DOUBLE = math.log10(2)


def middle(run: Run, evidence: Evidence) -> Region:
    """A run's numbers in the hole, or where it would be, and outside."""
    return region(run, compared_region(run, sizes_of(evidence.preset).hole))


def volume_gap(evidence: Evidence) -> Number:
    """log10 of the image's volume in the middle over that of the rest, beyond what true images have."""
    return lambda run: middle(run, evidence).volume_gap


def gap_without_hole(evidence: Evidence) -> dict[int, Value]:
    """The gap of runs trained without a hole."""
    return dict(of_runs("no hole", volume_gap(evidence))(evidence))


def gap_due_to_hole(evidence: Evidence) -> dict[int, Value]:
    """The gap without a hole minus that with one."""
    return dict(difference("no hole", "square", volume_gap(evidence))(evidence))


def error_ratio(evidence: Evidence) -> dict[int, Value]:
    """log10 of the mean error in the middle over that of the rest, without a hole."""
    shares = {run.spec.seed: middle(run, evidence).share for run in evidence["no hole"]}
    return {seed: math.log10(inside / outside) for seed, (inside, outside) in shares.items()}


def accuracy_in_the_middle(evidence: Evidence) -> dict[int, Value]:
    """Share within 1 pixel of the true position in the middle, without a hole."""
    return {run.spec.seed: middle(run, evidence).accuracy[0] for run in evidence["no hole"]}


CLAIMS = (
    Claim(
        number=19,
        statement="The decoder fails in the same way when a corner is held out instead of the middle.",
        source="variant of Fig. 1",
        figures=("controls",),
        plan=plan.square_and_corner,
        primary=(
            Part(
                "held-out MSE / blank MSE of runs that have learned what they saw",
                of_runs("corner", once_learned(heldout_share)),
                ">",
                0.5,
                LARGE,
            ),
            *(
                Part(
                    f"{share}, corner minus square",
                    learned(difference("corner", "square", number), "corner", "square"),
                    "within",
                    ALIKE,
                    SAME_SHARES,
                )
                for share, number in (
                    ("share of held-out images with nothing drawn", nothing_share),
                    ("share of held-out images with a single bump at a wrong place", misplaced_share),
                )
            ),
        ),
        secondary=(
            Part("seen MSE / blank MSE", of_runs("corner", seen_share), "<", 0.1, SMALL),
            Part(
                "share of held-out images within 1 pixel of the true position",
                of_runs("corner", once_learned(accuracy)),
                "<",
                0.5,
                FEW,
            ),
        ),
        note="That the failure is the same, and not only a failure, belongs to the primary statement since version 3.",
        version=3,
    ),
    Claim(
        number=24,
        statement="Trained without a hole, the decoder draws the middle as well as the rest, and the volume of its "
        "images is even.",
        source="Sec. 3.4 (our control)",
        figures=("controls",),
        plan=plan.with_and_without_hole,
        primary=(
            Part(
                "log10 of MSE in the middle / MSE of the rest, no hole",
                learned(error_ratio, "no hole"),
                "within",
                DOUBLE,
                "a factor of two, better or worse, is little compared with the effect of a hole",
            ),
            Part(
                "log10 of the volume in the middle over that of the rest, no hole",
                learned(gap_without_hole, "no hole"),
                "within",
                DOUBLE,
                "a factor of two, more or less, after subtracting the effect of the frame on true images",
            ),
        ),
        secondary=(
            Part(
                "share within 1 pixel of the true position in the middle, no hole",
                learned(accuracy_in_the_middle, "no hole"),
                ">",
                0.95,
                "all but a few",
            ),
            Part(
                "log10 of the volume in the middle over that of the rest, without a hole minus with one",
                learned(gap_due_to_hole, "no hole", "square"),
                ">",
                DOUBLE,
                "the hole takes away more than a factor of two",
            ),
        ),
        version=2,
    ),
)
