"""The cure by architecture, low-rank rendering in pixel space: figures 3a to 3d and 6, claims 7, 8 and 9."""

from composcope.papers.forced_rendering.lowrank.claims import CLAIMS
from composcope.papers.forced_rendering.lowrank.figures import PANELS

__all__ = ["CLAIMS", "PANELS"]
