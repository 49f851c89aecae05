"""Trends over ordered steps: from hidden layer to hidden layer, and from each number of bumps to the next."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from composcope.diagnosis.layers import LayerDiagnosis
from composcope.papers.forced_rendering.smoothness import hidden_layers
from composcope.papers.forced_rendering.stripes.plan import increasing_bumps
from composcope.runs.run import Run
from composcope.study.claim import Effect, Value
from composcope.study.effects import Number, combined
from composcope.study.evidence import Evidence

UPWARD = "0 is no trend"


def slope(values: Sequence[float]) -> float:
    """The slope of the least-squares line through values one step apart.

    >>> round(slope([0.0, 1.0, 2.0, 3.0]), 6)
    1.0
    """
    steps = np.arange(len(values)) - (len(values) - 1) / 2
    return float(steps @ np.asarray(values, dtype=float) / (steps @ steps))


def over_layers(measure: Callable[[LayerDiagnosis], float]) -> Number:
    """The slope of a measure from hidden layer to hidden layer."""
    return lambda run: slope([measure(layer) for layer in hidden_layers(run)])


def beyond_untrained(measure: Callable[[LayerDiagnosis], float]) -> Number:
    """That slope minus the slope of the same network before training."""

    def number(run: Run) -> float:
        untrained = run.diagnosis.untrained or {}
        hidden = [name for name in run.diagnosis.layers if name in untrained and name not in ("code", "image")]
        before = slope([measure(untrained[name]) for name in hidden]) if hidden else math.nan
        return slope([measure(layer) for layer in hidden_layers(run)]) - before

    return number


def over_bumps(number: Number) -> Effect:
    """The slope of a number from each number of bumps with stripes to the next, for seeds that have all of them."""

    def effect(evidence: Evidence) -> Mapping[int, Value]:
        keys = list(increasing_bumps(evidence.preset))
        return combined(keys, number, lambda *row: slope(row))(evidence)

    return effect
