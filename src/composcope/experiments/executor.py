"""Many runs at once: local processes, one thread each."""

import logging
import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import wait as wait_for_end
from pathlib import Path
from typing import Any

from composcope.errors import ComposcopeError, RunFailed
from composcope.experiments.plugins import load_plugin
from composcope.experiments.spec import NotComposition, Spec
from composcope.experiments.store import Store
from composcope.kernels import Mode, keep_memory, status

# A run whose worker dies is tried again; after so many deaths something else is wrong.
MOST_LOSSES = 3


@dataclass(frozen=True)
class Outcome:
    """How a run ended: well, or with a reason."""

    run_id: str
    failure: str = ""


OnProgress = Callable[[int, Sequence[Outcome]], None]


def run_all(
    specs: Sequence[Spec],
    store: Store,
    workers: int | None = None,
    plugins: Sequence[Path] = (),
    kernels: Mode = "auto",
    on_progress: OnProgress | None = None,
) -> list[Outcome]:
    """Do the runs that the store lacks, one worker a core by default, each stored as soon as it is done.

    `on_progress(steps, outcomes)` hears several times a second how many training steps were made and which runs ended.
    """
    store.prepare()
    if kernels == "auto":
        status()  # compiles once, before every worker would
    todo = {spec.run_id: spec for spec in specs if not store.has(spec.run_id)}
    context = multiprocessing.get_context("spawn")
    steps = context.Value("q", 0)
    outcomes: list[Outcome] = []
    losses = 0
    while todo:
        pool = ProcessPoolExecutor(
            min(workers or os.cpu_count() or 1, len(todo)),
            context,
            _start_worker,
            (steps, [str(path) for path in plugins]),
        )
        try:
            futures = {pool.submit(_work, spec.to_dict(), str(store.folder), kernels) for spec in todo.values()}
            for outcome in _outcomes(futures, lambda: on_progress and on_progress(steps.value, outcomes)):
                outcomes.append(outcome)
                del todo[outcome.run_id]
        except BrokenProcessPool:
            losses += 1
            if losses == MOST_LOSSES:
                raise RunFailed(f"{losses} worker processes died; out of memory? {len(todo)} runs are left") from None
        finally:
            _end(pool)
    return outcomes


def _outcomes(futures: set[Future[Outcome]], heartbeat: Callable[[], Any]) -> Any:
    """Outcomes as they come, with a heartbeat several times a second."""
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


def _start_worker(steps: Any, plugins: Sequence[str]) -> None:
    global _steps
    _steps = steps
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    threading.Thread(target=_end_with_parent, daemon=True).start()
    warnings.simplefilter("ignore", NotComposition)  # said once by the parent
    logging.getLogger("composcope.kernels").setLevel(logging.ERROR)  # and so is this
    keep_memory()
    for path in plugins:
        load_plugin(path)


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for_end([parent.sentinel])
        os._exit(1)


def _work(spec: dict[str, Any], folder: str, kernels: Mode) -> Outcome:
    from composcope.experiments.run import run

    value = Spec.from_dict(spec)
    try:
        run(value, Store(folder), kernels=kernels, on_step=_count_step)
    except Exception as failure:  # one run's trouble is not the others'
        return Outcome(value.run_id, str(failure) if isinstance(failure, ComposcopeError) else repr(failure))
    return Outcome(value.run_id)


_steps: Any = None


def _count_step(step: int, module: Any) -> None:
    with _steps.get_lock():
        _steps.value += 1
