"""A claim as a value: a statement, the runs it needs, and the inequalities that must hold."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from composcope.study.evidence import Evidence
from composcope.study.plan import Plan
from composcope.study.preset import Preset

Effect = Callable[[Evidence], Mapping[int, float]]
"""One value per seed; seeds whose runs are missing are left out."""


@dataclass(frozen=True)
class Part:
    """One inequality of a claim.

    - `measure`: what is measured, in words, without the inequality. `effect`: its value for each seed.
    - `relation` and `threshold`: what the claim demands of the effect; `reason`: why this threshold.
    - `exact`: the effect follows from definitions, not from training, so that seeds do not matter.
    """

    measure: str
    effect: Effect
    relation: Literal[">", "<"]
    threshold: float
    reason: str
    exact: bool = False


@dataclass(frozen=True)
class Claim:
    """A claim: its statement in our words, its source, the runs it needs and its inequalities.

    - `figures`: the figures that show it. `note`: what a reader should know, whatever the outcome.
    """

    number: int
    statement: str
    source: str
    figures: tuple[str, ...]
    plan: Callable[[Preset], Plan]
    parts: tuple[Part, ...]
    note: str = ""
