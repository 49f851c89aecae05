"""The overview figure "cures": what composes where bumps alone do not. No claim rests on it."""

from composcope.papers.forced_rendering.cures.figures import PANELS
from composcope.study.claim import Claim

CLAIMS: tuple[Claim, ...] = ()

__all__ = ["CLAIMS", "PANELS"]
