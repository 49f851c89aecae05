"""The figure "cures"."""

from composcope.papers.forced_rendering.cures.drawing import draw_cures
from composcope.papers.forced_rendering.cures.numbers import cures
from composcope.papers.forced_rendering.cures.plan import every_block
from composcope.study.panel import Panel

PANELS = (
    Panel(
        name="cures",
        title="The failure and its cures",
        see=(
            "Held-out images below the truth; a plus marks the true position of the bump. On the right, the share of"
            " all held-out bumps within 1 pixel of the true position, the mean over seeds. Each row has its own grey"
            " scale."
        ),
        plan=every_block,
        numbers=cures,
        draw=draw_cures,
        no_claim="An overview of our own; the claims rest on figures 3 and 4, which show the same runs.",
        first_seed="images",
    ),
)
