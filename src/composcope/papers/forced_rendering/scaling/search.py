"""The search for the number of training images that is enough: what to run next, and the threshold."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from composcope.experiments.spec import Spec
from composcope.experiments.store import Store
from composcope.papers.forced_rendering.scaling.plan import Cell
from composcope.study.claim import Bounds
from composcope.study.evidence import Evidence, RunCache
from composcope.study.plan import Key, Plan

T = TypeVar("T")

ENOUGH = 0.9  # of the held-out bumps within 1 pixel of the true position


def log2(bounds: Bounds) -> Bounds:
    """The bounds of the logarithm."""
    return Bounds(*(math.log2(end) if end > 0 else -math.inf for end in (bounds.low, bounds.high)))


@dataclass(frozen=True)
class Search:
    """The search for one kind, size and seed: the counts to try, ascending, and the accuracies of those tried."""

    kind: str
    size: int
    seed: int
    counts: tuple[int, ...]
    accuracies: tuple[float, ...]

    @property
    def name(self) -> tuple[int, str, int]:
        return self.size, self.kind, self.seed

    @property
    def threshold(self) -> int | None:
        """The smallest count that is enough and still enough at the next count, since accuracy is not monotone.

        The largest count has no next one and only has to be enough itself.
        """
        enough = [accuracy >= ENOUGH for accuracy in self.accuracies]
        for index, good in enumerate(enough):
            last = index == len(self.counts) - 1
            if good and (last or (index + 1 < len(enough) and enough[index + 1])):
                return self.counts[index]
        return None

    @property
    def finished(self) -> bool:
        return self.threshold is not None or len(self.accuracies) == len(self.counts)

    @property
    def next_counts(self) -> tuple[int, ...]:
        """Counts that are certainly needed next: two in a row must be enough, so two, or one after one that was."""
        done = len(self.accuracies)
        if self.finished:
            return ()
        return self.counts[done : done + (1 if done and self.accuracies[-1] >= ENOUGH else 2)]

    @property
    def bounds(self) -> Bounds:
        """The threshold; at most the smallest count if that was enough, at least the next doubling if none was."""
        if not self.finished:
            return Bounds(0, math.inf)
        if self.threshold is None:
            return Bounds(2 * self.counts[-1], math.inf)
        return Bounds(0 if self.threshold == self.counts[0] else self.threshold, self.threshold)

    @property
    def text(self) -> str:
        """The threshold for readers: "64", "<= 8", "> 512", or "unfinished"."""
        if not self.finished:
            return "unfinished"
        if self.threshold is None:
            return f"> {self.counts[-1]}"
        return f"{'<= ' if self.threshold == self.counts[0] else ''}{self.threshold}"


Tried = Mapping[Cell, Mapping[int, float | None]]
"""The accuracy by cell and seed; None for a run that was not done."""


def searches(tried: Tried) -> Iterator[Search]:
    """Every search, by kind, size and seed; runs beyond the first count that was not run are ignored."""
    groups: dict[tuple[str, int], list[Cell]] = defaultdict(list)
    for cell in tried:
        groups[cell.kind, cell.size].append(cell)
    seeds = sorted({seed for accuracies in tried.values() for seed in accuracies})
    for (kind, size), column in groups.items():
        for seed in seeds:
            accuracies: list[float] = []
            for cell in column:
                accuracy = tried[cell].get(seed)
                if accuracy is None:
                    break
                accuracies.append(accuracy)
            yield Search(kind, size, seed, tuple(cell.images for cell in column), tuple(accuracies))


def needed(plan: Plan, store: Store) -> list[Spec]:
    """The next runs: each search tries ascending counts until its threshold is known."""
    cache = RunCache(store)

    def accuracy(spec: Spec) -> float | None:
        return next((float(run.error["accuracy"]) for run in cache.runs([spec])), None)

    rows = _by_cell(plan)
    specs = {(cell, spec.seed): spec for cell, row in rows.items() for spec in row}
    tried = {cell: {spec.seed: accuracy(spec) for spec in row} for cell, row in rows.items()}
    return [
        specs[Cell(search.kind, search.size, images), search.seed]
        for search in searches(tried)
        for images in search.next_counts
    ]


def search_name(key: Key, spec: Spec) -> str:
    """What the runs of one search have in common."""
    assert isinstance(key, Cell)
    return f"threshold of {key.kind}, size {key.size}, seed {spec.seed}"


def searches_of(evidence: Evidence) -> tuple[Search, ...]:
    """The searches as far as the evidence goes."""
    rows = _by_cell(evidence)
    return tuple(searches({cell: {run.spec.seed: run.error["accuracy"] for run in rows[cell]} for cell in rows}))


def _by_cell(rows: Mapping[Key, Sequence[T]]) -> dict[Cell, Sequence[T]]:
    return {key: row for key, row in rows.items() if isinstance(key, Cell)}
