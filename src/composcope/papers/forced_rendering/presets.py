"""The presets of this study; what each experiment is run at stands beside its plan."""

from composcope.study.preset import AUTHORS_SETTING, Preset

# Seeds below 10 were used while claims were being written; judging uses others.
FIRST_SEED = 10

QUICK = Preset(
    "quick", "every figure and claim at 16x16: a quarter of an hour on two cores", label="16x16", first_seed=FIRST_SEED
)
PAPER = Preset(
    "paper",
    "the authors' sizes and lengths: many hours on two cores, resumable",
    label=AUTHORS_SETTING,
    first_seed=FIRST_SEED,
)
TINY = Preset("tiny", "for tests: shows only that everything runs", label="8x8")

PRESETS = (QUICK, PAPER, TINY)
