"""The presets of this study; what each experiment is run at stands beside its plan."""

from composcope.study.preset import Preset

QUICK = Preset("quick", "every figure and claim at reduced size: ten minutes on two cores", label="16x16")
PAPER = Preset("paper", "the authors' sizes and lengths: days on two cores", label="authors' setting")
TINY = Preset("tiny", "for tests: shows only that everything runs", label="8x8")

PRESETS = (QUICK, PAPER, TINY)
