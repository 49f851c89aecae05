"""A claim as a value: a statement, the runs it needs, and inequalities of effects, of which every seed gives one."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

from jaxtyping import Float, Int
from torch import Tensor

from composcope.factors import Latents
from composcope.measures.error import LEARNED, mse
from composcope.runs.run import Run
from composcope.runs.spec import training_latents
from composcope.study.evidence import Evidence
from composcope.study.plan import Key, KeyOf, Planner, Preset, key_at
from composcope.study.statistics import Relation


@dataclass(frozen=True)
class Bounds:
    """An effect of which only bounds are known, for example a threshold beyond the largest count tried."""

    low: float
    high: float


@dataclass(frozen=True)
class Excluded:
    """A seed whose runs exist but cannot answer, with the reason; it is counted, never dropped silently."""

    reason: str


Value = float | Bounds | Excluded
Values = Mapping[int, Value]
"""One value per seed; seeds whose runs are missing are left out."""

UNDEFINED = Excluded("the measure is not defined for this run")
UNLEARNED = Excluded(f"did not learn its training images (MSE / blank MSE above {LEARNED:g})")


def defined(value: Value) -> Value:
    """The value; a number that is not finite is an exclusion, so that its seed is counted."""
    return value if isinstance(value, Bounds | Excluded) or math.isfinite(value) else UNDEFINED


@dataclass(frozen=True)
class Effect:
    """One value per seed, from the runs under some keys of the plan.

    - `values`: the values that the evidence gives. `keys`: the keys at a preset.
    - `by`: what has a value of its own: a seed or, where conditions are compared, a condition (its place in the plan).
    """

    values: Callable[[Evidence], Values]
    keys: Callable[[Preset], Sequence[Key]]
    by: Literal["seed", "condition"] = "seed"

    def __call__(self, evidence: Evidence) -> Values:
        return self.values(evidence)


def effect_of(*keys: KeyOf) -> Callable[[Callable[[Evidence], Values]], Effect]:
    """Decorates a function that gives one value per seed: the effect of the runs under these keys."""
    return lambda values: Effect(values, lambda preset: [key_at(key, preset) for key in keys])


def by_condition(values: Callable[[Evidence], Values]) -> Effect:
    """The effect of a function that gives one value per condition, by its place in the plan."""
    return Effect(values, lambda preset: [], "condition")


Number = Callable[[Run], float | None]
"""A number of one run; None where it does not apply."""


def of_runs(key: KeyOf, number: Callable[[Run], Value | None]) -> Effect:
    """One number of every run under this key, or why a run has none that counts."""

    @effect_of(key)
    def effect(evidence: Evidence) -> Values:
        numbers = {run.spec.seed: number(run) for run in evidence[key_at(key, evidence.preset)]}
        return {seed: UNDEFINED if value is None else value for seed, value in numbers.items()}

    return effect


def combined(keys: Sequence[KeyOf], number: Number, combine: Callable[..., float]) -> Effect:
    """What `combine` makes of the numbers under these keys, for every seed that has runs under all of them."""

    @effect_of(*keys)
    def effect(evidence: Evidence) -> Values:
        runs = [{run.spec.seed: run for run in evidence.get(key_at(key, evidence.preset), ())} for key in keys]
        seeds = sorted(set.intersection(*(set(by_seed) for by_seed in runs)))
        rows = {seed: [number(by_seed[seed]) for by_seed in runs] for seed in seeds}
        return {seed: UNDEFINED if None in row else combine(*row) for seed, row in rows.items()}

    return effect


def difference(more: KeyOf, less: KeyOf, number: Number) -> Effect:
    """The number under one key minus the number under the other, for every seed that has both."""
    return combined((more, less), number, lambda first, second: first - second)


def magnitude(number: Callable[[Run], float]) -> Number:
    """The number without its sign."""
    return lambda run: abs(number(run))


@dataclass(frozen=True)
class Part:
    """One inequality of a claim.

    - `measure`: what is measured, in words, without the inequality. `effect`: its value for each seed, from
      `of_runs`, `difference` or a function of the evidence; None while the part is only registered.
    - `relation` and `threshold`: what is demanded of the mean effect: above, below, within the threshold on both
      sides of 0 (an equivalence test of the signed effect), or different from it. `reason`: why this threshold.
    - `exact`: the effect follows from definitions, not from training, so that seeds do not matter.
    - `learned`: exclude seeds with a run that has not learned its training images: such a run says nothing about
      combinations. It counts the runs that the effect is computed from; for a plain function, all runs of the claim.
    """

    measure: str
    effect: Effect | Callable[[Evidence], Values] | None
    relation: Relation
    threshold: float
    reason: str
    exact: bool = False
    learned: bool = False

    @property
    def by_condition(self) -> bool:
        """Whether conditions have values, not seeds."""
        return isinstance(self.effect, Effect) and self.effect.by == "condition"

    def values(self, evidence: Evidence) -> Values:
        """The effect of every seed, or why a seed has none."""
        if self.effect is None:
            return {}
        values = self.effect(evidence)
        if not self.learned:
            return values
        keys = self.effect.keys(evidence.preset) if isinstance(self.effect, Effect) else list(evidence)
        runs = [run for key in keys for run in evidence[key] if run.spec.seed in values]
        unlearned = {run.spec.seed for run in runs if training_share(run) > LEARNED}
        return {seed: UNLEARNED if seed in unlearned else defined(value) for seed, value in values.items()}


# Many parts of claims ask the same runs.
_shares: WeakKeyDictionary[Run, float] = WeakKeyDictionary()


def training_share(run: Run) -> float:
    """MSE on the training images / blank MSE; stripes are training images, though they are no combinations."""
    if run not in _shares:
        _shares[run] = _training_share(run)
    return _shares[run]


def _training_share(run: Run) -> float:
    spec = run.spec
    latents, counts = distinct(training_latents(spec.task, spec.holdout, spec.sampling, spec.seed))
    targets = spec.task.render(latents)
    blank = (counts * mse(spec.task.blank(len(targets)), targets)).sum().item()
    return (counts * mse(run.draw(latents), targets)).sum().item() / blank


def distinct(latents: Latents) -> tuple[Float[Tensor, "distinct factors"], Int[Tensor, "distinct"]]:
    """The different rows, and how often each occurs; two rows with the same factor absent (NaN) can be equal.

    >>> distinct(Tensor([[1.0, 2.0], [math.nan, 3.0], [1.0, 2.0], [math.nan, 3.0], [1.0, 2.0]]))
    (tensor([[nan, 3.],
            [1., 2.]]), tensor([2, 3]))
    """
    comparable = latents.nan_to_num(nan=-math.inf)
    rows, counts = comparable.unique(dim=0, return_counts=True)
    return rows.masked_fill(rows.isinf(), math.nan), counts


@dataclass(frozen=True)
class Claim:
    """A claim: its statement in our words, its source, the runs it needs and its inequalities.

    - `primary`: the statement in the source's own terms and by its own measure; all of it decides the outcome.
    - `secondary`: parts of our own, stricter versions and controls, shown beside the outcome; they can qualify it.
    - `figures`: the figures that show it. `note`: what a reader should know, whatever the outcome.
    - `version`: raised whenever a part of the same name changes, so that old evidence is not mixed with new.
    """

    number: int
    statement: str
    source: str
    figures: tuple[str, ...]
    plan: Planner
    primary: tuple[Part, ...]
    secondary: tuple[Part, ...] = ()
    note: str = ""
    version: int = 1

    @property
    def parts(self) -> tuple[Part, ...]:
        return (*self.primary, *self.secondary)

    @property
    def registration(self) -> str:
        """A hash of what is claimed: the version, and every part's measure, relation and threshold."""
        parts = [
            [kind, part.measure, part.relation, part.threshold]
            for kind, group in (("primary", self.primary), ("secondary", self.secondary))
            for part in group
        ]
        return fingerprint({"number": self.number, "version": self.version, "parts": parts})


def fingerprint(data: Any) -> str:
    """Twelve hex digits of the hash of plain data."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:12]
