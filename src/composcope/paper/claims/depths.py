"""Claims 4, 5, 6 and 18: what happens to factors and volume from layer to layer, in CNNs and in MLPs."""

import math
from collections.abc import Callable

from torch import Tensor

from composcope.paper import codes, depths
from composcope.paper.claims.effects import Effect, Number, by_seed, difference, of_runs
from composcope.paper.claims.lowrank import image_gap
from composcope.paper.depths import PAIR
from composcope.paper.evidence import Evidence, Run
from composcope.paper.layers import (
    Measure,
    by_layer,
    by_layer_untrained,
    crossed_probe,
    factorization,
    heldout_probe,
    largest_fall,
    unevenness,
    volume_gap,
)
from composcope.paper.ledger import Claim, Part

SHOWS = 0.05  # of R2, from 0 to 1, and a tenth of factorization, from 0.5 to 1
DOUBLE = math.log10(2)


def of_curve(measure: Measure, number: Callable[[Tensor], float]) -> Number:
    """A number of a measure's curve from the code to the image; none where the curve has holes."""

    def found(run: Run) -> float | None:
        value = number(by_layer(run, measure))
        return value if math.isfinite(value) else None

    return found


def fall(curve: Tensor) -> float:
    return float(curve[0] - curve[-1])


def at_image(curve: Tensor) -> float:
    return float(curve[-1])


def fall_beyond_untrained(measure: Measure) -> Number:
    """How much more a measure falls than it did before training."""

    def found(run: Run) -> float | None:
        value = fall(by_layer(run, measure)) - fall(by_layer_untrained(run, measure))
        return value if math.isfinite(value) else None

    return found


def smaller(number: Number) -> Effect:
    """The smaller of the codes' numbers, seed by seed: what holds for both."""
    return lambda evidence: [min(row.values()) for row in by_seed(evidence, number).values()]


signed_gap = of_curve(volume_gap, at_image)
factorization_fall = of_curve(factorization, fall)


def in_both_codes(number: Number, compare: Callable[[float, float], float]) -> Effect:
    """The smaller of the codes' comparisons of the MLP's number with the CNN's, seed by seed."""

    def effect(evidence: Evidence) -> list[float]:
        rows = by_seed(evidence, number).values()
        return [min(compare(row[f"MLP, {code}"], row[f"CNN, {code}"]) for code in PAIR) for row in rows]

    return effect


def opposite(mlp: float, cnn: float) -> float:
    """The MLP's gap, above 0 if it has the other sign than the CNN's."""
    return -math.copysign(1.0, cnn) * mlp


CLAIMS = (
    Claim(
        number=4,
        statement="From the code to the image, linear readouts of x and y get worse and the factors' directions less "
        "perpendicular, and it is training that does it.",
        where="Sec. 3.4, Fig. 2a-d, 12",
        figures=("2a", "2b", "2c", "2d", "12"),
        plan=codes.both,
        parts=(
            Part(
                "fall of the cross-validated probes' R2, the smaller of the two codes",
                smaller(of_curve(crossed_probe, fall)),
                ">",
                SHOWS,
                "a twentieth of all there is to tell; less would hardly show in the figure",
            ),
            Part(
                "fall of the R2 of probes fitted on seen and scored on held-out points, the smaller of the two codes",
                smaller(of_curve(heldout_probe, fall)),
                ">",
                SHOWS,
                "as for the first",
            ),
            Part(
                "fall of factorization, the smaller of the two codes",
                smaller(factorization_fall),
                ">",
                SHOWS,
                "a tenth of the score's range, 0.5 to 1",
            ),
            Part(
                "how much more the R2 on held-out points falls than before training, the smaller of the two codes",
                smaller(fall_beyond_untrained(heldout_probe)),
                ">",
                0,
                "otherwise it is random layers that do it, not what was learnt",
            ),
            Part(
                "how much more factorization falls than before training, the smaller of the two codes",
                smaller(fall_beyond_untrained(factorization)),
                ">",
                0,
                "otherwise it is random layers that do it, not what was learnt",
            ),
        ),
        known="The paper's probe is scored on the points it was fitted on, which gives 1 for any layer wider than the "
        "points. Scores fall in untrained networks too. True images themselves have a factorization of 1.00, but, "
        "fitted on seen and scored on held-out points, an R2 of only 0.6 to 0.7, since a probe cannot know what "
        "pixels mean that it never saw dark: a fall to there, at the image, is no sign of failure.",
    ),
    Claim(
        number=5,
        statement="With a rate code, shallow networks lose factorization more abruptly than deep ones.",
        where="Sec. 3.4, Fig. 2d",
        figures=("2d",),
        plan=depths.shallow_and_deep,
        parts=(
            Part(
                "largest fall of factorization from one layer to the next, the shallowest network's less the deepest's",
                difference("shallow", "deep", of_curve(factorization, largest_fall)),
                ">",
                0,
                "more abrupt at all, in every seed",
            ),
        ),
        known="A deep network has more layers over which to spread the same fall. Rate codes learn slowly; networks "
        "that have not yet learnt what they saw are counted too, as in the paper.",
    ),
    Claim(
        number=6,
        statement="The image has a different volume for held-out combinations than for seen ones.",
        where="Sec. 3.4, Fig. 2e-f, 11",
        figures=("2e", "2f", "11"),
        plan=codes.both,
        parts=tuple(
            Part(
                f"size of the gap in log10 volume between held-out and seen points at the image, {code} code",
                of_runs(code, image_gap),
                ">",
                DOUBLE,
                "twice the volume or half of it; the codes themselves and true bumps stay under a quarter more or less",
            )
            for code in PAIR
        ),
        known="A gap of means: a map can be uneven, and uneven in the hole, without one.",
    ),
    Claim(
        number=18,
        statement="In MLPs factorization is lost more evenly over the layers than in CNNs, and more of it, and the "
        "volume in the hole changes the other way.",
        where="App. E.3, Fig. 13-14",
        figures=("13", "14"),
        plan=depths.cnn_and_mlp,
        parts=(
            Part(
                "largest fall over mean step, the CNN's less the MLP's, the smaller of the two codes",
                in_both_codes(of_curve(factorization, unevenness), lambda mlp, cnn: cnn - mlp),
                ">",
                0,
                "more even at all, in every seed",
            ),
            Part(
                "fall of factorization, the MLP's less the CNN's, the smaller of the two codes",
                in_both_codes(factorization_fall, lambda mlp, cnn: mlp - cnn),
                ">",
                0,
                "more of it at all, in every seed",
            ),
            Part(
                "the MLP's gap in log10 volume at the image, above 0 where opposite to the CNN's, the smaller of the "
                "two codes",
                in_both_codes(signed_gap, opposite),
                ">",
                0,
                "the other sign in every seed",
            ),
        ),
        known="Both have the same depth; the CNN's first map is one layer more.",
    ),
)
