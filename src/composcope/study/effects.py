"""Effects that many claims share: a number of every run by seed, and differences between kinds of runs."""

from collections.abc import Callable, Sequence

from composcope.runs.run import Run
from composcope.study.claim import UNDEFINED, Effect, Value
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
        return {seed: UNDEFINED if value is None else value for seed, value in numbers.items()}

    return effect


def combined(keys: Sequence[KeyOf], number: Number, combine: Callable[..., float]) -> Effect:
    """What `combine` makes of the numbers under these keys, for every seed that has runs under all of them."""

    def effect(evidence: Evidence) -> dict[int, Value]:
        runs = [{run.spec.seed: run for run in evidence.get(_key(key, evidence), ())} for key in keys]
        seeds = sorted(set.intersection(*(set(by_seed) for by_seed in runs)))
        rows = {seed: [number(by_seed[seed]) for by_seed in runs] for seed in seeds}
        return {seed: UNDEFINED if None in row else combine(*row) for seed, row in rows.items()}

    return effect


def difference(more: KeyOf, less: KeyOf, number: Number) -> Effect:
    """The number under one key minus the number under the other, for every seed that has both."""
    return combined((more, less), number, lambda first, second: first - second)


def _key(key: KeyOf, evidence: Evidence) -> Key:
    return key(evidence.preset) if callable(key) else key
