"""Figure 9."""

from composcope.papers.forced_rendering.rotation.drawing import draw_rotation
from composcope.papers.forced_rendering.rotation.numbers import rotation
from composcope.papers.forced_rendering.rotation.plan import gap
from composcope.study.panel import Panel

PANELS = (
    Panel(
        name="9",
        title="A gap in the angles of a rotated digit",
        see=(
            "At the bottom, the decoder's images in the gap between the truth above them and the blend of the gap's"
            " edges below them; at the top, the error by angle and how fast each layer changes, the gap shaded."
        ),
        plan=gap,
        numbers=rotation,
        draw=draw_rotation,
        first_seed="embeddings and images",
    ),
)
