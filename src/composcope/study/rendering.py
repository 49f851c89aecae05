"""All figures of a request, drawn in several processes where that saves time."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from composcope.experiments.machine import using_threads
from composcope.experiments.plugins import load_plugin
from composcope.experiments.store import Store
from composcope.study.evidence import RunCache
from composcope.study.panel import RenderedPanel, render
from composcope.study.plan import specs_of
from composcope.study.preset import Preset
from composcope.study.request import Request
from composcope.study.study import find_study, studies

# Starting a process imports torch and matplotlib, which takes as long as drawing a few figures.
FEWEST_FOR_PROCESSES = 8

OnProgress = Callable[[int, int], None]


def render_all(
    request: Request,
    cache: RunCache,
    workers: int | None = None,
    plugins: Sequence[Path] = (),
    on_progress: OnProgress = lambda done, total: None,
) -> tuple[RenderedPanel, ...]:
    """Every figure of the request, in its order."""
    names = [panel.name for panel in request.panels]
    crew = min(workers or os.cpu_count() or 1, len(names))
    # A process can only find a study by its name, so a study that is not registered is drawn here.
    known = studies().get(request.study.name) is request.study
    rendered: dict[str, RenderedPanel] = {}
    if crew == 1 or not known or _drawable(request, cache.store) < FEWEST_FOR_PROCESSES:
        for panel in request.panels:
            rendered[panel.name] = render(panel, request.preset, request.settings, cache)
            on_progress(len(rendered), len(names))
    else:
        job = _Job(request.study.name, request.preset, request.settings, str(cache.store.folder))
        start = (job, [str(path) for path in plugins])
        with ProcessPoolExecutor(crew, multiprocessing.get_context("spawn"), _start, start) as pool:
            for future in as_completed([pool.submit(_render, name) for name in names]):
                panel_ = future.result()
                rendered[panel_.name] = panel_
                on_progress(len(rendered), len(names))
    return tuple(rendered[name] for name in names)


def _drawable(request: Request, store: Store) -> int:
    """The number of figures of which the store has a run."""
    plans = (specs_of(request.plan(panel)) for panel in request.panels)
    return sum(any(store.has(run_id) for run_id in plan) for plan in plans)


@dataclass(frozen=True)
class _Job:
    study: str
    preset: Preset
    settings: tuple[str, ...]
    store: str


_job: _Job
_cache: RunCache


def _start(job: _Job, plugins: Sequence[str]) -> None:
    global _job, _cache
    for path in plugins:
        load_plugin(path)
    _job, _cache = job, RunCache(Store(job.store))


def _render(name: str) -> RenderedPanel:
    panel = next(panel for panel in find_study(_job.study).panels if panel.name == name)
    with using_threads(1):
        return render(panel, _job.preset, _job.settings, _cache)
