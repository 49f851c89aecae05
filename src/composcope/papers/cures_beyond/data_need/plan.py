"""Worlds that differ by one factor, each with training sets of more and more combinations."""

from collections.abc import Mapping
from dataclasses import dataclass

from composcope.decoders.cnn import CNN
from composcope.encodings import OneHot
from composcope.holdouts.cells import Cells
from composcope.papers.cures_beyond.worlds import World
from composcope.runs.spec import Spec
from composcope.sampling import Stripes
from composcope.study.plan import Plan
from composcope.study.preset import Preset
from composcope.tasks.sprites import SpriteTask
from composcope.training import Training

SCALES, COLOURS = (1.5, 2.0, 2.5), ("red", "green", "blue")
# A quarter of all combinations, at random: unlike a hole in the plane it is the same test for any number of factors.
WITHHELD = Cells(share=0.25)


def world(factors: int, side: int, positions: range) -> World:
    """Discs at some positions; with a third factor in three sizes, with a fourth in three colours as well."""
    task = SpriteTask(
        side,
        x=tuple(positions),
        y=tuple(positions),
        scales=SCALES if factors > 2 else SCALES[1:2],
        colours=COLOURS if factors > 3 else COLOURS[:1],
        # Dark coloured sprites were not learned in as many steps.
        polarity="bright",
    )
    return World(f"sprites: {', '.join(factor.name for factor in task.factors)}", task, WITHHELD)


@dataclass(frozen=True)
class Sizes:
    """What a preset runs: its worlds, and for each the numbers of combinations shown; steps and seeds of every run."""

    worlds: Mapping[World, tuple[int, ...]]
    steps: int
    seeds: tuple[int, ...]


SIZES = {
    "quick": Sizes(
        {
            world(2, 12, range(2, 10)): (12, 24, 36, 48),
            world(3, 12, range(2, 10)): (24, 48, 72, 96, 144),
            world(4, 12, range(2, 10)): (48, 96, 144, 192, 432),
        },
        steps=1000,
        seeds=(10, 11, 12),
    ),
    "tiny": Sizes({world(2, 9, range(3, 6)): (4, 6), world(3, 9, range(3, 6)): (8,)}, steps=3, seeds=(0, 1)),
}


@dataclass(frozen=True)
class Amount:
    """A training set: so many combinations of so many factors, with single-factor images or without."""

    factors: int
    combinations: int
    single: bool

    @property
    def label(self) -> str:
        return f"{self.factors} factors; {self.combinations} combinations{' and single factors' if self.single else ''}"


def every_amount(preset: Preset) -> Plan:
    """Every training set, with the same number of steps of as many images."""
    sizes = SIZES[preset.name]
    return {
        Amount(len(world.task.factors), count, single): tuple(
            _spec(world, count, single, sizes.steps, seed) for seed in preset.seeds_or(sizes.seeds)
        )
        for world, counts in sizes.worlds.items()
        for single in (False, True)
        for count in counts
    }


def _spec(world: World, combinations: int, single: bool, steps: int, seed: int) -> Spec:
    return Spec(
        task=world.task,
        holdout=world.holdout,
        encoding=OneHot(),
        decoder=CNN(depth=3, width=24),
        sampling=Stripes(stripes=None if single else 0, bumps=combinations),
        training=Training(steps=steps, batch=32, lr=2e-3, schedule="cosine"),
        seed=seed,
    )
