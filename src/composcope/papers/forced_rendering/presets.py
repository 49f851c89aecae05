"""The presets of this study; what each experiment is run at stands beside its plan."""

from composcope.study.preset import AUTHORS_SETTING, Preset

# Seeds below 10 were used while claims were being written; judging uses others.
FIRST_SEED = 10

QUICK = Preset(
    "quick",
    "every figure and claim at reduced size, 16x16 mostly",
    label="16x16",
    labels={12: "N = 10 to 20", 16: "222 angles", 17: "222 angles"},
    first_seed=FIRST_SEED,
)
PAPER = Preset(
    "paper",
    "the authors' sizes and lengths: many hours on two cores, resumable",
    label=AUTHORS_SETTING,
    # Where no code is published, the settings follow the text, which leaves the training length, the coding of
    # stripes and the size of the corner open.
    labels={
        **dict.fromkeys((10, 11, 13, 14, 19, 22, 23), "the text's setting"),
        12: "N = 10 to 30",
        24: "28x28, our control",
    },
    first_seed=FIRST_SEED,
)
TINY = Preset("tiny", "for tests: shows only that everything runs", label="8x8")

PRESETS = (QUICK, PAPER, TINY)
