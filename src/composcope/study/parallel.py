"""The figures and claims of a request, in several processes where that saves time."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from composcope.errors import RunFailed
from composcope.runs.machine import using_threads
from composcope.store.store import Store
from composcope.study.claim import Claim
from composcope.study.evidence import RunCache
from composcope.study.observations import Observation, observe
from composcope.study.panel import Panel, RenderedPanel, render
from composcope.study.plan import Preset, specs_of
from composcope.study.request import Request
from composcope.study.study import find_study, studies
from composcope.workers.jobs import load_plugins
from composcope.workers.local_pool import LocalPool

# Starting a process imports torch and matplotlib, which takes as long as a few figures or claims.
MIN_FOR_PROCESSES = 8

OnProgress = Callable[[int, int], None]


def draw_and_observe(
    request: Request,
    store: Store,
    pool: LocalPool,
    plugins: Sequence[Path] = (),
    on_figure: OnProgress = lambda done, total: None,
    on_claim: OnProgress = lambda done, total: None,
) -> tuple[tuple[RenderedPanel, ...], tuple[Observation, ...]]:
    """Every figure of the request and the effects of every claim, both in its order, from what the store has."""
    panels: dict[str, RenderedPanel] = {}
    effects: dict[int, list[Observation]] = {}
    for source, result in _results(request, store, pool, plugins):
        if isinstance(result, RenderedPanel):
            panels[result.name] = result
            on_figure(len(panels), len(request.panels))
        else:
            assert isinstance(source, Claim)
            effects[source.number] = result
            on_claim(len(effects), len(request.claims))
    observations = [observation for claim in request.claims for observation in effects[claim.number]]
    return tuple(panels[panel.name] for panel in request.panels), tuple(observations)


def _results(
    request: Request, store: Store, pool: LocalPool, plugins: Sequence[Path]
) -> Iterator[tuple[Panel | Claim, RenderedPanel | list[Observation]]]:
    """Each figure and claim with its result, as they get done."""
    sources = _sources(request)
    # A process can only find a study by its name, so what is not registered is done here.
    registered = studies().get(request.study.name) is request.study
    if pool.workers == 1 or not registered or _available(request, store) < MIN_FOR_PROCESSES:
        cache = RunCache(store)
        for source in sources:
            yield source, _result(source, request, cache)
        return
    job = _Job(
        request.study.name, request.preset, request.settings, str(store.folder), tuple(str(path) for path in plugins)
    )
    futures = {pool.submit(_work, job, _name(source)): source for source in sources}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool:
        raise RunFailed("a process that draws figures died; is there enough memory? Try fewer --workers") from None


def _sources(request: Request) -> list[Panel | Claim]:
    return [*request.panels, *request.claims]


def _available(request: Request, store: Store) -> int:
    """The number of figures and claims of which the store has a run."""
    plans = (specs_of(request.plan(source)) for source in _sources(request))
    return sum(any(store.has(run_id) for run_id in plan) for plan in plans)


def _result(source: Panel | Claim, request: Request, cache: RunCache) -> RenderedPanel | list[Observation]:
    """One figure or claim, on one thread: last digits depend on the number of threads."""
    with using_threads(1):
        if isinstance(source, Panel):
            return render(source, request.preset, request.settings, cache)
        return observe(source, cache.gather(request.preset, request.plan(source)))


def _name(source: Panel | Claim) -> str | int:
    """What finds the figure or claim in its study again."""
    return source.name if isinstance(source, Panel) else source.number


@dataclass(frozen=True)
class _Job:
    """What a worker needs to find the figures, claims and runs of a request again."""

    study: str
    preset: Preset
    settings: tuple[str, ...]
    store: str
    plugins: tuple[str, ...]


def _work(job: _Job, name: str | int) -> RenderedPanel | list[Observation]:
    """In a worker: one figure or claim."""
    request, runs = _opened(job)
    source = next(source for source in _sources(request) if _name(source) == name)
    return _result(source, request, runs)


@cache
def _opened(job: _Job) -> tuple[Request, RunCache]:
    """The request and its runs, which a worker's figures and claims share."""
    load_plugins(job.plugins)
    study = find_study(job.study)
    return Request(study, job.preset, study.panels, study.claims, job.settings), RunCache(Store(job.store))
