"""Which known behaviour a decoder's held-out images show: the verdict."""

from composcope.verdict.classes import KINDS, NOT_LEARNED
from composcope.verdict.verdict import Verdict, classify

__all__ = ["KINDS", "NOT_LEARNED", "Verdict", "classify"]
