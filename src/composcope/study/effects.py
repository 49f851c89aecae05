"""Effects that many claims share: a number of every run by seed, and differences between kinds of runs."""

from collections.abc import Callable

from composcope.experiments.run import Run
from composcope.study.claim import Effect, Value
from composcope.study.evidence import Evidence
from composcope.study.plan import Key
from composcope.study.preset import Preset

Number = Callable[[Run], float | None]
"""A number of one run; None where it does not apply."""

KeyOf = Callable[[Preset], Key] | Key
"""A key of the plan, or a function that gives it for a preset."""


def of_runs(key: KeyOf, number: Callable[[Run], Value | None]) -> Effect:
    """One number of every run under this key, or why a run has none that counts."""

    def effect(evidence: Evidence) -> dict[int, Value]:
        numbers = {run.spec.seed: number(run) for run in evidence[_key(key, evidence)]}
        return {seed: value for seed, value in numbers.items() if value is not None}

    return effect


def by_seed(evidence: Evidence, number: Number, complete: bool = True) -> dict[int, dict[Key, float]]:
    """One number of every run, by seed and key; `complete` keeps only seeds that have all keys."""
    table: dict[int, dict[Key, float]] = {}
    for key, runs in evidence.items():
        for run in runs:
            value = number(run)
            if value is not None:
                table.setdefault(run.spec.seed, {})[key] = value
    return {seed: row for seed, row in sorted(table.items()) if not complete or len(row) == len(evidence)}


def difference(more: KeyOf, less: KeyOf, number: Number) -> Effect:
    """The number under one key minus the number under the other, for every seed that has both."""

    def effect(evidence: Evidence) -> dict[int, float]:
        first, second = _key(more, evidence), _key(less, evidence)
        rows = by_seed(evidence, number, complete=False)
        return {seed: row[first] - row[second] for seed, row in rows.items() if first in row and second in row}

    return effect


def _key(key: KeyOf, evidence: Evidence) -> Key:
    return key(evidence.preset) if callable(key) else key
