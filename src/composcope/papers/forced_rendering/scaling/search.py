"""The search for the number of training images that is enough: what to try next, thresholds, and how they grow."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from composcope.study.claim import Bounds
from composcope.study.numbers import Numbers
from composcope.study.statistics import interval


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
    def search(self) -> str:
        """What all counts of one kind and size belong to."""
        return f"{self.kind}, size {self.size}"

    @property
    def label(self) -> str:
        return f"{self.search}, {self.images} images"


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


ENOUGH = 0.9  # of the held-out bumps within 1 pixel of the true position


def log2(bounds: Bounds) -> Bounds:
    """The bounds of the logarithm."""
    return Bounds(*(math.log2(end) if end > 0 else -math.inf for end in (bounds.low, bounds.high)))


@dataclass(frozen=True)
class CountSearch:
    """The search for a threshold of one kind, size and seed: doubling counts, then bisections of the interval left.

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

    def after(self, accuracy: float) -> "CountSearch":
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


def continued(search: CountSearch, accuracies: Mapping[int, float | None]) -> CountSearch:
    """The search as far as the accuracies, by count, take it; runs that it would not have asked for are ignored."""
    while not search.finished and (accuracy := accuracies.get(search.next_counts[0])) is not None:
        search = search.after(accuracy)
    return search


@dataclass(frozen=True)
class Summary:
    """A mean over seeds and its interval; depending on `sign` only a bound of the mean, or "?" if nothing is known."""

    sign: Literal["", ">=", "<=", "?"]
    mean: float = math.nan
    low: float = math.nan
    high: float = math.nan


def over_seeds(bounds: Sequence[Bounds]) -> Summary:
    """The mean of the midpoints, from the t-interval of the lower bounds to that of the upper bounds.

    The interval covers both what the counts tried leave open and the differences between seeds; of a single seed it is
    the seed's own. Where a seed has no upper bound there is only the mean of the lower bounds, and vice versa.

    >>> over_seeds([Bounds(3, 5)])
    Summary(sign='', mean=4.0, low=3, high=5)
    """
    lows, highs = [bound.low for bound in bounds], [bound.high for bound in bounds]
    open_below, open_above = -math.inf in lows, math.inf in highs
    if not bounds or (open_above and open_below):
        return Summary("?")
    if open_above or open_below:
        return Summary(">=" if open_above else "<=", float(np.mean(lows if open_above else highs)))
    mean = float(np.mean([*lows, *highs]))
    if len(bounds) == 1:
        return Summary("", mean, lows[0], highs[0])
    low, high = interval(lows)[1], interval(highs)[2]
    return Summary("", mean, math.nan if low is None else low, math.nan if high is None else high)


def exponent(sizes: Sequence[int], thresholds: Sequence[Bounds]) -> Bounds:
    """The power p of the least-squares line log threshold = p log size + c; bounds of thresholds give bounds of p.

    >>> exponent([10, 20], [Bounds(7, 7), Bounds(56, 56)])
    Bounds(low=3.0, high=3.0)
    """
    logs = np.log2(np.asarray(sizes, dtype=float))
    centred = logs - logs.mean() if len(logs) else logs
    if not centred.any():
        return Bounds(-math.inf, math.inf)
    low = high = 0.0
    for weight, threshold in zip((centred / (centred**2).sum()).tolist(), thresholds, strict=True):
        if weight:  # 0 times infinity would be NaN
            ends = sorted((weight * log2(threshold).low, weight * log2(threshold).high))
            low, high = low + ends[0], high + ends[1]
    return Bounds(round(low, 12), round(high, 12))


@dataclass(frozen=True)
class Scaling:
    """All searches, and the thresholds and exponents that follow from them."""

    searches: tuple[CountSearch, ...]

    @classmethod
    def read(cls, numbers: Numbers) -> "Scaling":
        """The searches of all kinds, sizes and seeds, as far as the runs in the rows take them."""
        seeds = sorted({row["seed"] for row in numbers.rows})
        accuracies: dict[tuple[str, int], dict[int, float | None]] = {}
        for row in numbers.rows:
            accuracies.setdefault((row["search"], row["seed"]), {})[row["images"]] = row["accuracy"]
        return cls(
            tuple(
                continued(
                    CountSearch(each["kind"], each["size"], seed, tuple(each["counts"]), (), each["bisections"]),
                    accuracies.get((name, seed), {}),
                )
                for name, each in numbers.common["searches"].items()
                for seed in seeds
            )
        )

    def of(self, kind: str, size: int | None = None) -> list[CountSearch]:
        """The searches of one kind, of every size or of this one."""
        return [search for search in self.searches if search.kind == kind and size in (None, search.size)]

    @property
    def sizes(self) -> list[int]:
        return sorted({search.size for search in self.searches})

    def threshold(self, kind: str, size: int) -> Summary:
        """log2 of the threshold over seeds."""
        return over_seeds([log2(search.bounds) for search in self.of(kind, size)])

    def exponents(self, kind: str, up_to: float = math.inf) -> dict[int, Bounds]:
        """The exponent of sizes up to one, for every seed; unbounded on both sides where a search has not finished."""
        exponents: dict[int, Bounds] = {}
        for seed in sorted({search.seed for search in self.of(kind)}):
            own = [search for search in self.of(kind) if search.seed == seed and search.size <= up_to]
            exponents[seed] = exponent([search.size for search in own], [search.bounds for search in own])
        return exponents
