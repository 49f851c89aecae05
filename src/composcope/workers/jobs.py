"""One run as a job that any worker can do: plain data in, an outcome out; nothing depends on who starts the worker."""

import os
import platform
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

import torch

import composcope
from composcope.errors import BadInput, ComposcopeError, DiskFull
from composcope.fastconv import Mode, keep_memory
from composcope.runs.machine import provenance_of, using_threads
from composcope.runs.pipeline import run_with_lease
from composcope.runs.plugins import load_plugin
from composcope.runs.spec import RESULTS_VERSION, LeakedImages, NotComposition, Spec
from composcope.store.store import Store
from composcope.workers.limits import TimeLimit

State = Literal["done", "failed", "busy", "stop"]


@dataclass(frozen=True)
class Settings:
    """What all jobs of a sweep share.

    - `folder`: the store, or None if workers do not see it: then the run's files come back with the outcome.
    - `time_limit`: seconds that a run may take. `about`: added to every run's provenance.
    - `versions`: what a worker must have installed.
    """

    folder: str | None
    kernels: Mode = "auto"
    about: Mapping[str, Any] = field(default_factory=dict)
    plugins: tuple[str, ...] = ()
    threads: int = 1
    device: str = "cpu"
    time_limit: float | None = None
    versions: Mapping[str, str] = field(default_factory=lambda: installed_versions())


@dataclass(frozen=True)
class Job:
    """One run for a worker.

    - `diagnosed`: whether it is diagnosed after training. `slot`: where its progress is reported.
    - `attempt`: unique to this job. `files`: without a shared store, what there is of the run already.
    """

    run_id: str
    spec: Mapping[str, Any]
    diagnosed: bool
    slot: int
    attempt: str
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Ended:
    """How a job ended: "busy" if another process is doing the run, "stop" if no other run can succeed here either."""

    run_id: str
    state: State
    failure: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)


def installed_versions() -> dict[str, str]:
    """What the numbers of a run depend on most, by name."""
    return {
        "composcope": composcope.__version__,
        "torch": torch.__version__.partition("+")[0],
        "RESULTS_VERSION": str(RESULTS_VERSION),
    }


Report = Callable[[int, float], None]
_report: Report = lambda slot, steps: None  # noqa: E731
# The random state and the number of threads belong to the process, so one run at a time.
_turn = threading.Lock()


def report_to(report: Report) -> None:
    """Have this process report its jobs' progress, in steps, to `report(slot, steps)`."""
    global _report
    _report = report


def work(job: Job, settings: Settings) -> Ended:
    """Do a run; never raises what the run raises, so that whatever an executor raises is the executor's own failure."""
    try:
        check_versions(settings.versions)
        load_plugins(settings.plugins)
    except ComposcopeError as error:
        return Ended(job.run_id, "stop", f"worker on {platform.node()}: {error}")
    keep_memory()
    with _turn, warnings.catch_warnings():
        for category in (NotComposition, LeakedImages):
            warnings.simplefilter("ignore", category)  # the driver has warned already
        if settings.folder is not None:
            return _attempt(job, settings, settings.folder)
        with tempfile.TemporaryDirectory(prefix="composcope-") as folder:
            ended = _attempt(job, settings, folder)
            return replace(ended, files=Store(folder).run_folder(job.run_id).files())


def _attempt(job: Job, settings: Settings, folder: str) -> Ended:
    try:
        store = Store(folder)
        if job.files:
            store.add(job.run_id, job.files)
        return _do(job, settings, store)
    except Exception as error:  # one run's failure must not end the others
        reason = str(error) if isinstance(error, ComposcopeError) else f"run {job.run_id}: {error!r}"
        return Ended(job.run_id, "stop" if isinstance(error, DiskFull) else "failed", reason)


def check_versions(wanted: Mapping[str, str]) -> None:
    """BadInput that names what is installed here in another version."""
    here = installed_versions()
    differences = [
        f"{name} {here.get(name, 'missing')} instead of {version}"
        for name, version in wanted.items()
        if here.get(name) != version
    ]
    if differences:
        raise BadInput(f"refused: it has {', '.join(differences)}; install the same versions everywhere")


def _do(job: Job, settings: Settings, store: Store) -> Ended:
    spec = Spec.from_dict(job.spec)
    with store.lease(job.run_id) as mine:
        if not mine:
            return Ended(job.run_id, "busy")
        if failure := hung_before(store, job):
            return Ended(job.run_id, "failed", failure)
        _report(job.slot, 1e-9)  # started
        with TimeLimit(settings.time_limit, lambda reason: _record_hang(store, spec, job, reason)) as limit:

            def on_step(step: int, module: Any) -> None:
                limit.check()
                _report(job.slot, step)

            options = (settings.device, settings.threads, settings.kernels)
            run = run_with_lease(spec, store, *options, on_step=on_step, about=settings.about)
            if job.diagnosed and not run.artifacts.has_diagnosis():
                with using_threads(1):
                    run.measure(on_progress=lambda done, total: limit.check())
    return Ended(job.run_id, "done")


def hung_before(store: Store, job: Job) -> str:
    """The reason, if an earlier worker has given this very job up because it hung."""
    if store.has(job.run_id) or not (store.folder / job.run_id).exists():
        return ""
    record = store.record(job.run_id)
    return record.problem if record.provenance.get("attempt") == job.attempt else ""


def _record_hang(store: Store, spec: Spec, job: Job, reason: str) -> None:
    store.save_failure(spec, f"run {spec.run_id}: {reason}", {**provenance_of("cpu", 1), "attempt": job.attempt})


@cache
def load_plugins(paths: tuple[str, ...]) -> None:
    """Load plugin files in this worker, once."""
    for path in paths:
        if not os.path.isfile(path):
            raise BadInput(f"there is no plugin file {path!r} here; it must be at the same path for every worker")
        load_plugin(path)
