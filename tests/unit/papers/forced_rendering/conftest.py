"""Runs of the tiny preset, trained when a test first asks for them."""

import os
from collections.abc import Callable

import pytest

from composcope.papers.forced_rendering.base import TINY
from composcope.runs.pipeline import run as train
from composcope.store.store import Store
from composcope.study.evidence import Evidence, RunCache
from composcope.study.plan import Plan, Preset, specs_of

Gather = Callable[[Callable[[Preset], Plan]], Evidence]


@pytest.fixture(scope="session")
def gather(tmp_path_factory: pytest.TempPathFactory) -> Gather:
    """`gather(plan)`: the evidence for a plan at the tiny preset, all of its runs trained.

    The processes of a parallel test run share the store.
    """
    base = tmp_path_factory.getbasetemp()
    cache = RunCache(Store((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "tiny runs"))

    def gathered(plan: Callable[[Preset], Plan]) -> Evidence:
        for spec in specs_of(plan(TINY)).values():
            if not cache.store.has(spec.run_id):
                train(spec, cache.store)
        return cache.gather(TINY, plan(TINY))

    return gathered
