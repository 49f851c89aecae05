"""Claims 4, 5, 6, 18, 28 and 29: what happens to factors and volume from layer to layer, in CNNs and in MLPs.

The authors measure the hidden layers, by differences on the grid; so does every primary statement here.
"""

import math

from composcope.measures.error import LEARNED
from composcope.papers.forced_rendering.base import LARGE, bump_and_rate, heldout_map, heldout_share, seen_share
from composcope.papers.forced_rendering.depths.figures import (
    PAIR,
    cnn_and_mlp,
    compared,
    deep,
    long_mlp,
    long_mlps,
    shallow,
    shallow_and_deep,
)
from composcope.papers.forced_rendering.layers import GAP, GRID_GAP
from composcope.papers.forced_rendering.volumes import distortions
from composcope.runs.run import Run
from composcope.study.claim import Claim, Part, difference, magnitude, of_runs
from composcope.study.layers import fall, hidden, largest_fall, layer, layer_trend, steadiness

DOUBLE = math.log10(2)
READOUT = layer("probes.*.cross_validated")
HELDOUT_READOUT = layer("probes.*.heldout")
# The mean over the grid of 1 - |g_xy| / (|g_xx| + |g_yy|) as in eq. 7, and the ratio of means by differences that the
# authors' code computes.
FACTORIZATION = layer("geometry.factorization.mean_of_ratios")
GRID_FACTORIZATION = layer("geometry.factorization.ratio_of_means", "differences")
ADDITIVE = layer("linear_factorization.main_effects")
ANY = "any difference counts; the spread over seeds decides whether it is noise"
FALLS = "the paper says that it decays, not by how much"
LEARNED_FALL = "otherwise random layers are the cause, not what was learned"


def growing_distortion(run: Run) -> float:
    """Distortion of the whole map in the last hidden layer minus that in the first."""
    everywhere = heldout_map(run).new_ones(run.diagnosis.sizes)
    curve = distortions(run, everywhere)
    return float(curve[-1] - curve[1])


def distortion_of_hole(run: Run) -> float:
    """Distortion of the held-out region in the last hidden layer minus that of the seen region."""
    hole = heldout_map(run)
    return float(distortions(run, hole)[-1] - distortions(run, ~hole)[-1])


def _decay(code: str) -> tuple[Part, ...]:
    return (
        Part(
            f"{code} code: fall of the cross-validated probes' R2 from the input to the last hidden layer, after minus "
            "before training",
            of_runs(code, READOUT.beyond_untrained(fall)),
            ">",
            0.0,
            LEARNED_FALL,
        ),
        Part(
            f"{code} code: fall of factorization (eq. 7, exact) from the input to the last hidden layer, after minus "
            "before training",
            of_runs(code, FACTORIZATION.beyond_untrained(fall)),
            ">",
            0.0,
            LEARNED_FALL,
        ),
    )


def _secondary_decay(code: str) -> tuple[Part, ...]:
    return (
        Part(
            f"{code} code: how much more the R2 of probes fitted on seen and scored on held-out points falls than "
            "before training",
            of_runs(code, HELDOUT_READOUT.beyond_untrained(fall)),
            ">",
            0.0,
            LEARNED_FALL,
        ),
        Part(
            f"{code} code: fall of the cross-validated probes' R2 from the first to the last hidden layer",
            of_runs(code, READOUT.of_curve(hidden(fall))),
            ">",
            0.0,
            FALLS,
        ),
        Part(
            f"{code} code: fall of factorization (differences, ratio of means) from the first to the last hidden layer",
            of_runs(code, GRID_FACTORIZATION.of_curve(hidden(fall))),
            ">",
            0.0,
            FALLS,
        ),
        Part(
            f"{code} code: rank correlation of factorization (differences, ratio of means) with the layer's index",
            of_runs(code, GRID_FACTORIZATION.of_curve(layer_trend)),
            "<",
            -0.5,
            "the fall goes on from layer to layer, with few exceptions, instead of happening once",
        ),
    )


def _mixed(code: str) -> tuple[Part, ...]:
    return (
        Part(
            f"{code} code: share of the last hidden layer's variance that x and y explain only together",
            of_runs(code, ADDITIVE.of_curve(lambda curve: 1 - curve[-1].item())),
            ">",
            0.25,
            "a quarter of the variance; a code has none",
        ),
        Part(
            f"{code} code: that share, last hidden layer minus first",
            of_runs(code, ADDITIVE.of_curve(hidden(fall))),
            ">",
            0.0,
            "the paper says 'particularly near the final decoding', not by how much",
        ),
    )


def _mixed_by_training(code: str) -> Part:
    return Part(
        f"{code} code: that share at the last hidden layer, after minus before training",
        of_runs(code, ADDITIVE.beyond_untrained(fall)),
        ">",
        0.0,
        LEARNED_FALL,
    )


