"""Which decoders of a rotated digit are trained."""

from dataclasses import dataclass, replace

from composcope.decoders.cnn import CNN
from composcope.encodings import Circle
from composcope.experiments.spec import Spec
from composcope.holdouts import Interval
from composcope.sampling import Everything
from composcope.study.plan import Plan
from composcope.study.preset import Preset
from composcope.tasks.rotation import RotationTask
from composcope.training import Training


@dataclass(frozen=True)
class Sizes:
    """What the decoders are trained at; `angles`: how many, evenly spaced over the circle."""

    angles: int
    width: int
    training: Training
    seeds: tuple[int, ...]


SIZES = {
    "quick": Sizes(222, 24, Training(epochs=50, l1=0.1, schedule="cosine"), seeds=(0, 1, 2)),
    "paper": Sizes(888, 64, Training(epochs=50, l1=0.1, schedule="cosine"), seeds=(0, 1, 2)),
    "tiny": Sizes(24, 4, Training(steps=3), seeds=(0, 1)),
}


def sizes_of(preset: Preset) -> Sizes:
    """The sizes of a preset, with the preset's seeds if it brings its own."""
    sizes = SIZES[preset.name]
    return replace(sizes, seeds=preset.seeds_or(sizes.seeds))


def gap(preset: Preset) -> Plan:
    """A handwritten 4, angles strictly between 160 and 200 degrees held out, a CNN with batch norm."""
    sizes = sizes_of(preset)
    decoder = CNN(depth=3, width=sizes.width, batch_norm=True, output="sigmoid")
    return {
        "rotation": tuple(
            Spec(
                task=RotationTask(angles=sizes.angles),
                holdout=Interval("angle", 160, 200, closed="neither"),
                encoding=Circle(),
                decoder=decoder,
                sampling=Everything(),
                training=sizes.training,
                seed=seed,
            )
            for seed in sizes.seeds
        )
    }
