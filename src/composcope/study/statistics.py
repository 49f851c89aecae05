"""Inference about an inequality over seeds: t-tests, equivalence tests and sign tests, by scipy.

Each seed gives one independent value of an effect. A test asks whether the mean effect lies on the claimed side of a
threshold; its p-value is the probability of values at least this favourable if it did not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

LEVEL = 0.025
"""One-sided level of every test: the counterpart of a two-sided 95 % interval."""

Relation = Literal[">", "<", "within", "differs"]
Method = Literal["t-test", "equivalence test", "sign test", "identical values", "definition", "too few seeds"]


@dataclass(frozen=True)
class Inference:
    """What the seeds say about one inequality.

    - `mean`, `low`, `high`: the mean effect and its 95 % t-interval; None where there are too few values. A sign test
      is about the median, so that it has the median in place of the mean and no interval.
    - `p`: of the claimed side; `p_opposite`: of the other side.
    """

    mean: float | None
    low: float | None
    high: float | None
    p: float
    p_opposite: float
    method: Method


def infer(values: Sequence[float], relation: Relation, threshold: float, exact: bool = False) -> Inference:
    """Test whether the mean effect is above or below the threshold, within it on both sides of 0, or differs from it.

    That it differs is tested on both sides together, and cannot be contradicted.

    - `exact`: the value follows from definitions, so that a comparison decides.

    >>> infer([1.0, 1.1, 1.2, 1.0, 1.1], ">", 0.5).p < 0.001
    True
    """
    data = np.asarray(values, dtype=float)
    mean, low, high = interval(values)
    if not len(data) or (len(data) == 1 and not exact):
        return Inference(mean, low, high, 1.0, 1.0, "too few seeds")
    # A t-test divides by the spread, so identical values (an accuracy of 1 in every seed) are compared instead.
    if np.ptp(data) <= _rounding(data[0]):
        p, opposite = _compare(float(data[0]), relation, threshold)
        return Inference(mean, low, high, p, opposite, "definition" if exact else "identical values")
    if relation == "within":
        p, opposite = _equivalence(data, threshold)
        return Inference(mean, low, high, p, opposite, "equivalence test")
    from scipy import stats

    if relation == "differs":
        return Inference(mean, low, high, float(stats.ttest_1samp(data, threshold).pvalue), 1.0, "t-test")
    above = float(stats.ttest_1samp(data, threshold, alternative="greater").pvalue)
    below = float(stats.ttest_1samp(data, threshold, alternative="less").pvalue)
    p, opposite = (above, below) if relation == ">" else (below, above)
    return Inference(mean, low, high, p, opposite, "t-test")


def _equivalence(data: np.ndarray, margin: float) -> tuple[float, float]:
    """Two one-sided tests that the signed mean is above -margin and below margin; and that it is outside."""
    from scipy import stats

    inside = [
        float(stats.ttest_1samp(data, -margin, alternative="greater").pvalue),
        float(stats.ttest_1samp(data, margin, alternative="less").pvalue),
    ]
    # Outside means below -margin or above margin: two chances, hence twice the smaller p.
    outside = [1 - p for p in inside]
    return max(inside), min(1.0, 2 * min(outside))


def sign_test(yes: int, no: int) -> tuple[float, float]:
    """p-values that most seeds are on the claimed side, and on the other; for effects of which only bounds are known.

    >>> sign_test(6, 0)[0] < 0.025, sign_test(5, 0)[0] < 0.025
    (True, False)
    """
    if yes + no == 0:
        return 1.0, 1.0
    from scipy import stats

    p, opposite = (float(stats.binomtest(count, yes + no, alternative="greater").pvalue) for count in (yes, no))
    return p, opposite


def certain_median(bounds: Sequence[tuple[float, float]]) -> float | None:
    """The median of values of which only bounds are known; None where the bounds leave it open.

    >>> certain_median([(1, 1), (2, 2), (3, math.inf)]), certain_median([(1, 1), (2, math.inf), (3, math.inf)])
    (2.0, None)
    """
    low, high = (float(np.median(ends)) for ends in zip(*bounds, strict=True))
    return low if low == high else None


def interval(values: Sequence[float], level: float = 0.95) -> tuple[float | None, float | None, float | None]:
    """The mean and its t-interval over seeds; no interval for a single value, three Nones for none.

    >>> [round(end, 3) for end in interval([1.0, 2.0, 3.0])]
    [2.0, -0.484, 4.484]
    """
    data = np.asarray(values, dtype=float)
    if not len(data):
        return None, None, None
    mean = float(data.mean())
    if len(data) == 1:
        return mean, None, None
    from scipy import stats

    half = float(stats.t.ppf((1 + level) / 2, len(data) - 1)) * float(data.std(ddof=1)) / math.sqrt(len(data))
    return mean, mean - half, mean + half


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: the smallest times their number, the next times one less, and so on, never falling.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted


def _compare(value: float, relation: Relation, threshold: float) -> tuple[float, float]:
    """p and p_opposite of a certain value: 0 on its own side, 1 on the other; on the threshold both are 1."""
    distance = value - threshold
    signed = {">": distance, "<": -distance, "within": threshold - abs(value), "differs": abs(distance)}[relation]
    if abs(signed) <= _rounding(threshold):
        return 1.0, 1.0
    return float(signed < 0), float(signed > 0)


def _rounding(value: float) -> float:
    """How far apart two numbers of this size may be and still count as equal."""
    return 1e-12 * max(1.0, abs(value))
