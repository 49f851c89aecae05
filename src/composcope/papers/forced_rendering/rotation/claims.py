"""Claims 16 and 17: what is drawn in a gap of angles, and what the layers do there."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.experiments.run import Run
from composcope.papers.forced_rendering.rotation.numbers import hidden, in_gap, pace
from composcope.papers.forced_rendering.rotation.plan import gap
from composcope.study.claim import Claim, Part
from composcope.study.effects import of_runs


def blend_to_truth(run: Run) -> float:
    """MSE to the blend / MSE to the truth, over the gap."""
    outputs = in_gap(run)
    return _ratio(outputs.to_blend, outputs.to_truth)


def blend_to_edge(run: Run) -> float:
    """MSE to the blend / MSE to the image at the closer edge, over the gap."""
    outputs = in_gap(run)
    return _ratio(outputs.to_blend, outputs.to_edge)


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0 else math.inf


def blend_correlation(run: Run) -> float:
    """Mean correlation of the outputs with the blend."""
    return in_gap(run).comparison.correlation_with_blend.mean().item()


def hidden_paces(run: Run) -> Float[Tensor, "n"]:
    """The pace in the gap, all hidden layers concatenated."""
    heldout = run.split.mask
    layers = [run.diagnosis.layers[name] for name in hidden(run.diagnosis)]
    return torch.cat([pace(layer, heldout)[heldout] for layer in layers if layer.geometry is not None])


def largest_pace(run: Run) -> float:
    return hidden_paces(run).max().item()


def smallest_pace(run: Run) -> float:
    return hidden_paces(run).min().item()


CLAIMS = (
    Claim(
        number=16,
        statement="In a gap of held-out angles the decoder draws the linear blend of the images at its two edges.",
        source="App. E.2, Fig. 9",
        figures=("9",),
        plan=gap,
        parts=(
            Part(
                "MSE to the blend / MSE to the truth",
                of_runs("rotation", blend_to_truth),
                "<",
                1,
                "Below 1 the outputs are closer to the blend than to what they should be.",
            ),
            Part(
                "MSE to the blend / MSE to the closer edge",
                of_runs("rotation", blend_to_edge),
                "<",
                1,
                "Above 1 the decoder repeats the closest seen image rather than blending two.",
            ),
            Part(
                "correlation with the blend",
                of_runs("rotation", blend_correlation),
                ">",
                0.71,
                "0.71 squared is a half: the blend explains more than half of the variance of the output's pixels.",
            ),
        ),
        note=(
            "The blend itself correlates with the truth, so the correlation alone proves little; the two ratios say"
            " which of the candidates the output resembles. It is close to the blend, not equal to it."
        ),
    ),
    Claim(
        number=17,
        statement="The layers go smoothly through the gap of angles: they neither tear nor collapse there.",
        source="App. E.2, Fig. 9b",
        figures=("9",),
        plan=gap,
        parts=(
            Part(
                "largest pace in the gap, hidden layers",
                of_runs("rotation", largest_pace),
                "<",
                2,
                "The pace is how fast the layer's activations change with the angle, 1 at the median of seen angles. A"
                " tear would cover most of the distance across the gap in one step, many times the median.",
            ),
            Part(
                "smallest pace in the gap, hidden layers",
                of_runs("rotation", smallest_pace),
                ">",
                0.5,
                "A factor of two, as far below 1 as the previous part allows above. In the hole of a failing bump"
                " decoder the volume falls by a factor of ten.",
            ),
        ),
        note=(
            "Smooth does not mean undeformed: an untrained network keeps its pace in the gap to within a few per cent,"
            " so a slower pace was learned. The paper looks at UMAP plots, which do not preserve distances; this is"
            " measured in the layers themselves."
        ),
    ),
)
