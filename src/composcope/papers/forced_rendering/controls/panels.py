"""The figure of controls as a value."""

from composcope.papers.forced_rendering.controls import drawing, numbers, plan
from composcope.study.panel import Panel

PANELS = (
    Panel(
        "controls",
        "Another hole, no hole, the reverse map",
        "Whether the failure follows the hole: in the middle, in a corner, nowhere (dotted: where the square would "
        "be); and the map from images to codes.",
        plan.all_controls,
        numbers.controls,
        drawing.draw_controls,
        first_seed="maps",
    ),
)
