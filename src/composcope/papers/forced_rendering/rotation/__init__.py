"""A digit rotated through all angles except a gap: figure 9, claims 16 and 17."""

from composcope.papers.forced_rendering.rotation.claims import CLAIMS
from composcope.papers.forced_rendering.rotation.figures import PANELS

__all__ = ["CLAIMS", "PANELS"]
