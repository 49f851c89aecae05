"""A claim as a value: a statement, the runs it needs, and the inequalities that must hold."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from composcope.study.evidence import Evidence
from composcope.study.plan import Plan
from composcope.study.preset import Preset
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
UNDEFINED = Excluded("the measure is not defined for this run")


def defined(value: Value) -> Value:
    """The value; a number that is not finite is an exclusion, so that its seed is counted."""
    return value if isinstance(value, Bounds | Excluded) or math.isfinite(value) else UNDEFINED


Effect = Callable[[Evidence], Mapping[int, Value]]
"""One value per seed; seeds whose runs are missing are left out."""


@dataclass(frozen=True)
class Part:
    """One inequality of a claim.

    - `measure`: what is measured, in words, without the inequality. `effect`: its value for each seed; None while the
      part is only registered.
    - `relation` and `threshold`: what is demanded of the mean effect: above, below, within the threshold on both
      sides of 0 (an equivalence test of the signed effect), or different from it. `reason`: why this threshold.
    - `exact`: the effect follows from definitions, not from training, so that seeds do not matter.
    """

    measure: str
    effect: Effect | None
    relation: Relation
    threshold: float
    reason: str
    exact: bool = False


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
    plan: Callable[[Preset], Plan]
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
