"""Claims 16, 17 and 31: what is drawn in a gap of angles, and what the layers do there."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.papers.forced_rendering.base import EQUAL, bump_alone
from composcope.papers.forced_rendering.rotation.figures import gap, hidden_names, in_gap, pace
from composcope.runs.run import Run
from composcope.study.claim import Claim, Part, Value, effect_of, of_runs
from composcope.study.evidence import Evidence
from composcope.study.layers import layer
from composcope.study.plan import together

EXACT_GAP = layer("geometry.volume.gap", "exact")


def blend_to_truth(run: Run) -> float:
    """MSE to the blend / MSE to the truth, over the gap."""
    outputs = in_gap(run)
    return _ratio(outputs.to_blend, outputs.to_truth)


def blend_to_edge(run: Run) -> float:
    """MSE to the blend / MSE to the image at the closer edge, over the gap."""
    outputs = in_gap(run)
    return _ratio(outputs.to_blend, outputs.to_edge)


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0 else math.nan


def blend_correlation(run: Run) -> float:
    """Mean correlation of the outputs with the blend."""
    return in_gap(run).comparison.correlation_with_blend.mean().item()


def truth_correlation(run: Run) -> float:
    """Mean correlation of the outputs with the truth."""
    return in_gap(run).comparison.correlation_with_truth.mean().item()


def hidden_paces(run: Run, trained: bool = True) -> Float[Tensor, "layers gap"]:
    """log2 of the pace in the gap by hidden layer, after or before training: 0 is the pace at seen angles."""
    heldout = run.split.mask
    layers = run.diagnosis.layers if trained else run.diagnosis.untrained or {}
    paces = [pace(layers[name], heldout)[heldout] for name in hidden_names(run.diagnosis) if name in layers]
    return torch.stack(paces).log2() if paces else torch.full((1, 1), torch.nan)


def mean_pace(run: Run) -> float:
    return hidden_paces(run).mean().item()


def late_pace(run: Run) -> float:
    """Mean log2 pace of the last hidden layer."""
    return hidden_paces(run)[-1].mean().item()


def largest_pace(run: Run) -> float:
    return hidden_paces(run).max().item()


def smallest_pace(run: Run) -> float:
    return hidden_paces(run).min().item()


def untrained_pace(run: Run) -> float:
    return hidden_paces(run, trained=False).mean().item()


def error_in_gap(run: Run) -> float:
    """log10 of MSE in the gap / MSE at seen angles."""
    return math.log10(run.error["heldout_mse"] / run.error["seen_mse"])


@effect_of("rotation", "bump")
def deformation_beside_bump(evidence: Evidence) -> dict[int, Value]:
    """|log10 of the stretch per factor in the hole over that outside|, last hidden layer, rotation minus bump code."""
    rotation = {run.spec.seed: abs(late_pace(run)) * math.log10(2) for run in evidence["rotation"]}
    bump = {
        run.spec.seed: abs(EXACT_GAP.at("last hidden")(run)) / 2 for run in evidence["bump"]
    }  # a volume has two factors
    return {seed: rotation[seed] - bump[seed] for seed in sorted(rotation.keys() & bump.keys())}


DOUBLING = "A doubling: in the hole of a failing bump decoder the volume falls by a factor of ten."

CLAIMS = (
    Claim(
        number=16,
        version=2,
        statement="In a gap of held-out angles the decoder draws the linear blend of the images at its two edges.",
        source="App. E.2, Fig. 9",
        figures=("9",),
        plan=gap,
        primary=(
            Part(
                "MSE to the blend / MSE to the truth",
                of_runs("rotation", blend_to_truth),
                "<",
                1,
                "Below 1 the outputs are closer to the blend than to what they should be.",
                learned=True,
            ),
            Part(
                "correlation with the blend",
                of_runs("rotation", blend_correlation),
                ">",
                0.71,
                "0.71 squared is a half: the blend explains more than half of the variance of the output's pixels.",
                learned=True,
            ),
        ),
        secondary=(
            Part(
                "MSE to the blend / MSE to the closer edge",
                of_runs("rotation", blend_to_edge),
                "<",
                1,
                "Above 1 the decoder repeats the closest seen image rather than blending two.",
                learned=True,
            ),
            Part(
                "correlation with the blend minus that with the truth",
                of_runs("rotation", lambda run: blend_correlation(run) - truth_correlation(run)),
                ">",
                0,
                EQUAL,
                learned=True,
            ),
        ),
        note=(
            "The blend itself correlates with the truth, so the correlation alone proves little; the two ratios say"
            " which of the candidates the output resembles."
        ),
    ),
    Claim(
        number=17,
        version=2,
        statement="The layers go smoothly through the gap of angles, without significant deformation.",
        source="App. E.2, Fig. 9b",
        figures=("9",),
        plan=gap,
        primary=(
            Part(
                "log2 of the pace in the gap, mean over hidden layers",
                of_runs("rotation", mean_pace),
                "within",
                1,
                DOUBLING,
                learned=True,
            ),
        ),
        secondary=(
            Part(
                "log2 of the pace in the gap, last hidden layer",
                of_runs("rotation", late_pace),
                "within",
                1,
                DOUBLING,
                learned=True,
            ),
            Part(
                "largest log2 pace at any angle of the gap and hidden layer",
                of_runs("rotation", largest_pace),
                "<",
                1,
                "A tear would cover most of the distance across the gap in one step, many times the seen median.",
                learned=True,
            ),
            Part(
                "smallest log2 pace at any angle of the gap and hidden layer",
                of_runs("rotation", smallest_pace),
                ">",
                -1,
                "As far below 0 as the previous part allows above.",
                learned=True,
            ),
            Part(
                "log2 of the pace in the gap, mean over hidden layers, after minus before training",
                of_runs("rotation", lambda run: mean_pace(run) - untrained_pace(run)),
                "within",
                1,
                DOUBLING,
                learned=True,
            ),
        ),
        note=(
            "The pace is how fast a layer's activations change with the angle, 1 at the median of seen angles. The"
            " paper looks at UMAP plots, which do not preserve distances; this is measured in the layers themselves."
            " The first map is linear in the code, so that its pace can hardly change; the image, whose pace figure 9"
            " shows, is not among the hidden layers."
        ),
    ),
    Claim(
        number=31,
        statement="The decoder fails in a gap of angles although its layers, unlike those of a bump decoder, are not"
        " deformed there.",
        source="App. E.2, Fig. 9",
        figures=("9",),
        plan=together(gap, bump_alone),
        primary=(
            Part(
                "log10 of MSE in the gap / MSE at seen angles",
                of_runs("rotation", error_in_gap),
                ">",
                0.3,
                "twice the error; a decoder that draws unseen angles has the same error there",
                learned=True,
            ),
            Part(
                "log2 of the pace in the gap, last hidden layer",
                of_runs("rotation", late_pace),
                "within",
                1,
                DOUBLING,
                learned=True,
            ),
            Part(
                "|log10 of the stretch per factor in the hole over that outside|, last hidden layer, rotation minus"
                " bump code",
                deformation_beside_bump,
                "<",
                0,
                EQUAL,
                learned=True,
            ),
        ),
        note="The stretch per factor is the pace of a rotation, and the square root of the volume of two factors.",
    ),
)
