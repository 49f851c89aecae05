"""Claims 4, 5, 6 and 18: what happens to factors and volume from layer to layer, in CNNs and in MLPs."""

import math
from collections.abc import Callable

from torch import Tensor

from composcope.experiments.run import Run
from composcope.papers.forced_rendering import base
from composcope.papers.forced_rendering.codes.plan import bump_and_rate
from composcope.papers.forced_rendering.depths import plan
from composcope.papers.forced_rendering.depths.plan import PAIR, DecoderKey
from composcope.papers.forced_rendering.layers import (
    Measure,
    by_layer,
    by_layer_untrained,
    crossed_probe,
    factorization,
    heldout_probe,
    image_gap,
    largest_fall,
    unevenness,
    volume_gap,
)
from composcope.study.claim import Claim, Effect, Part
from composcope.study.effects import Number, by_seed, difference, of_runs
from composcope.study.evidence import Evidence

VISIBLE = 0.05  # in R2, from 0 to 1; in factorization, from 0.5 to 1, a tenth of the range
DOUBLE = math.log10(2)


def of_curve(measure: Measure, number: Callable[[Tensor], float]) -> Number:
    """A number of a measure's curve from the code to the image; None where the curve has gaps."""

    def of_run(run: Run) -> float | None:
        value = number(by_layer(run, measure))
        return value if math.isfinite(value) else None

    return of_run


def fall(curve: Tensor) -> float:
    """The first value minus the last."""
    return float(curve[0] - curve[-1])


def at_image(curve: Tensor) -> float:
    """The last value."""
    return float(curve[-1])


def fall_beyond_untrained(measure: Measure) -> Number:
    """How much more a measure falls than in the same network before training."""

    def of_run(run: Run) -> float | None:
        value = fall(by_layer(run, measure)) - fall(by_layer_untrained(run, measure))
        return value if math.isfinite(value) else None

    return of_run


def smaller(number: Number) -> Effect:
    """The smaller of the codes' numbers for each seed: what holds for both."""
    return lambda evidence: {seed: min(row.values()) for seed, row in by_seed(evidence, number).items()}


signed_gap = of_curve(volume_gap, at_image)
factorization_fall = of_curve(factorization, fall)


def in_both_codes(number: Number, compare: Callable[[float, float], float]) -> Effect:
    """The smaller of the codes' comparisons of the MLP's number with the CNN's, for each seed."""

    def effect(evidence: Evidence) -> dict[int, float]:
        depth = base.sizes_of(evidence.preset).depth
        pairs = [(DecoderKey("MLP", code, depth), DecoderKey("CNN", code, depth)) for code in PAIR]
        rows = by_seed(evidence, number)
        return {seed: min(compare(row[mlp], row[cnn]) for mlp, cnn in pairs) for seed, row in rows.items()}

    return effect


def opposite(mlp: float, cnn: float) -> float:
    """The MLP's gap, above 0 if its sign differs from the CNN's."""
    return -math.copysign(1.0, cnn) * mlp


CLAIMS = (
    Claim(
        number=4,
        statement="From the code to the image, linear readouts of x and y get worse and the factors' directions less "
        "perpendicular, and training is the cause.",
        source="Sec. 3.4, Fig. 2a-d, 12",
        figures=("2a", "2b", "2c", "2d", "12"),
        plan=bump_and_rate,
        parts=(
            Part(
                "fall of the cross-validated probes' R2, the smaller of the two codes",
                smaller(of_curve(crossed_probe, fall)),
                ">",
                VISIBLE,
                "a twentieth of the whole range; less would hardly be visible in the figure",
            ),
            Part(
                "fall of the R2 of probes fitted on seen and scored on held-out points, the smaller of the two codes",
                smaller(of_curve(heldout_probe, fall)),
                ">",
                VISIBLE,
                "as for the first",
            ),
            Part(
                "fall of factorization, the smaller of the two codes",
                smaller(factorization_fall),
                ">",
                VISIBLE,
                "a tenth of the score's range, 0.5 to 1",
            ),
            Part(
                "how much more the R2 on held-out points falls than before training, the smaller of the two codes",
                smaller(fall_beyond_untrained(heldout_probe)),
                ">",
                0,
                "otherwise random layers are the cause, not what was learned",
            ),
            Part(
                "how much more factorization falls than before training, the smaller of the two codes",
                smaller(fall_beyond_untrained(factorization)),
                ">",
                0,
                "otherwise random layers are the cause, not what was learned",
            ),
        ),
        note="The paper's probe is scored on the points it was fitted on, which gives 1 for any layer with more units "
        "than points. Scores fall in untrained networks too. True images themselves have a factorization of 1.00, but, "
        "fitted on seen and scored on held-out points, an R2 of only 0.6 to 0.7, since a probe cannot know the meaning "
        "of pixels that were never dark in the images it was fitted on: a fall to that value, at the image, is not a "
        "sign of failure.",
    ),
    Claim(
        number=5,
        statement="With a rate code, shallow networks lose factorization more abruptly than deep ones.",
        source="Sec. 3.4, Fig. 2d",
        figures=("2d",),
        plan=plan.shallow_and_deep,
        parts=(
            Part(
                "largest fall of factorization from one layer to the next, the shallowest network's minus the "
                "deepest's",
                difference(plan.shallow, plan.deep, of_curve(factorization, largest_fall)),
                ">",
                0,
                "any difference counts, in every seed",
            ),
        ),
        note="A deep network has more layers over which to spread the same fall. Rate codes learn slowly; networks "
        "that have not yet learned what they saw are counted too, as in the paper.",
    ),
    Claim(
        number=6,
        statement="The image has a different volume for held-out combinations than for seen ones.",
        source="Sec. 3.4, Fig. 2e-f, 11",
        figures=("2e", "2f", "11"),
        plan=bump_and_rate,
        parts=tuple(
            Part(
                f"|gap of log10 volume| between held-out and seen points at the image, {code} code",
                of_runs(code, image_gap),
                ">",
                DOUBLE,
                "twice the volume or half of it; the codes themselves and true bumps differ by less than a quarter",
            )
            for code in PAIR
        ),
        note="A gap of means: a map can be uneven, and uneven in the hole, without one.",
    ),
    Claim(
        number=18,
        statement="In MLPs factorization is lost more evenly over the layers than in CNNs, and more of it, and the "
        "volume in the hole changes in the opposite direction.",
        source="App. E.3, Fig. 13-14",
        figures=("13", "14"),
        plan=plan.cnn_and_mlp,
        parts=(
            Part(
                "largest fall over mean step, the CNN's minus the MLP's, the smaller of the two codes",
                in_both_codes(of_curve(factorization, unevenness), lambda mlp, cnn: cnn - mlp),
                ">",
                0,
                "any difference counts, in every seed",
            ),
            Part(
                "fall of factorization, the MLP's minus the CNN's, the smaller of the two codes",
                in_both_codes(factorization_fall, lambda mlp, cnn: mlp - cnn),
                ">",
                0,
                "any difference counts, in every seed",
            ),
            Part(
                "the MLP's gap of log10 volume at the image, above 0 if its sign differs from the CNN's, the smaller "
                "of the two codes",
                in_both_codes(signed_gap, opposite),
                ">",
                0,
                "the opposite sign in every seed",
            ),
        ),
        note="Both have the same depth; the CNN's first map is one layer more.",
    ),
)
