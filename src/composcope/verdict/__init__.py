"""Which known behaviour a decoder's held-out images show: the verdict."""

from composcope.verdict.judgement import Verdict, judge
from composcope.verdict.kinds import KINDS, NOT_LEARNED

__all__ = ["KINDS", "NOT_LEARNED", "Verdict", "judge"]
