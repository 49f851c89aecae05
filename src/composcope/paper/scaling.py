"""Figure 4c: how many training images it takes to place 90 % of the held-out bumps, bumps alone and with stripes."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from composcope.decoders.cnn import CNN
from composcope.encodings import Bump
from composcope.experiments.run import VERSIONS, load
from composcope.experiments.spec import Spec
from composcope.experiments.store import Store
from composcope.holdouts import Square
from composcope.paper.evidence import Evidence, Plan, Rows
from composcope.paper.ledger import interval
from composcope.paper.preset import Preset
from composcope.sampling import Draws, Sampling, Stripes
from composcope.tasks.bump import BumpTask

ENOUGH = 0.9  # of the held-out bumps within one pixel of their place
KINDS = ("bumps", "stripes")
LAWS = {"bumps": 3, "stripes": 1}  # the paper's powers of N


@cache
def spec(preset: Preset, size: int, sampling: Sampling, seed: int) -> Spec:
    """Bright bumps at real-valued centres, a hole of about 0.4 of the side in the middle, a fixed number of steps."""
    return Spec(
        task=BumpTask(size, polarity="bright", continuous=True),
        holdout=Square(round(0.3 * size), round(0.7 * size) - 1),
        encoding=Bump(),
        decoder=CNN(depth=3, width=preset.scaling_width),
        sampling=sampling,
        training=preset.scaling_training,
        seed=seed,
    )


def samplings(preset: Preset, size: int) -> dict[str, list[Sampling]]:
    """What is tried at a size, least first: bumps from half the side to the cap, stripes up to all 2N of them."""
    return {
        "bumps": [Draws(count) for count in preset.scaling_counts if 2 * count >= size],
        "stripes": [Stripes(stripes=2 * size // part) for part in (8, 4, 2, 1)],
    }


def cells(preset: Preset) -> Plan:
    """Every cell that may be tried, as "bumps, size 12, 64 images"; `needed` says which are."""
    return {
        f"{kind}, size {size}, {sampling.count(BumpTask(size), Square(0, 0))} images": tuple(
            spec(preset, size, sampling, seed) for seed in preset.scaling_seeds
        )
        for size in preset.scaling_sizes
        for kind, tried in samplings(preset, size).items()
        for sampling in tried
    }


@dataclass(frozen=True)
class Bounds:
    """What is known of a number: it is from `low` to `high`, the same where it is known; either may be infinite."""

    low: float
    high: float

    def log2(self) -> "Bounds":
        return Bounds(*(math.log2(end) if end > 0 else -math.inf for end in (self.low, self.high)))


@dataclass(frozen=True)
class Search:
    """The search of one kind, size and seed: the counts to try, least first, and the accuracies of those tried."""

    kind: str
    size: int
    seed: int
    counts: tuple[int, ...]
    accuracies: tuple[float, ...]

    @property
    def threshold(self) -> int | None:
        """The least count that is enough and still is at the next one, since accuracy is not monotone.

        The largest count has no next one and need only be enough itself.
        """
        enough = [accuracy >= ENOUGH for accuracy in self.accuracies]
        for place, good in enumerate(enough):
            last = place == len(self.counts) - 1
            if good and (last or (place + 1 < len(enough) and enough[place + 1])):
                return self.counts[place]
        return None

    @property
    def finished(self) -> bool:
        return self.threshold is not None or len(self.accuracies) == len(self.counts)

    @property
    def next(self) -> slice:
        """Which counts are sure to be needed next: two in a row must be enough, so two, or one after one that was."""
        done = len(self.accuracies)
        if self.finished:
            return slice(done, done)
        return slice(done, done + (1 if done and self.accuracies[-1] >= ENOUGH else 2))

    @property
    def bounds(self) -> Bounds:
        """The threshold; at most the least count if that was enough, at least the next doubling if none was."""
        found = self.threshold
        if found is not None:
            return Bounds(found if found > self.counts[0] else 0, found)
        return Bounds(2 * self.counts[-1] if self.finished else 0, math.inf)

    @property
    def text(self) -> str:
        """The threshold as a table tells it: 64, <= 8, or > 512 where no count was enough."""
        if not self.finished:
            return "unfinished"
        if self.threshold is None:
            return f"> {self.counts[-1]}"
        return f"{'<= ' if self.threshold == self.counts[0] else ''}{self.threshold}"


def needed(plan: Plan, store: Store) -> list[Spec]:
    """The next cells to run: each search goes up its counts until its threshold is known."""

    def stored(cell: Spec) -> float | None:
        if not store.has(cell.run_id):
            return None
        known = store.measures(cell.run_id, VERSIONS) or load(store, cell.run_id).measures
        return float(known["error"]["accuracy"])

    return [cell for column, search in _searches(plan, stored) for cell in column[search.next]]


def _searches(plan: Plan, accuracy: Callable[[Spec], float | None]) -> Iterator[tuple[list[Spec], Search]]:
    """Every search with its cells; what lies beyond a cell that was not run does not count as tried."""
    groups = dict.fromkeys(name.rsplit(", ", 1)[0] for name in plan)
    for group in groups:
        rows = [specs for name, specs in plan.items() if name.startswith(f"{group}, ")]
        counts = tuple(row[0].sampling.count(row[0].task, row[0].holdout) for row in rows)
        for column in zip(*rows, strict=True):
            tried: list[float] = []
            for cell in column:
                value = accuracy(cell)
                if value is None:
                    break
                tried.append(value)
            kind, size = group.split(", ")[0], column[0].task.image_shape[-1]
            yield list(column), Search(kind, size, column[0].seed, counts, tuple(tried))


@dataclass(frozen=True)
class Summary:
    """A mean over seeds and its interval; or, as `sign` says, only a bound of the mean, or "?" for nothing known."""

    sign: Literal["", ">=", "<=", "?"]
    mean: float = math.nan
    low: float = math.nan
    high: float = math.nan


def over_seeds(bounds: Sequence[Bounds]) -> Summary:
    """The mean over seeds; of the lower bounds if one has no upper bound, and the other way round."""
    open_above = any(math.isinf(one.high) for one in bounds)
    open_below = any(math.isinf(one.low) for one in bounds)
    mean, low, high = interval([one.low if open_above else one.high for one in bounds])
    if mean is None or low is None or high is None or (open_above and open_below):
        return Summary("?")
    if open_above or open_below:
        return Summary(">=" if open_above else "<=", mean)
    return Summary("", mean, low, high)


def exponent(sizes: Sequence[int], thresholds: Sequence[Bounds]) -> Bounds:
    """The power p of the least-squares line log threshold = p log size + c, or its bounds where thresholds are bounds.

    >>> exponent([10, 20], [Bounds(7, 7), Bounds(56, 56)])
    Bounds(low=3.0, high=3.0)
    """
    logs = np.log2(np.asarray(sizes, dtype=float))
    centred = logs - logs.mean() if len(logs) else logs
    if not centred.any():
        return Bounds(-math.inf, math.inf)
    low = high = 0.0
    for weight, found in zip((centred / (centred**2).sum()).tolist(), thresholds, strict=True):
        if weight:  # 0 times infinity is no number
            ends = sorted((weight * found.log2().low, weight * found.log2().high))
            low, high = low + ends[0], high + ends[1]
    return Bounds(round(low, 12), round(high, 12))


@dataclass(frozen=True)
class Scaling:
    """All searches, and what follows from them."""

    searches: tuple[Search, ...]

    def of(self, kind: str, size: int | None = None) -> list[Search]:
        return [one for one in self.searches if one.kind == kind and size in (None, one.size)]

    @property
    def sizes(self) -> list[int]:
        return sorted({search.size for search in self.searches})

    def needed(self, kind: str, size: int) -> Summary:
        """The threshold over seeds, as its log2."""
        return over_seeds([search.bounds.log2() for search in self.of(kind, size)])

    def exponents(self, kind: str) -> dict[int, Bounds]:
        """The exponent of every seed."""
        found: dict[int, Bounds] = {}
        for seed in sorted({search.seed for search in self.of(kind)}):
            mine = [search for search in self.of(kind) if search.seed == seed]
            found[seed] = exponent([one.size for one in mine], [one.bounds for one in mine])
        return found

    def table(self) -> Rows:
        return [self._row(kind, size) for kind in KINDS for size in self.sizes]

    def _row(self, kind: str, size: int) -> dict[str, object]:
        count, power = self.needed(kind, size), over_seeds(list(self.exponents(kind).values()))
        return {
            "training on": "bumps alone" if kind == "bumps" else kind,
            "N": size,
            "images needed": "-" if count.sign == "?" else f"{count.sign} {2**count.mean:.0f}".strip(),
            "low": "-" if count.sign else f"{2**count.low:.0f}",
            "high": "-" if count.sign else f"{2**count.high:.0f}",
            "of each seed": ", ".join(search.text for search in self.of(kind, size)),
            "exponent": "-" if power.sign == "?" else f"{power.sign} {power.mean:.2f}".strip(),
            "exponent low": "-" if power.sign else f"{power.low:.2f}",
            "exponent high": "-" if power.sign else f"{power.high:.2f}",
        }


def scaling(evidence: Evidence) -> Scaling:
    """The thresholds found so far."""
    known = {run.spec.run_id: run.error["accuracy"] for runs in evidence.values() for run in runs}
    found = _searches(evidence.plan, lambda cell: known.get(cell.run_id))
    return Scaling(tuple(search for _, search in found))
