"""Claims 16 and 17: what is drawn in a gap of angles, and what the layers do there."""

import math

import torch

from composcope.paper.evidence import Evidence, Run
from composcope.paper.ledger import Claim, Part
from composcope.paper.rotation import gap, hidden, in_gap, pace


def blend_to_truth(evidence: Evidence) -> list[float]:
    """MSE to the blend / MSE to the truth, over the gap."""
    return [_ratio(found.to_blend, found.to_truth) for found in map(in_gap, evidence["rotation"])]


def blend_to_edge(evidence: Evidence) -> list[float]:
    """MSE to the blend / MSE to the nearer edge's image, over the gap."""
    return [_ratio(found.to_blend, found.to_edge) for found in map(in_gap, evidence["rotation"])]


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0 else math.inf


def likeness(evidence: Evidence) -> list[float]:
    """Mean correlation of the outputs with the blend."""
    return [found.found.correlation_with_blend.mean().item() for found in map(in_gap, evidence["rotation"])]


def _paces(run: Run) -> torch.Tensor:
    """The pace in the gap of every hidden layer, one after the other."""
    held = run.parts.mask
    layers = [run.diagnosis.layers[name] for name in hidden(run.diagnosis)]
    return torch.cat([pace(layer, held)[held] for layer in layers if layer.geometry is not None])


def largest_pace(evidence: Evidence) -> list[float]:
    return [_paces(run).max().item() for run in evidence["rotation"]]


def least_pace(evidence: Evidence) -> list[float]:
    return [_paces(run).min().item() for run in evidence["rotation"]]


CLAIMS = (
    Claim(
        number=16,
        statement="In a gap of withheld angles the decoder draws the linear blend of the images at its two edges.",
        where="App. E.2, Fig. 9",
        figures=("9",),
        plan=gap,
        parts=(
            Part(
                "MSE to the blend / MSE to the truth",
                blend_to_truth,
                "<",
                1,
                "Below 1 the outputs are nearer to the blend than to what they should be.",
            ),
            Part(
                "MSE to the blend / MSE to the nearer edge",
                blend_to_edge,
                "<",
                1,
                "Above 1 the decoder would rather repeat the nearest seen image than blend two.",
            ),
            Part(
                "correlation with the blend",
                likeness,
                ">",
                0.71,
                "0.71 squared is a half: the blend tells more than half of the variance of the output's pixels.",
            ),
        ),
        known=(
            "The blend itself correlates with the truth, so the correlation alone proves little; the two ratios say"
            " which of the candidates the output is. It is near the blend, not equal to it."
        ),
    ),
    Claim(
        number=17,
        statement="The layers go smoothly through the gap of angles: they neither tear nor collapse there.",
        where="App. E.2, Fig. 9b",
        figures=("9",),
        plan=gap,
        parts=(
            Part(
                "largest pace in the gap, hidden layers",
                largest_pace,
                "<",
                2,
                "The pace is how fast the layer's activations change with the angle, 1 at the median of seen angles. A"
                " tear would put most of the way across the gap into one step, many times the median.",
            ),
            Part(
                "least pace in the gap, hidden layers",
                least_pace,
                ">",
                0.5,
                "As far below 1 as the part before allows above: a factor of two. In the hole of a failing bump decoder"
                " the volume falls by a factor of ten.",
            ),
        ),
        known=(
            "Smooth is not undeformed: an untrained network keeps its pace in the gap to a few per cent, so what is"
            " slower was learned. The paper looks at UMAP pictures, which do not keep distances; this is measured in"
            " the layers themselves."
        ),
    ),
)
