"""What figure 4c shows: the number of training images needed by image size, and how it grows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from composcope.papers.forced_rendering.scaling.plan import KINDS
from composcope.papers.forced_rendering.scaling.search import Search, log2, searches_of
from composcope.study.claim import Bounds
from composcope.study.evidence import Evidence
from composcope.study.panel import Rows
from composcope.study.statistics import interval

LAWS = {"bumps": 3, "stripes": 1}  # the paper's powers of N


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

    searches: tuple[Search, ...]

    def joined(self, other: "Scaling") -> "Scaling":
        """The searches of both, in the plan's order; of the same search the one that tried more."""
        every = sorted((*self.searches, *other.searches), key=lambda search: -len(search.tried))
        by_name = {search.name: search for search in reversed(every)}
        return Scaling(tuple(by_name[name] for name in sorted(by_name)))

    def seed_counts(self) -> list[int]:
        return [len({search.seed for search in self.searches})]

    def of(self, kind: str, size: int | None = None) -> list[Search]:
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

    def table(self) -> Rows:
        return [self._row(kind, size) for kind in KINDS for size in self.sizes]

    def _row(self, kind: str, size: int) -> dict[str, object]:
        count, power = self.threshold(kind, size), over_seeds(list(self.exponents(kind).values()))
        return {
            "training on": "bumps alone" if kind == "bumps" else kind,
            "N": size,
            "images needed": "-" if count.sign == "?" else f"{count.sign} {2**count.mean:.0f}".strip(),
            "low": "-" if count.sign else f"{2**count.low:.0f}",
            "high": "-" if count.sign else f"{2**count.high:.0f}",
            "by seed": ", ".join(search.text for search in self.of(kind, size)),
            "exponent": "-" if power.sign == "?" else f"{power.sign} {power.mean:.2f}".strip(),
            "exponent low": "-" if power.sign else f"{power.low:.2f}",
            "exponent high": "-" if power.sign else f"{power.high:.2f}",
        }


def scaling(evidence: Evidence) -> Scaling:
    """The thresholds known so far."""
    return Scaling(searches_of(evidence))
