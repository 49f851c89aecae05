"""The search for the number of training images that is enough: what to run next, and the threshold."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from composcope.papers.forced_rendering.scaling.plan import Cell, midpoint
from composcope.runs.spec import Spec
from composcope.store.store import Store
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
    """The search for one kind, size and seed: doubling counts, then bisections of the interval that they leave.

    - `counts`: of the doubling search, ascending. `accuracies`: of those tried.
    - `bisections`: how many follow. `bisected`: the counts they tried, with their accuracies.
    """

    kind: str
    size: int
    seed: int
    counts: tuple[int, ...]
    accuracies: tuple[float, ...]
    bisections: int = 0
    bisected: tuple[tuple[int, float], ...] = ()

    @property
    def name(self) -> tuple[int, str, int]:
        return self.size, self.kind, self.seed

    @property
    def tried(self) -> list[tuple[int, float]]:
        """Every count tried, ascending, with its accuracy."""
        return sorted([*zip(self.counts, self.accuracies, strict=False), *self.bisected])

    @property
    def _doubled(self) -> int | None:
        """The index of the smallest doubling count that is enough and still enough at the next one.

        Two are asked for because accuracy is not monotone. The largest count has no next one.
        """
        enough = [accuracy >= ENOUGH for accuracy in self.accuracies]
        for index, good in enumerate(enough):
            last = index == len(self.counts) - 1
            if good and (last or (index + 1 < len(enough) and enough[index + 1])):
                return index
        return None

    @property
    def _ends(self) -> tuple[int, int] | None:
        """The largest count below the threshold that was not enough, 0 if there is none, and the threshold."""
        index = self._doubled
        if index is None:
            return None
        # The count before the first of two that are enough was not, or it would have been the first itself.
        low, high = self.counts[index - 1] if index else 0, self.counts[index]
        for count, accuracy in self.bisected:
            low, high = (low, count) if accuracy >= ENOUGH else (count, high)
        return low, high

    @property
    def _midpoint(self) -> int | None:
        """The count that the next bisection tries, if there is one."""
        if self._ends is None or len(self.bisected) == self.bisections:
            return None
        return midpoint(*self._ends)

    @property
    def threshold(self) -> int | None:
        """The smallest count that is enough; None if the doubling search has not found one."""
        return None if self._ends is None else self._ends[1]

    @property
    def finished(self) -> bool:
        return not self.next_counts

    @property
    def next_counts(self) -> tuple[int, ...]:
        """Counts that are certainly needed next.

        The doubling search needs two in a row, so two, or one after one that was enough; a bisection needs one.
        """
        if self._ends is not None:
            return () if self._midpoint is None else (self._midpoint,)
        done = len(self.accuracies)
        return self.counts[done : done + (1 if done and self.accuracies[-1] >= ENOUGH else 2)]

    def after(self, accuracy: float) -> "Search":
        """The search once the first of its next counts has this accuracy."""
        if self._midpoint is not None:
            return replace(self, bisected=(*self.bisected, (self._midpoint, accuracy)))
        return replace(self, accuracies=(*self.accuracies, accuracy))

    @property
    def bounds(self) -> Bounds:
        """The largest count that was not enough and the smallest that was."""
        if not self.finished:
            return Bounds(0, math.inf)
        return Bounds(self.counts[-1], math.inf) if self._ends is None else Bounds(*self._ends)

    @property
    def text(self) -> str:
        """The bounds for readers: "45-64", "<= 8", "> 512", or "unfinished"."""
        if not self.finished:
            return "unfinished"
        if self._ends is None:
            return f"> {self.counts[-1]}"
        low, high = self._ends
        return f"{low}-{high}" if low else f"<= {high}"


Tried = Mapping[Cell, Mapping[int, float | None]]
"""The accuracy by cell and seed; None for a run that was not done."""


def searches(tried: Tried) -> Iterator[Search]:
    """Every search, by kind, size and seed; runs that a search would not have asked for are ignored."""
    groups: dict[tuple[str, int], list[Cell]] = defaultdict(list)
    for cell in tried:
        groups[cell.kind, cell.size].append(cell)
    seeds = sorted({seed for accuracies in tried.values() for seed in accuracies})
    for (kind, size), column in groups.items():
        counts = tuple(cell.images for cell in column if not cell.bisection)
        bisections = max(cell.bisection for cell in column)
        for seed in seeds:
            known = {cell.images: tried[cell].get(seed) for cell in column}
            yield continued(Search(kind, size, seed, counts, (), bisections), known)


def continued(search: Search, accuracies: Mapping[int, float | None]) -> Search:
    """The search as far as the accuracies, by count, take it."""
    while not search.finished and (accuracy := accuracies[search.next_counts[0]]) is not None:
        search = search.after(accuracy)
    return search


def needed(plan: Plan, store: Store) -> list[Spec]:
    """The next runs: each search tries ascending counts until one is enough, and then counts in between."""
    cache = RunCache(store)

    def accuracy(spec: Spec) -> float | None:
        return next((float(run.error["accuracy"]) for run in cache.runs([spec])), None)

    rows = _by_cell(plan)
    specs = {(cell.kind, cell.size, spec.seed, cell.images): spec for cell, row in rows.items() for spec in row}
    tried = {cell: {spec.seed: accuracy(spec) for spec in row} for cell, row in rows.items()}
    return [
        specs[search.kind, search.size, search.seed, images]
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
