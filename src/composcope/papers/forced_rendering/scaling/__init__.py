"""How many training images are needed as images grow, with stripes and with bumps alone: figure 4c, claim 12."""

from composcope.papers.forced_rendering.scaling.claims import CLAIMS
from composcope.papers.forced_rendering.scaling.figures import PANELS

__all__ = ["CLAIMS", "PANELS"]
