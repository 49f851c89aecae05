"""The cure by data, stripes and a few bumps: figures 4a, 4b, 4d, 4e, 4f, 7 and 15; claims 10, 11, 13, 14, 22 and 23."""

from composcope.papers.forced_rendering.stripes import claims, claims_units
from composcope.papers.forced_rendering.stripes.figures import PANELS

CLAIMS = (*claims.CLAIMS, *claims_units.CLAIMS)

__all__ = ["CLAIMS", "PANELS"]
