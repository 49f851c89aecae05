"""The figure of controls, claims 19 and 24: another hole, no hole, and the reverse map from images to codes."""

from composcope.papers.forced_rendering.controls.claims import CLAIMS
from composcope.papers.forced_rendering.controls.figures import PANELS

__all__ = ["CLAIMS", "PANELS"]
