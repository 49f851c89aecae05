"""Figures and claims: the same digits, however many processes make them."""

import torch

from composcope.papers.forced_rendering.study import STUDY
from composcope.runs.machine import using_threads
from composcope.study import parallel
from composcope.study.request import make_request
from composcope.workers.local_pool import LocalPool


def test_figures_and_claims_are_made_on_one_thread(store, monkeypatch):
    """Also in this process, which may have more: last digits depend on the number of threads."""
    threads = []

    def count(*given):
        threads.append(torch.get_num_threads())
        return []

    monkeypatch.setattr(parallel, "render", count)
    monkeypatch.setattr(parallel, "observe", count)
    request = make_request(STUDY, ["controls"], "tiny")
    with using_threads(2):
        made = [source for source, _ in parallel._results(request, store, LocalPool(1), ())]
        assert torch.get_num_threads() == 2
    assert made == [*request.panels, *request.claims]
    assert threads == [1] * len(made)
