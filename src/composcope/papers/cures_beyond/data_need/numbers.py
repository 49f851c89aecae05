"""What is right on withheld combinations for every training set, and how many combinations are needed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from composcope.factors import combination_numbers
from composcope.measures.error import has_learned
from composcope.measures.grid import grid_index, grid_sizes
from composcope.papers.cures_beyond.data_need.plan import Amount
from composcope.papers.cures_beyond.numbers import fully_right, seen_right
from composcope.runs.run import Run
from composcope.runs.spec import training_latents
from composcope.study.evidence import Evidence
from composcope.study.panel import Rows
from composcope.study.statistics import interval

ENOUGH = 0.9


@dataclass(frozen=True)
class Point:
    """One training set, a value per seed.

    - `world`: its factors' names. `single`: whether single-factor images are shown too.
    - `combinations`: how many are shown, of `seen` that are not withheld.
    - `fully`: the share of withheld images that are fully right; `right`: the same for each factor; `seen_right`: of
      all combinations that are not withheld, shown or not.
    - `learned`: whether the combinations that were shown are drawn; `unshown`: how many of the factors' values occur in
      none of them.
    """

    world: str
    factors: int
    single: bool
    combinations: int
    seen: int
    fully: tuple[float, ...]
    right: dict[str, tuple[float, ...]]
    seen_right: tuple[float, ...]
    learned: tuple[bool, ...]
    unshown: tuple[int, ...]
    cpu_seconds: tuple[float, ...]


@dataclass(frozen=True)
class DataNeed:
    """Every training set."""

    points: tuple[Point, ...]

    @property
    def factors(self) -> list[int]:
        return sorted({point.factors for point in self.points})

    def curve(self, factors: int, single: bool) -> list[Point]:
        """The training sets of one kind, the smallest first."""
        own = [point for point in self.points if (point.factors, point.single) == (factors, single)]
        return sorted(own, key=lambda point: point.combinations)

    def needed(self, factors: int, single: bool) -> list[float]:
        """For each seed the smallest tried number of combinations with `ENOUGH` right; infinite if there is none."""
        curve = self.curve(factors, single)
        seeds = range(min((len(point.fully) for point in curve), default=0))
        return [
            min((float(point.combinations) for point in curve if point.fully[seed] >= ENOUGH), default=math.inf)
            for seed in seeds
        ]

    def table(self) -> Rows:
        return [self._row(point) for point in self.points]

    def _row(self, point: Point) -> dict[str, object]:
        mean, low, high = interval(point.fully)
        most = self.curve(point.factors, point.single)[-1].combinations
        needed = self.needed(point.factors, point.single)
        return {
            "world": point.world,
            "training set": "with single factors" if point.single else "combinations alone",
            "combinations": point.combinations,
            "of": point.seen,
            "seeds": len(point.fully),
            "fully right": mean,
            "low": low,
            "high": high,
            "per factor": ", ".join(f"{name} {sum(each) / len(each):.2f}" for name, each in point.right.items()),
            "seen right": sum(point.seen_right) / len(point.seen_right),
            "has learned what it was shown": sum(point.learned),
            "values never shown in a combination": sum(point.unshown) / len(point.unshown),
            f"combinations needed for {ENOUGH:g}, by seed": ", ".join(
                f">{most}" if math.isinf(number) else f"{number:g}" for number in needed
            ),
            "CPU seconds": sum(point.cpu_seconds) / len(point.cpu_seconds),
        }


def data_need(evidence: Evidence) -> DataNeed:
    """The outcome of every training set."""
    return DataNeed(
        tuple(_point(amount, runs) for amount, runs in evidence.items() if isinstance(amount, Amount) and runs)
    )


def _point(amount: Amount, runs: Sequence[Run]) -> Point:
    names = [factor.name for factor in runs[0].spec.task.factors]
    return Point(
        ", ".join(names),
        amount.factors,
        amount.single,
        amount.combinations,
        int((~runs[0].split.mask).sum()),
        tuple(fully_right(run) for run in runs),
        {name: tuple(float(run.verdict["factors"][name]) for run in runs) for name in names},
        tuple(seen_right(run) for run in runs),
        tuple(learned_what_was_shown(run) for run in runs),
        tuple(unshown_values(run) for run in runs),
        tuple(math.nan if run.cpu_seconds is None else run.cpu_seconds for run in runs),
    )


def learned_what_was_shown(run: Run) -> bool:
    """Whether the error on the combinations of the training set is that of a decoder that has learned them.

    The verdict's own control is over all seen combinations, most of which a small training set does not have.
    """
    errors, rows = run.point_errors, _shown(run)
    return has_learned(errors.mse[rows].sum().item(), errors.blank_mse[rows].sum().item())


def unshown_values(run: Run) -> int:
    """How many values of all factors occur in no combination of the training set."""
    index = grid_index(run.split.latents[_shown(run)], run.spec.task.factors)
    return sum(
        factor.size - len(column.unique()) for factor, column in zip(run.spec.task.factors, index.T, strict=True)
    )


def _shown(run: Run) -> torch.Tensor:
    """The rows of the split that the training set has as whole combinations."""
    spec = run.spec
    latents = training_latents(spec.task, spec.holdout, spec.sampling, spec.seed)
    index = grid_index(latents[~latents.isnan().any(1)], spec.task.factors)
    return combination_numbers(index, grid_sizes(spec.task.factors))
