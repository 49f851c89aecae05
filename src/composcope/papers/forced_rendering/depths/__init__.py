"""Figures 2 and 10 to 14, claims 4, 5, 6 and 18: from layer to layer, for networks of several depths and kinds."""

from composcope.papers.forced_rendering.depths.claims import CLAIMS
from composcope.papers.forced_rendering.depths.figures import PANELS

__all__ = ["CLAIMS", "PANELS"]
