"""Every treatment in every world: the same number of steps, of as many images, for all."""

from dataclasses import dataclass
from functools import cache

from composcope.papers.cures_beyond import worlds
from composcope.papers.cures_beyond.treatments import CONTROL, TREATMENTS, Treatment, treated
from composcope.papers.cures_beyond.worlds import World
from composcope.runs.spec import Spec
from composcope.study.plan import Plan
from composcope.study.preset import Preset


@dataclass(frozen=True)
class Sizes:
    """What a preset runs: its worlds, the steps of every run, and the seeds."""

    worlds: tuple[World, ...]
    steps: int
    seeds: tuple[int, ...]


# Seeds below 10 were used for choosing learning rate, steps, widths and weights; judging uses others.
SIZES = {
    "quick": Sizes(worlds.QUICK, steps=2000, seeds=tuple(range(10, 15))),
    "tiny": Sizes(worlds.TINY, steps=3, seeds=(0, 1)),
}


@dataclass(frozen=True)
class Cell:
    """A treatment in a world."""

    world: str
    treatment: str

    @property
    def label(self) -> str:
        return f"{self.world}; {self.treatment}"


@cache
def _spec(world: World, treatment: Treatment, steps: int, seed: int) -> Spec:
    return treated(world, treatment, steps, seed)


def every_cell(preset: Preset) -> Plan:
    """All treatments in all worlds."""
    sizes = SIZES[preset.name]
    return {
        Cell(world.name, treatment.name): tuple(
            _spec(world, treatment, sizes.steps, seed) for seed in preset.seeds_or(sizes.seeds)
        )
        for world in sizes.worlds
        for treatment in TREATMENTS
        if treatment.tried_in(world)
    }


def cells(preset: Preset, world: str | None = None, treatments: tuple[str, ...] | None = None) -> Plan:
    """The cells of one world, or of some treatments and the untreated control."""
    wanted = None if treatments is None else {CONTROL, *treatments}
    return {
        cell: specs
        for cell, specs in every_cell(preset).items()
        if isinstance(cell, Cell) and world in (None, cell.world) and (wanted is None or cell.treatment in wanted)
    }
