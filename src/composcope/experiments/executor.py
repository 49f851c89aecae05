"""Many runs at once: local processes, one thread each."""

import logging
import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import wait as wait_for_end
from pathlib import Path
from typing import Any

from composcope.errors import ComposcopeError, DiskFull, RunFailed
from composcope.experiments.diagnose_runs import measure_run
from composcope.experiments.machine import using_threads
from composcope.experiments.plugins import load_plugin
from composcope.experiments.run import run
from composcope.experiments.spec import NotComposition, Spec
from composcope.experiments.store import Store
from composcope.experiments.sweep import total_steps
from composcope.fastconv import Mode, keep_memory, status

# A run whose worker process dies is tried again; after this many deaths the cause is not chance.
MOST_LOSSES = 3
# A diagnosis takes about as long as this many training steps, at all sizes tried.
DIAGNOSIS_STEPS = 300


@dataclass(frozen=True)
class Outcome:
    """How a run ended; `failure` is empty if it succeeded."""

    run_id: str
    failure: str = ""


OnProgress = Callable[[float, Sequence[Outcome]], None]


def run_all(
    specs: Sequence[Spec],
    store: Store,
    workers: int | None = None,
    plugins: Sequence[Path] = (),
    kernels: Mode = "auto",
    on_progress: OnProgress | None = None,
    diagnosed: Collection[str] = (),
    costs: Mapping[str, float] | None = None,
    about: Mapping[str, Any] | None = None,
) -> list[Outcome]:
    """Do the runs that the store lacks, by default with one worker per core, each stored as soon as it is done.

    - `on_progress(work, outcomes)`: called several times a second with the work done and the runs that ended. The work
      of a run is its number of steps, or what `costs` has for its id; costly runs are started first.
    - `diagnosed`: ids of runs that are diagnosed too, after training; a diagnosis counts as `DIAGNOSIS_STEPS` steps.
    - `about`: added to every run's provenance.
    """
    store.prepare()
    if kernels == "auto":
        status()  # compiles once; otherwise every worker would
    ordered = sorted(specs, key=lambda spec: -costs[spec.run_id]) if costs else specs
    todo = {spec.run_id: spec for spec in ordered if missing(spec, store, diagnosed)}
    context = multiprocessing.get_context("spawn")
    work = context.Value("d", 0.0)
    shared = (str(store.folder), kernels, dict(about or {}))
    outcomes: list[Outcome] = []
    losses = 0
    while todo:
        pool = ProcessPoolExecutor(
            min(workers or os.cpu_count() or 1, len(todo)),
            context,
            _start_worker,
            (work, [str(path) for path in plugins]),
        )
        try:
            futures = {
                pool.submit(_work, _Job(spec.to_dict(), run_id in diagnosed, step_cost(spec, costs)), *shared)
                for run_id, spec in todo.items()
            }
            for outcome in _outcomes(futures, lambda: on_progress and on_progress(work.value, outcomes)):
                outcomes.append(outcome)
                del todo[outcome.run_id]
        except BrokenProcessPool:
            losses += 1
            if losses == MOST_LOSSES:
                raise RunFailed(f"{losses} worker processes died; out of memory? {len(todo)} runs are left") from None
        finally:
            _end(pool)
    return outcomes


def step_cost(spec: Spec, costs: Mapping[str, float] | None) -> float:
    """The work of one training step."""
    return costs[spec.run_id] / total_steps(spec) if costs else 1.0


def workload(
    specs: Sequence[Spec], store: Store, diagnosed: Collection[str] = (), costs: Mapping[str, float] | None = None
) -> float:
    """The work that `run_all` will do, in the units of `on_progress`."""
    total = 0.0
    for spec in specs:
        steps = 0 if store.has(spec.run_id) else total_steps(spec)
        steps += DIAGNOSIS_STEPS if spec.run_id in diagnosed else 0
        total += steps * step_cost(spec, costs)
    return total


def missing(spec: Spec, store: Store, diagnosed: Collection[str] = ()) -> bool:
    """Whether the run still has to be trained, or diagnosed."""
    if not store.complete(spec.run_id):
        return True
    return spec.run_id in diagnosed and not store.has_diagnosis(spec.run_id)


def _outcomes(futures: set[Future[Outcome]], heartbeat: Callable[[], Any]) -> Any:
    """Outcomes as the runs end, with a heartbeat several times a second."""
    while futures:
        done, futures = wait(futures, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in done:
            yield future.result()
        heartbeat()


def _end(pool: ProcessPoolExecutor) -> None:
    """Leave no worker behind, even one in the middle of a run."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(5)


def _start_worker(work: Any, plugins: Sequence[str]) -> None:
    global _done
    _done = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    threading.Thread(target=_end_with_parent, daemon=True).start()
    warnings.simplefilter("ignore", NotComposition)  # the parent has warned already
    logging.getLogger("composcope.fastconv").setLevel(logging.ERROR)  # and logged this
    keep_memory()
    for path in plugins:
        load_plugin(path)


def _end_with_parent() -> None:
    """End this worker when its parent does; otherwise it would wait for work forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for_end([parent.sentinel])
        os._exit(1)


@dataclass(frozen=True)
class _Job:
    """One run for a worker: its spec as plain data, whether it is diagnosed, and the work of one step."""

    spec: dict[str, Any]
    diagnosed: bool
    step_cost: float


def _work(job: _Job, folder: str, kernels: Mode, about: Mapping[str, Any]) -> Outcome:
    value, store = Spec.from_dict(job.spec), Store(folder)
    try:
        run(value, store, kernels=kernels, on_step=lambda step, module: _count(job.step_cost), about=about)
        if job.diagnosed and not store.has_diagnosis(value.run_id):
            with using_threads(1):
                measure_run(store, value.run_id)
            _count(job.step_cost * DIAGNOSIS_STEPS)
    except DiskFull:  # the others could not be stored either
        raise
    except Exception as failure:  # one run's failure must not end the others
        return Outcome(value.run_id, str(failure) if isinstance(failure, ComposcopeError) else repr(failure))
    return Outcome(value.run_id)


_done: Any = None


def _count(work: float) -> None:
    with _done.get_lock():
        _done.value += work
