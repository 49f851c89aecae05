"""Figure 4c."""

from composcope.papers.forced_rendering.scaling.drawing import draw_scaling
from composcope.papers.forced_rendering.scaling.numbers import scaling
from composcope.papers.forced_rendering.scaling.plan import cells, most_runs
from composcope.papers.forced_rendering.scaling.search import needed, search_name
from composcope.study.panel import Panel

PANELS = (
    Panel(
        name="4c",
        title="Images needed against image size",
        see=(
            "How steeply each line rises: bumps alone against the dashed cube, stripes against the dashed straight"
            " line. Thin lines: between which counts each seed's threshold lies. Right: the accuracies behind it, one"
            " line per seed."
        ),
        plan=cells,
        numbers=scaling,
        draw=draw_scaling,
        needed=needed,
        most_runs=most_runs,
        diagnosed=False,
        search=search_name,
    ),
)
