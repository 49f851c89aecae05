"""Figures 1d, 1e and 8 as values."""

from composcope.papers.forced_rendering.codes import plan
from composcope.papers.forced_rendering.similarity import drawing, numbers
from composcope.study.panel import Panel

PANELS = (
    Panel(
        "1d",
        "Held-out images as sums",
        "The decoder's image beside the sum of its images for x alone and y alone; grey: sums of shuffled positions.",
        plan.all_codes,
        numbers.sums,
        drawing.draw_sums,
    ),
    Panel(
        "1e",
        "Similarity of held-out to seen images",
        "Whether the decoder's matrices look more like the kernel of a shared x or y, or like that of x and y shared.",
        plan.bump_alone,
        numbers.heldout_similarity,
        drawing.draw_heldout_similarity,
    ),
    Panel(
        "8",
        "Similarity of all images",
        "Blocks are sets of images that share x or y; the lower right part compares held-out images with each other.",
        plan.bump_and_rate,
        numbers.matrices,
        drawing.draw_matrices,
    ),
)
