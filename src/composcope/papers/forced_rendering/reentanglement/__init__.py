"""Claims 25, 32 and 33: whether the layers' re-entanglement, by any of its measures, goes with the failure."""

from composcope.papers.forced_rendering.reentanglement.claims import CLAIMS

PANELS = ()

__all__ = ["CLAIMS", "PANELS"]