def _like_cnns(code: str) -> tuple[Part, ...]:
    key = long_mlp(code)
    return (
        Part(
            f"{code} code: held-out MSE / blank MSE of MLPs that have learned what they saw",
            of_runs(key, heldout_share),
            ">",
            0.5,
            LARGE,
            learned=True,
        ),
        Part(
            f"{code} code: fall of factorization (eq. 7, exact) from the input to the last hidden layer of such MLPs, "
            "after minus before training",
            of_runs(key, FACTORIZATION.beyond_untrained(fall)),
            ">",
            0.0,
            LEARNED_FALL,
            learned=True,
        ),
    )


def _like_cnns_volume(code: str) -> Part:
    return Part(
        f"{code} code: |gap of log10 volume| between held-out and seen points at the last hidden layer of such MLPs "
        "(exact derivatives)",
        of_runs(long_mlp(code), magnitude(GAP.at("last hidden"))),
        ">",
        DOUBLE,
        "twice the volume or half of it, as is asked of CNNs",
        learned=True,
    )


def _distorted(code: str) -> tuple[Part, ...]:
    return (
        Part(
            f"{code} code: distortion of log10 volume in the last hidden layer minus that in the first (differences)",
            of_runs(code, growing_distortion),
            ">",
            0.0,
            "the paper says that distortion grows with the layer, not by how much",
        ),
        Part(
            f"{code} code: distortion in the hole minus that of seen points, last hidden layer (differences)",
            of_runs(code, distortion_of_hole),
            ">",
            0.0,
            "the paper says 'especially' in the hole, not by how much",
        ),
    )


def _warped(code: str) -> tuple[Part, ...]:
    return (
        Part(
            f"{code} code: the MLP's gap of log10 volume at the last hidden layer (differences)",
            of_runs(compared("MLP", code), GRID_GAP.at("last hidden")),
            ">",
            0.0,
            "the hole takes up more volume than what was seen",
        ),
        Part(
            f"{code} code: the CNN's gap of log10 volume at the last hidden layer (differences)",
            of_runs(compared("CNN", code), GRID_GAP.at("last hidden")),
            "<",
            0.0,
            "the hole takes up less volume than what was seen: the opposite",
        ),
    )


def _warped_by_training(code: str) -> tuple[Part, ...]:
    gap = f"{code} code: the MLP's gap of log10 volume at the last hidden layer"
    return (
        Part(
            f"{gap} (exact derivatives)",
            of_runs(compared("MLP", code), GAP.at("last hidden")),
            ">",
            0.0,
            "differences over a whole grid step also see how the map bends",
        ),
        Part(
            f"{gap} (differences), after minus before training",
            of_runs(compared("MLP", code), GRID_GAP.beyond_untrained(lambda curve: curve[-1].item())),
            ">",
            0.0,
            "otherwise random layers are the cause, not what was learned",
        ),
    )


def _degraded(code: str) -> tuple[Part, ...]:
    curve = "factorization (differences, ratio of means)"
    return (
        Part(
            f"{code} code, more drastic: {curve} at the last hidden layer, the CNN's minus the MLP's",
            difference(compared("CNN", code), compared("MLP", code), GRID_FACTORIZATION.at("last hidden")),
            ">",
            0.0,
            ANY,
        ),
        Part(
            f"{code} code, smoother: net fall of {curve} over its total variation, the MLP's minus the CNN's",
            difference(compared("MLP", code), compared("CNN", code), GRID_FACTORIZATION.of_curve(steadiness)),
            ">",
            0.0,
            ANY,
        ),
    )


