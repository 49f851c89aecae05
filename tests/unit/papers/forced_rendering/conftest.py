"""Runs of the tiny preset, trained when a test first asks for them."""

from collections.abc import Callable

import pytest

from composcope.papers.forced_rendering.base import TINY
from composcope.runs.pipeline import run as train
from composcope.store.store import Store
from composcope.study.evidence import Evidence, RunCache
from composcope.study.plan import Plan, Preset, specs_of

Gather = Callable[[Callable[[Preset], Plan]], Evidence]


@pytest.fixture(scope="session")
def gather(tiny_runs: Store) -> Gather:
    """`gather(plan)`: the evidence for a plan at the tiny preset, all of its runs trained."""
    cache = RunCache(tiny_runs)

    def gathered(plan: Callable[[Preset], Plan]) -> Evidence:
        for spec in specs_of(plan(TINY)).values():
            if not cache.store.has(spec.run_id):
                train(spec, cache.store)
        return cache.gather(TINY, plan(TINY))

    return gathered
