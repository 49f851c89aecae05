"""One picture of the paper: the runs it needs, the numbers it shows, and how they are drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from composcope.experiments.spec import Spec
from composcope.experiments.store import Store
from composcope.paper.evidence import Evidence, Plan
from composcope.paper.preset import Preset


def every_run(plan: Plan, store: Store) -> list[Spec]:
    """All of a plan's runs."""
    return [spec for specs in plan.values() for spec in specs]


@dataclass(frozen=True)
class Panel:
    """One picture.

    - `name`: "1b"; `see`: one line on what to look at.
    - `plan`: the runs it needs; `numbers`: what it shows, from these runs; `draw`: the picture
      of these numbers, whose `table()` gives the rows behind it.
    - `no_claim`: why no claim rests on it, if none does.
    - `needed`: which of the plan's runs to do, given what the store has. `diagnosed`: whether runs are diagnosed too.
    """

    name: str
    title: str
    see: str
    plan: Callable[[Preset], Plan]
    numbers: Callable[[Evidence], Any]
    draw: Callable[[Any], Any]
    no_claim: str = ""
    needed: Callable[[Plan, Store], list[Spec]] = every_run
    diagnosed: bool = True
