"""Which runs may be tried: image sizes, and for each size ever more training images."""

from dataclasses import dataclass, replace
from functools import cache

from composcope.decoders.cnn import CNN
from composcope.encodings import Bump
from composcope.experiments.spec import Spec
from composcope.holdouts import Square
from composcope.sampling import Draws, Sampling, Stripes
from composcope.study.plan import Plan
from composcope.study.preset import Preset
from composcope.tasks.bump import BumpTask
from composcope.training import Training

KINDS = ("bumps", "stripes")
SIX = tuple(range(10, 16))  # a sign test of effects known only by bounds needs at least six seeds


@dataclass(frozen=True)
class Sizes:
    """What the searches are run at.

    - `sizes`: sides of the image; `counts`: numbers of bumps tried, each twice the one before, the last is the cap.
    """

    sizes: tuple[int, ...]
    counts: tuple[int, ...]
    width: int
    training: Training
    seeds: tuple[int, ...]


SIZES = {
    "quick": Sizes(
        sizes=(10, 15, 20),
        counts=(8, 16, 32, 64, 128, 256, 512),
        width=16,
        training=Training(steps=600, batch=16),
        seeds=SIX,
    ),
    "paper": Sizes(
        sizes=(10, 15, 20, 25, 30),
        counts=(16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192),
        width=32,
        training=Training(steps=3000),
        seeds=SIX,
    ),
    "tiny": Sizes(sizes=(8, 10), counts=(4, 8), width=4, training=Training(steps=3, batch=4), seeds=(0, 1)),
}


def sizes_of(preset: Preset) -> Sizes:
    """The sizes of a preset, with the preset's seeds if it brings its own."""
    sizes = SIZES[preset.name]
    return replace(sizes, seeds=preset.seeds_or(sizes.seeds))


@dataclass(frozen=True)
class Cell:
    """Runs on one kind of training image, with images of this side and with this many of them.

    >>> Cell("bumps", 12, 64).label
    'bumps, size 12, 64 images'
    """

    kind: str
    size: int
    images: int

    @property
    def label(self) -> str:
        return f"{self.kind}, size {self.size}, {self.images} images"


@cache
def scaling_spec(preset: Preset, size: int, sampling: Sampling, seed: int) -> Spec:
    """Bright bumps at real-valued centres, a hole of about 0.4 of the side in the middle, a fixed number of steps."""
    sizes = sizes_of(preset)
    return Spec(
        task=BumpTask(size, polarity="bright", continuous=True),
        holdout=Square(round(0.3 * size), round(0.7 * size) - 1),
        encoding=Bump(),
        decoder=CNN(depth=3, width=sizes.width),
        sampling=sampling,
        training=sizes.training,
        seed=seed,
    )


def samplings(preset: Preset, size: int) -> dict[str, list[Sampling]]:
    """What is tried at a size, in ascending order: bumps from half the side to the cap, stripes up to all 2N."""
    return {
        "bumps": [Draws(count) for count in sizes_of(preset).counts if 2 * count >= size],
        "stripes": [Stripes(stripes=2 * size // part) for part in (8, 4, 2, 1)],
    }


def cells(preset: Preset) -> Plan:
    """Every cell that may be tried; `search.needed` selects those that are."""
    sizes = sizes_of(preset)
    return {
        Cell(kind, size, sampling.count(BumpTask(size), Square(0, 0))): tuple(
            scaling_spec(preset, size, sampling, seed) for seed in sizes.seeds
        )
        for size in sizes.sizes
        for kind, tried in samplings(preset, size).items()
        for sampling in tried
    }
