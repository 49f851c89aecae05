"""Claims 16, 17 and 31: what is drawn in a gap of angles, and what the layers do there."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.papers.forced_rendering.errors import EQUAL
from composcope.papers.forced_rendering.gates import learned
from composcope.papers.forced_rendering.rotation.numbers import hidden, in_gap, pace
from composcope.papers.forced_rendering.rotation.plan import gap, gap_and_bump
from composcope.papers.forced_rendering.smoothness import exact, late_gap
from composcope.runs.run import Run
from composcope.study.claim import Claim, Part, Value
from composcope.study.effects import of_runs
from composcope.study.evidence import Evidence


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
    paces = [pace(layers[name], heldout)[heldout] for name in hidden(run.diagnosis) if name in layers]
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


def deformation_beside_bump(evidence: Evidence) -> dict[int, Value]:
    """|log10 of the stretch per factor in the hole over that outside|, last hidden layer, rotation minus bump code."""
    rotation = {run.spec.seed: abs(late_pace(run)) * math.log10(2) for run in evidence["rotation"]}
    bump = {run.spec.seed: abs(late_gap(exact)(run)) / 2 for run in evidence["bump"]}  # a volume has two factors
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
                learned(of_runs("rotation", blend_to_truth), "rotation"),
                "<",
                1,
                "Below 1 the outputs are closer to the blend than to what they should be.",
            ),
            Part(
                "correlation with the blend",
                learned(of_runs("rotation", blend_correlation), "rotation"),
                ">",
                0.71,
                "0.71 squared is a half: the blend explains more than half of the variance of the output's pixels.",
            ),
        ),
        secondary=(
            Part(
                "MSE to the blend / MSE to the closer edge",
                learned(of_runs("rotation", blend_to_edge), "rotation"),
                "<",
                1,
                "Above 1 the decoder repeats the closest seen image rather than blending two.",
            ),
            Part(
                "correlation with the blend minus that with the truth",
                learned(of_runs("rotation", lambda run: blend_correlation(run) - truth_correlation(run)), "rotation"),
                ">",
                0,
                EQUAL,
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
                learned(of_runs("rotation", mean_pace), "rotation"),
                "within",
                1,
                DOUBLING,
            ),
        ),
        secondary=(
            Part(
                "log2 of the pace in the gap, last hidden layer",
                learned(of_runs("rotation", late_pace), "rotation"),
                "within",
                1,
                DOUBLING,
            ),
            Part(
                "largest log2 pace at any angle of the gap and hidden layer",
                learned(of_runs("rotation", largest_pace), "rotation"),
                "<",
                1,
                "A tear would cover most of the distance across the gap in one step, many times the seen median.",
            ),
            Part(
                "smallest log2 pace at any angle of the gap and hidden layer",
                learned(of_runs("rotation", smallest_pace), "rotation"),
                ">",
                -1,
                "As far below 0 as the previous part allows above.",
            ),
            Part(
                "log2 of the pace in the gap, mean over hidden layers, after minus before training",
                learned(of_runs("rotation", lambda run: mean_pace(run) - untrained_pace(run)), "rotation"),
                "within",
                1,
                DOUBLING,
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
        plan=gap_and_bump,
        primary=(
            Part(
                "log10 of MSE in the gap / MSE at seen angles",
                learned(of_runs("rotation", error_in_gap), "rotation"),
                ">",
                0.3,
                "twice the error; a decoder that draws unseen angles has the same error there",
            ),
            Part(
                "log2 of the pace in the gap, last hidden layer",
                learned(of_runs("rotation", late_pace), "rotation"),
                "within",
                1,
                DOUBLING,
            ),
            Part(
                "|log10 of the stretch per factor in the hole over that outside|, last hidden layer, rotation minus"
                " bump code",
                learned(deformation_beside_bump, "rotation", "bump"),
                "<",
                0,
                EQUAL,
            ),
        ),
        note="The stretch per factor is the pace of a rotation, and the square root of the volume of two factors.",
    ),
)