CLAIMS = (
    Claim(
        number=4,
        statement="From layer to layer, linear readouts of x and y get worse and the factors' directions less "
        "perpendicular, with both codes.",
        source="Sec. 3.4, Fig. 2a-d, 12",
        figures=("2a", "2b", "2c", "2d", "12"),
        plan=bump_and_rate,
        primary=tuple(part for code in PAIR for part in _decay(code)),
        secondary=tuple(part for code in PAIR for part in _secondary_decay(code)),
        note="The authors score probes on the points they were fitted on, which gives 1 for any layer with more units "
        "than points: all layers of these CNNs. Their curve cannot be had from their code, and cross-validated probes "
        "stand in for it. Both scores are at their maximum at the input and fall in untrained networks too, so the "
        "primary statement is about what training adds. Up to version 3 it was about the authors' ratio of means by "
        "differences over the hidden layers; eq. 7 as printed is a mean of ratios. It was restated after a look at "
        "seeds 10 to 14, which do not count.",
        version=4,
    ),
    Claim(
        number=5,
        statement="With a rate code, shallow networks lose factorization more abruptly than deep ones.",
        source="Sec. 3.4, Fig. 2d",
        figures=("2d",),
        plan=shallow_and_deep,
        primary=(
            Part(
                "largest fall of factorization (differences, ratio of means) from one layer to the next up to the last "
                "hidden one, the shallow network's minus the deep one's",
                difference(shallow, deep, GRID_FACTORIZATION.of_curve(largest_fall)),
                ">",
                0.0,
                ANY,
            ),
        ),
        secondary=(
            Part(
                "the same of exact derivatives and the mean of ratios",
                difference(shallow, deep, FACTORIZATION.of_curve(largest_fall)),
                ">",
                0.0,
                ANY,
            ),
            Part(
                "how much more the largest fall exceeds that before training, the shallow network's minus the deep "
                "one's (differences, ratio of means)",
                difference(shallow, deep, GRID_FACTORIZATION.beyond_untrained(largest_fall)),
                ">",
                0.0,
                "otherwise depth alone is the cause, not what was learned",
            ),
        ),
        note="A deep network has more layers over which to spread the same fall. Networks that have not yet learned "
        "what they saw are counted too: the paper makes no exception, and the claim is about layers, not about images. "
        "The last secondary part adds nothing: networks of one seed start with the same first layers, where the "
        "largest fall before training is, so that it cancels and the part equals the primary one.",
        version=2,
    ),
    Claim(
        number=6,
        statement="The volume is distorted more from layer to layer, and in the hole more than elsewhere.",
        source="Sec. 3.4, Fig. 2e-f, 11",
        figures=("2e", "2f", "11"),
        plan=bump_and_rate,
        primary=tuple(part for code in PAIR for part in _distorted(code)),
        secondary=(
            *(
                Part(
                    f"{code} code: |gap of log10 volume| between held-out and seen points at the last hidden layer "
                    "(exact derivatives)",
                    of_runs(code, magnitude(GAP.at("last hidden"))),
                    ">",
                    DOUBLE,
                    "twice the volume or half of it; the codes themselves and true bumps differ by less than a quarter",
                )
                for code in PAIR
            ),
            *(
                Part(
                    f"{code} code: the same at the image",
                    of_runs(code, magnitude(GAP.at("image"))),
                    ">",
                    DOUBLE,
                    "as at the last hidden layer",
                )
                for code in PAIR
            ),
        ),
        note="Distortion of a region: the root mean square of log10 volume minus its mean over seen points, without "
        "the border of the grid, where differences are one-sided. A gap is a difference of means: a map can be "
        "distorted without one.",
        version=2,
    ),
    Claim(
        number=18,
        statement="In MLPs the volume in the hole changes in the opposite direction from CNNs, and factorization is "
        "lost more smoothly and more of it.",
        source="App. E.3, Fig. 13-14",
        figures=("13", "14"),
        plan=cnn_and_mlp,
        primary=(*_warped("bump"), *_degraded("bump")),
        secondary=(*_warped_by_training("bump"), *_warped("rate"), *_degraded("rate")),
        note="The MLP has as many hidden layers as the CNN, whose first map is one layer more than its depth. The "
        "primary statement is of the bump code; the paper does not say whether it means both. At the authors' length "
        "of training these MLPs have hardly learned what they saw (seen MSE / blank MSE 0.8 and more with the bump "
        "code); the claim is about layers, so that none is excluded. Smoothness was the largest fall over the mean "
        "step until version 4, which was written after a look at seeds 10 to 19: net fall over total variation is 1 "
        "for a curve that only falls.",
        version=4,
    ),
    Claim(
        number=28,
        statement="The layers mix the factors: large cross terms appear, particularly near the image.",
        source="Sec. 3.4",
        figures=("2e", "2f"),
        plan=bump_and_rate,
        primary=tuple(part for code in PAIR for part in _mixed(code)),
        secondary=tuple(_mixed_by_training(code) for code in PAIR),
        note="Cross terms are what remains of a layer's activations when the best sum of a function of x and one of y "
        "is subtracted (linear factorization, eqs. 22 to 24).",
    ),
    Claim(
        number=29,
        statement="MLPs behave like CNNs: they fail on held-out combinations, and their layers lose factorization.",
        source="Sec. 3.1, App. E.3",
        figures=("13", "14"),
        plan=long_mlps,
        primary=tuple(part for code in PAIR for part in _like_cnns(code)),
        secondary=(
            *(_like_cnns_volume(code) for code in PAIR),
            *(
                Part(
                    f"{code} code: seen MSE / blank MSE of MLPs at the authors' length of training",
                    of_runs(compared("MLP", code), seen_share),
                    "<",
                    LEARNED,
                    "a decoder that has not learned what it saw says nothing about composition",
                )
                for code in PAIR
            ),
        ),
        note="At the authors' length of training these MLPs have not learned what they saw, as the last parts show, so "
        "the statement is about a variant that is trained 40 times as long. The length was chosen with seed 0.",
    ),
)
