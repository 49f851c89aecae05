"""Claims 19 and 24: the failure comes with a hole in a corner as well, and does not come without a hole."""

import math

from composcope.papers.forced_rendering.base import FEW, LARGE, SIZES, SMALL, accuracy, heldout_share, seen_share
from composcope.papers.forced_rendering.codes.claims import ALIKE, SAME_SHARES, misplaced_share, nothing_share
from composcope.papers.forced_rendering.controls.figures import Region, all_controls, compared_region, region
from composcope.runs.run import Run
from composcope.study.claim import Claim, Number, Part, Values, difference, effect_of, of_runs
from composcope.study.evidence import Evidence
from composcope.study.plan import of_preset, only

DOUBLE = math.log10(2)


def middle(run: Run, evidence: Evidence) -> Region:
    """A run's numbers in the hole, or where it would be, and outside."""
    return region(run, compared_region(run, of_preset(SIZES, evidence.preset).hole))


def volume_gap(evidence: Evidence) -> Number:
    """log10 of the image's volume in the middle over that of the rest, beyond what true images have."""
    return lambda run: middle(run, evidence).volume_gap


@effect_of("no hole")
def gap_without_hole(evidence: Evidence) -> Values:
    """The gap of runs trained without a hole."""
    return of_runs("no hole", volume_gap(evidence))(evidence)


@effect_of("no hole", "square")
def gap_due_to_hole(evidence: Evidence) -> Values:
    """The gap without a hole minus that with one."""
    return difference("no hole", "square", volume_gap(evidence))(evidence)


@effect_of("no hole")
def error_ratio(evidence: Evidence) -> Values:
    """log10 of the mean error in the middle over that of the rest, without a hole."""
    shares = {run.spec.seed: middle(run, evidence).share for run in evidence["no hole"]}
    return {seed: math.log10(inside / outside) for seed, (inside, outside) in shares.items()}


@effect_of("no hole")
def accuracy_in_the_middle(evidence: Evidence) -> Values:
    """Share within 1 pixel of the true position in the middle, without a hole."""
    return {run.spec.seed: middle(run, evidence).accuracy[0] for run in evidence["no hole"]}


CLAIMS = (
    Claim(
        number=19,
        statement="The decoder fails in the same way when a corner is held out instead of the middle.",
        source="variant of Fig. 1",
        figures=("controls",),
        plan=only(all_controls, "square", "corner"),
        primary=(
            Part(
                "held-out MSE / blank MSE of runs that have learned what they saw",
                of_runs("corner", heldout_share),
                ">",
                0.5,
                LARGE,
                learned=True,
            ),
            *(
                Part(
                    f"{share}, corner minus square",
                    difference("corner", "square", number),
                    "within",
                    ALIKE,
                    SAME_SHARES,
                    learned=True,
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
                of_runs("corner", accuracy),
                "<",
                0.5,
                FEW,
                learned=True,
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
        plan=only(all_controls, "square", "no hole"),
        primary=(
            Part(
                "log10 of MSE in the middle / MSE of the rest, no hole",
                error_ratio,
                "within",
                DOUBLE,
                "a factor of two, better or worse, is little compared with the effect of a hole",
                learned=True,
            ),
            Part(
                "log10 of the volume in the middle over that of the rest, no hole",
                gap_without_hole,
                "within",
                DOUBLE,
                "a factor of two, more or less, after subtracting the effect of the frame on true images",
                learned=True,
            ),
        ),
        secondary=(
            Part(
                "share within 1 pixel of the true position in the middle, no hole",
                accuracy_in_the_middle,
                ">",
                0.95,
                "all but a few",
                learned=True,
            ),
            Part(
                "log10 of the volume in the middle over that of the rest, without a hole minus with one",
                gap_due_to_hole,
                ">",
                DOUBLE,
                "the hole takes away more than a factor of two",
                learned=True,
            ),
        ),
        version=2,
    ),
)
