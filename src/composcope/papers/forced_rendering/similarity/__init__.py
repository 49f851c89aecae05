"""Figures 1d, 1e and 8, claims 2, 3 and 15: held-out images as sums of seen ones, and which images are alike."""

from composcope.papers.forced_rendering.similarity.claims import CLAIMS
from composcope.papers.forced_rendering.similarity.figures import PANELS

__all__ = ["CLAIMS", "PANELS"]
