"""What each decoder gets right on withheld combinations: all factors, and each by itself."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from composcope.papers.cures_beyond.plan import Cell
from composcope.runs.run import Run
from composcope.study.evidence import Evidence
from composcope.study.panel import Rows
from composcope.study.statistics import interval


def fully_right(run: Run) -> float:
    """Share of withheld images that show their own combination."""
    return float(run.verdict["shares"]["composer"])


def seen_right(run: Run) -> float:
    """The same of seen images."""
    return float(run.verdict["seen_shares"]["composer"])


def blank(run: Run) -> float:
    """Share of withheld images that show nothing."""
    return float(run.verdict["shares"]["blank"])


def error(run: Run) -> float:
    """Withheld MSE over that of a blank image."""
    return float(run.error["heldout_mse"] / run.error["blank_mse"])


def right(run: Run, factor: str) -> float | None:
    """Share of withheld images that show this factor's true value; None in a world without it."""
    value = run.verdict["factors"].get(factor)
    return None if value is None else float(value)


def position_right(run: Run) -> float | None:
    """Share of withheld images that show the true x, and of those that show the true y: the mean of both."""
    x, y = right(run, "x"), right(run, "y")
    return None if x is None or y is None else (x + y) / 2


def behind_position(factor: str) -> Callable[[Run], float | None]:
    """The share for this factor minus that for the position."""

    def number(run: Run) -> float | None:
        own, position = right(run, factor), position_right(run)
        return None if own is None or position is None else own - position

    return number


@dataclass(frozen=True)
class Outcome:
    """One treatment in one world, a value per seed.

    - `factors`: for each factor, the share of withheld images that show its true value.
    - `seconds`: by the clock. `cpu_seconds`: of CPU time, NaN for runs that did not measure it.
    - `learned`: whether the decoder has learned what it saw; if not, the others say nothing about composition.
    """

    world: str
    treatment: str
    fully: tuple[float, ...]
    seen: tuple[float, ...]
    blank: tuple[float, ...]
    error: tuple[float, ...]
    seconds: tuple[float, ...]
    learned: tuple[bool, ...]
    factors: dict[str, tuple[float, ...]]
    cpu_seconds: tuple[float, ...] = ()


@dataclass(frozen=True)
class Outcomes:
    """Every treatment in every world."""

    cells: tuple[Outcome, ...]

    @property
    def worlds(self) -> list[str]:
        return list(dict.fromkeys(cell.world for cell in self.cells))

    @property
    def treatments(self) -> list[str]:
        return list(dict.fromkeys(cell.treatment for cell in self.cells))

    def table(self) -> Rows:
        return [_row(cell) for cell in self.cells]


def outcomes(evidence: Evidence) -> Outcomes:
    """The outcome of every cell."""
    return Outcomes(tuple(_outcome(cell, runs) for cell, runs in evidence.items() if isinstance(cell, Cell) and runs))


def _outcome(cell: Cell, runs: Sequence[Run]) -> Outcome:
    of = lambda number: tuple(number(run) for run in runs)  # noqa: E731
    return Outcome(
        cell.world,
        cell.treatment,
        of(fully_right),
        of(seen_right),
        of(blank),
        of(error),
        of(lambda run: run.seconds),
        of(lambda run: run.verdict["kind"] != "has not learned"),
        {name: tuple(float(run.verdict["factors"][name]) for run in runs) for name in runs[0].verdict["factors"]},
        of(lambda run: math.nan if run.cpu_seconds is None else run.cpu_seconds),
    )


def _row(cell: Outcome) -> dict[str, object]:
    mean = lambda values: sum(values) / len(values)  # noqa: E731
    _, low, high = interval(cell.fully)
    timed = [value for value in cell.cpu_seconds if not math.isnan(value)]
    return {
        "world": cell.world,
        "treatment": cell.treatment,
        "seeds": len(cell.fully),
        "fully right": mean(cell.fully),
        "low": low,
        "high": high,
        "per factor": ", ".join(f"{name} {mean(values):.2f}" for name, values in cell.factors.items()),
        "seen right": mean(cell.seen),
        "has learned": sum(cell.learned),
        "blank": mean(cell.blank),
        "held-out MSE / blank": mean(cell.error),
        "seconds": mean(cell.seconds),
        "CPU seconds": mean(timed) if timed else None,
        "seeds with CPU seconds": len(timed),
    }
