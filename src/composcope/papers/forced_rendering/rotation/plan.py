"""Which decoders of a rotated digit are trained."""

from dataclasses import dataclass, replace

from composcope.decoders.base import Decoder
from composcope.decoders.cnn import CNN, DigitCNN
from composcope.encodings import Circle
from composcope.holdouts import Interval
from composcope.papers.forced_rendering.codes.plan import bump_alone
from composcope.papers.forced_rendering.presets import PAPER_SEEDS, QUICK_SEEDS
from composcope.runs.spec import Spec
from composcope.sampling import Everything
from composcope.study.plan import Plan
from composcope.study.preset import Preset
from composcope.tasks.rotation import RotationTask
from composcope.training import Training


@dataclass(frozen=True)
class Sizes:
    """What is trained, and for how long; `angles`: how many, evenly spaced over the circle."""

    angles: int
    decoder: Decoder
    training: Training
    seeds: tuple[int, ...]


AS_LONG = Training(epochs=200, weight_decay=1e-4, l1=0.1, schedule="cosine")
"""The authors' length and loss."""

AUTHORS = Training(epochs=200, weight_decay=1e-4, l1=0.1, schedule="plateau", clip=1.0, validation=0.1)


def small(width: int) -> CNN:
    return CNN(depth=2, width=width, batch_norm=True, output="sigmoid", last_init="transposed")


# 999 angles less [160, 200) are the authors' 888, a tenth of which they keep for validation.
SIZES = {
    "quick": Sizes(222, small(24), AS_LONG, seeds=QUICK_SEEDS),
    "paper": Sizes(999, DigitCNN(), AUTHORS, seeds=PAPER_SEEDS),
    "tiny": Sizes(24, small(4), Training(steps=3), seeds=(0, 1)),
}


def sizes_of(preset: Preset) -> Sizes:
    """The sizes of a preset, with the preset's seeds if it brings its own."""
    sizes = SIZES[preset.name]
    return replace(sizes, seeds=preset.seeds_or(sizes.seeds))


def gap_and_bump(preset: Preset) -> Plan:
    """The rotated digit and, for comparison, the bump code's base runs."""
    return {**gap(preset), **bump_alone(preset)}


def gap(preset: Preset) -> Plan:
    """A handwritten 4, angles from 160 up to 200 degrees held out, a CNN with batch norm."""
    sizes = sizes_of(preset)
    return {
        "rotation": tuple(
            Spec(
                task=RotationTask(angles=sizes.angles),
                holdout=Interval("angle", 160, 200, closed="left"),
                encoding=Circle(),
                decoder=sizes.decoder,
                sampling=Everything(),
                training=sizes.training,
                seed=seed,
            )
            for seed in sizes.seeds
        )
    }
