"""Figures 1a to 1c and 5, claims 1, 20 and 21: with every input code, the decoder fails on held-out combinations."""

from composcope.papers.forced_rendering.codes.claims import CLAIMS
from composcope.papers.forced_rendering.codes.figures import PANELS

__all__ = ["CLAIMS", "PANELS"]
