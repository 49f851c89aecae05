"""The figures: every treatment in every world with the same number of steps, and what each decoder gets right."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from composcope.papers.cures_beyond.drawing import draw_cells, draw_factors
from composcope.papers.cures_beyond.treatments import (
    CONTROL,
    QUICK_WORLDS,
    TINY_WORLDS,
    TREATMENTS,
    Treatment,
    World,
    treated,
)
from composcope.runs.run import Run
from composcope.runs.spec import Spec
from composcope.study.evidence import Evidence
from composcope.study.numbers import Numbers, Row, Rows
from composcope.study.panel import Panel
from composcope.study.plan import Plan, Preset, of_preset
from composcope.study.statistics import interval


@dataclass(frozen=True)
class Sizes:
    """What a preset runs: its worlds, the steps of every run, and the seeds."""

    worlds: tuple[World, ...]
    steps: int
    seeds: tuple[int, ...]


# Seeds below 10 were used for choosing learning rate, steps, widths and weights; judging uses others.
SIZES = {
    "quick": Sizes(QUICK_WORLDS, steps=2000, seeds=tuple(range(10, 15))),
    "tiny": Sizes(TINY_WORLDS, steps=3, seeds=(0, 1)),
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
    sizes = of_preset(SIZES, preset)
    return {
        Cell(world.name, treatment.name): tuple(_spec(world, treatment, sizes.steps, seed) for seed in sizes.seeds)
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


def fully_right(run: Run) -> float:
    """Share of held-out images that show their own combination."""
    return float(run.verdict["shares"]["composer"])


def seen_right(run: Run) -> float:
    """The same of seen images."""
    return float(run.verdict["seen_shares"]["composer"])


def blank(run: Run) -> float:
    """Share of held-out images that show nothing."""
    return float(run.verdict["shares"]["blank"])


def error(run: Run) -> float:
    """Held-out MSE over that of a blank image."""
    return float(run.error["heldout_mse"] / run.error["blank_mse"])


def right(run: Run, factor: str) -> float | None:
    """Share of held-out images that show this factor's true value; None in a world without it."""
    value = run.verdict["factors"].get(factor)
    return None if value is None else float(value)


def position_right(run: Run) -> float | None:
    """Share of held-out images that show the true x, and of those that show the true y: the mean of both."""
    x, y = right(run, "x"), right(run, "y")
    return None if x is None or y is None else (x + y) / 2


def behind_position(factor: str) -> Callable[[Run], float | None]:
    """The share for this factor minus that for the position."""

    def number(run: Run) -> float | None:
        own, position = right(run, factor), position_right(run)
        return None if own is None or position is None else own - position

    return number


def outcomes(evidence: Evidence) -> Numbers:
    """What every run gets right; of a decoder that has not learned what it saw it says nothing about composition."""
    rows: Rows = []
    for cell, runs in evidence.items():
        assert isinstance(cell, Cell)
        rows += [_outcome(cell, run) for run in runs]
    return Numbers(rows)


def _outcome(cell: Cell, run: Run) -> Row:
    """`factors`: for each factor, the share of held-out images that show its true value; `seconds`: by the clock."""
    return {
        "run": cell.label,
        "seed": run.spec.seed,
        "world": cell.world,
        "treatment": cell.treatment,
        "fully right": fully_right(run),
        "seen right": seen_right(run),
        "blank": blank(run),
        "error": error(run),
        "seconds": run.seconds,
        "CPU seconds": run.cpu_seconds,
        "learned": run.verdict["kind"] != "has not learned",
        "factors": {name: float(share) for name, share in run.verdict["factors"].items()},
    }


def outcome_table(numbers: Numbers) -> Rows:
    """One row per treatment and world, means over seeds."""
    return [_outcome_row(numbers, kind) for kind in numbers.kinds]


def _outcome_row(numbers: Numbers, kind: str) -> Row:
    first, *_ = runs = numbers.of(kind)
    _, low, high = interval(numbers.column("fully right", kind))
    timed = [seconds for seconds in numbers.column("CPU seconds", kind) if seconds is not None]
    return {
        "world": first["world"],
        "treatment": first["treatment"],
        "seeds": len(runs),
        "fully right": _mean(numbers.column("fully right", kind)),
        "low": low,
        "high": high,
        "per factor": per_factor(runs),
        "seen right": _mean(numbers.column("seen right", kind)),
        "has learned": sum(numbers.column("learned", kind)),
        "blank": _mean(numbers.column("blank", kind)),
        "held-out MSE / blank": _mean(numbers.column("error", kind)),
        "seconds": _mean(numbers.column("seconds", kind)),
        "CPU seconds": _mean(timed) if timed else None,
        "seeds with CPU seconds": len(timed),
    }


def per_factor(runs: Rows) -> str:
    """The mean share of right images by factor, for readers."""
    shares = {name: _mean([run["factors"][name] for run in runs]) for name in runs[0]["factors"]}
    return ", ".join(f"{name} {share:.2f}" for name, share in shares.items())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


PANELS = (
    Panel(
        name="cells",
        title="Which treatment lets a decoder compose, in which world",
        see="The share of withheld images that show their own combination: the mean over seeds and its 95 % interval. "
        "The first row is the untreated control. Grey: most seeds have not learned what they saw.",
        plan=every_cell,
        numbers=outcomes,
        table=outcome_table,
        draw=draw_cells,
        diagnosed=False,
    ),
    Panel(
        name="factors",
        title="Which factor is right",
        see="For each factor, the share of withheld images that show its true value, with its 95 % interval over "
        "seeds. Position is to the right almost everywhere; look for the factor that stays behind.",
        plan=every_cell,
        numbers=outcomes,
        table=outcome_table,
        draw=draw_factors,
        diagnosed=False,
    ),
)
