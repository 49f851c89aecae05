"""A mean over seeds and its interval."""

from collections.abc import Sequence

import numpy as np

RESAMPLES = 10_000


def interval(values: Sequence[float], level: float = 0.95) -> tuple[float | None, float | None, float | None]:
    """The mean and its percentile bootstrap interval over seeds, always the same; three Nones for no values.

    With three seeds this is the range from the smallest to the largest: the claim must hold for each of them.

    >>> interval([1.0, 2.0, 3.0])
    (2.0, 1.0, 3.0)
    """
    if not len(values):
        return None, None, None
    data = np.asarray(values, dtype=float)
    draws = np.random.default_rng(0).integers(len(data), size=(RESAMPLES, len(data)))
    means = data[draws].mean(1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
    return float(data.mean()), float(low), float(high)
