"""Figures 1d, 1e and 8 as values."""

from composcope.papers.forced_rendering.similarity import drawing, numbers, plan
from composcope.study.panel import Panel

PANELS = (
    Panel(
        "1d",
        "Held-out images as sums",
        "The decoder's image beside the sum of its images for x alone and y alone, in the inner part of the hole; "
        "grey: sums of shuffled positions.",
        plan.all_sums,
        numbers.sums,
        drawing.draw_sums,
        partial=True,
        essential=("bump",),
        first_seed="images",
    ),
    Panel(
        "1e",
        "Similarity of held-out to seen images",
        "Whether the decoder's matrices look more like the kernel of a shared x or y, or like that of x and y shared.",
        plan.short_bump,
        numbers.heldout_similarity,
        drawing.draw_heldout_similarity,
        first_seed="matrices",
    ),
    Panel(
        "8",
        "Similarity of all images",
        "Whether images of the outlined blocks, seen with seen and held-out with held-out, are more alike than images "
        "across; of grids with more than 400 points, every second x and y.",
        plan.short,
        numbers.matrices,
        drawing.draw_matrices,
        first_seed="matrices",
    ),
)
