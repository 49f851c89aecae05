"""Which runs may be tried: image sizes, and for each size ever more training images, then counts in between."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

from composcope.decoders.cnn import CNN
from composcope.encodings import Bump
from composcope.holdouts import Square
from composcope.papers.forced_rendering.presets import PAPER_SEEDS, QUICK_SEEDS
from composcope.runs.spec import Spec
from composcope.sampling import Draws, Sampling, Stripes
from composcope.study.plan import Plan
from composcope.study.preset import Preset
from composcope.tasks.bump import BumpTask
from composcope.training import Training

KINDS = ("bumps", "stripes")


@dataclass(frozen=True)
class Sizes:
    """What the searches are run at.

    - `sizes`: sides of the image; `counts`: numbers of bumps tried, each twice the one before, the last is the cap.
    - `bisections`: how often the interval between the last count that was not enough and the first that was is halved.
    - `fewest`: the smallest number of bumps tried, as a share of the side.
    """

    sizes: tuple[int, ...]
    counts: tuple[int, ...]
    bisections: int
    width: int
    training: Training
    seeds: tuple[int, ...]
    fewest: float = 0.5


SIZES = {
    "quick": Sizes(
        sizes=(10, 15, 20),
        counts=(8, 16, 32, 64, 128, 256, 512),
        bisections=0,
        width=16,
        training=Training(steps=600, batch=16),
        # One octave of sizes and counts that double leave a power of N open by two: more seeds would decide nothing.
        seeds=QUICK_SEEDS[:1],
    ),
    "paper": Sizes(
        sizes=(10, 15, 20, 25, 30),
        counts=(4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192),
        bisections=2,
        width=32,
        training=Training(steps=3000),
        # Eight, so that one seed on the other side does not leave a sign test open.
        seeds=tuple(range(PAPER_SEEDS[0], PAPER_SEEDS[0] + 8)),
        # If the smallest count were enough, a threshold would have no lower bound and the power of N no upper one. At
        # N = 10 the quick preset's networks, which are smaller, needed 16 in three of six seeds.
        fewest=0.4,
    ),
    "tiny": Sizes(
        sizes=(8, 10), counts=(4, 8), bisections=1, width=4, training=Training(steps=3, batch=4), seeds=(0, 1)
    ),
}


def sizes_of(preset: Preset) -> Sizes:
    """The sizes of a preset, with the preset's seeds if it brings its own."""
    sizes = SIZES[preset.name]
    return replace(sizes, seeds=preset.seeds_or(sizes.seeds))


@dataclass(frozen=True)
class Cell:
    """Runs on one kind of training image, with images of this side and with this many of them.

    - `bisection`: which bisection may try this count, 1 for the first; 0 for a count of the doubling search.

    >>> Cell("bumps", 12, 64).label
    'bumps, size 12, 64 images'
    """

    kind: str
    size: int
    images: int
    bisection: int = 0

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


def doubling_counts(preset: Preset, size: int) -> dict[str, list[int]]:
    """What the doubling search tries at a size: bumps from a share of the side to the cap, stripes up to all 2N."""
    sizes = sizes_of(preset)
    return {
        "bumps": [count for count in sizes.counts if count >= sizes.fewest * size],
        "stripes": [2 * size // part for part in (8, 4, 2, 1)],
    }


def midpoint(low: int, high: int) -> int | None:
    """The geometric midpoint as an integer; None if it is not between the ends.

    >>> midpoint(32, 64), midpoint(2, 3)
    (45, None)
    """
    middle = round(math.sqrt(low * high))
    return middle if low < middle < high else None


def bisected(low: int, high: int, last: int, bisection: int = 1) -> Iterator[tuple[int, int]]:
    """Every count that bisections up to the last may try between two counts, ascending, with its bisection.

    >>> list(bisected(32, 64, last=2))
    [(38, 2), (45, 1), (54, 2)]
    """
    middle = midpoint(low, high)
    if bisection <= last and middle is not None:
        yield from bisected(low, middle, last, bisection + 1)
        yield middle, bisection
        yield from bisected(middle, high, last, bisection + 1)


def all_counts(doubled: Sequence[int], bisections: int) -> list[tuple[int, int]]:
    """Every count that may be tried, ascending, with its bisection (0 for the doubling search).

    >>> all_counts([4, 8, 16], bisections=1)
    [(4, 0), (6, 1), (8, 0), (11, 1), (16, 0)]
    """
    between = [pair for ends in pairwise(doubled) for pair in bisected(*ends, bisections)]
    return sorted([*((count, 0) for count in doubled), *between])


def sampling_of(kind: str, count: int) -> Sampling:
    """This many bumps, or this many stripes."""
    return Draws(count) if kind == "bumps" else Stripes(stripes=count)


def cells(preset: Preset) -> Plan:
    """Every cell that may be tried, by size and kind, ascending; `search.needed` selects those that are."""
    sizes = sizes_of(preset)
    return {
        Cell(kind, size, count, bisection): tuple(
            scaling_spec(preset, size, sampling_of(kind, count), seed) for seed in sizes.seeds
        )
        for size in sizes.sizes
        for kind, doubled in doubling_counts(preset, size).items()
        for count, bisection in all_counts(doubled, sizes.bisections)
    }


def most_runs(preset: Preset) -> int:
    """How many runs the searches do at most: every doubling and all bisections."""
    sizes = sizes_of(preset)
    searches = [tried for size in sizes.sizes for tried in doubling_counts(preset, size).values()]
    return len(sizes.seeds) * sum(len(tried) + sizes.bisections for tried in searches)
