"""Figures 3a to 3d and 6."""

from composcope.papers.forced_rendering.lowrank import drawing, numbers, plan
from composcope.papers.forced_rendering.volumes import evenness
from composcope.study.panel import Panel

PANELS = (
    Panel(
        name="3a",
        title="Low-rank rendering, step by step",
        see="Each value's code selects a matrix that is a sum of products of two vectors; the matrices of x and y are "
        "the input channels of a small conv net. Everything shown was read from a trained decoder at a held-out point.",
        plan=plan.both,
        numbers=numbers.walkthrough,
        draw=drawing.draw_walkthrough,
        no_claim="it explains the architecture",
        diagnosed=False,
        first_seed="everything",
    ),
    Panel(
        name="3b",
        title="Embeddings of one x and one y, without and with penalties",
        see="Whether the embedding of x is a vertical band and that of y a horizontal one. Red and blue are signs, "
        "each matrix on its own scale; rank and share along the own axis are means over all values and seeds.",
        plan=plan.none_and_both,
        numbers=numbers.middle_embeddings,
        draw=drawing.draw_pair,
        diagnosed=False,
        first_seed="matrices",
    ),
    Panel(
        name="3c",
        title="Volume element without and with penalties",
        see="How even the colour is, above all across the line around held-out (x, y). The number is the spread: "
        "the standard deviation of log10 volume over the grid without its border, mean over seeds.",
        plan=plan.none_and_both,
        numbers=evenness,
        draw=drawing.draw_volume,
        first_seed="maps",
    ),
    Panel(
        name="3d",
        title="Ablation of the penalties",
        see="Which penalties reduce the held-out error below that of a blank image, at what cost on seen points, and "
        "whether the bumps are then within 1 pixel of their true positions.",
        plan=plan.ablation,
        numbers=numbers.ablation_errors,
        draw=drawing.draw_ablation,
        diagnosed=False,
    ),
    Panel(
        name="6",
        title="Embedding matrices of all values",
        see="Whether the bands move with the value and lie along its own axis, or differ from value to value. Values "
        "ascend from left to right, row by row from the top.",
        plan=plan.none_and_both,
        numbers=numbers.all_embeddings,
        draw=drawing.draw_all,
        diagnosed=False,
        first_seed="matrices",
    ),
)
