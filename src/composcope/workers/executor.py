"""Many runs at once, on anything that is a `concurrent.futures.Executor`: local processes by default, or a cluster."""

import queue
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

from composcope import __version__
from composcope.display import counted
from composcope.errors import BadInput, RunFailed
from composcope.fastconv import Mode, status
from composcope.runs.machine import provenance_of
from composcope.runs.spec import Spec
from composcope.store.store import Store
from composcope.workers.costs import missing, step_cost, workload
from composcope.workers.jobs import Ended, Job, Settings, hung_before, work
from composcope.workers.limits import Resources, local_workers
from composcope.workers.local_pool import LocalPool

# A run is given up when its worker has died this often, the last time while running alone.
MAX_DEATHS = 2
# Workers that die before they begin a run die for all runs; after this many times in a row there is no point.
MAX_FALSE_STARTS = 3
MANY_HOURS = 2 * 3600.0  # seconds of one core
HEARTBEAT = 0.2  # seconds
# How Dask and submitit, which need not be installed, say that a worker died.
WORKER_DIED = ("KilledWorker", "UncompletedJobError")
BUSY_PAUSE = 1.0  # seconds until a run that another process is doing is looked at again


@dataclass(frozen=True)
class Outcome:
    """How a run ended; `failure` is empty if it succeeded."""

    run_id: str
    failure: str = ""


class EngineOptions(TypedDict, total=False):
    """Where and under which limits `run_all` does the runs; see there."""

    executor: Executor | None
    gather: bool
    resources: Resources | None
    time_limit: float | None


Handle = Any
"""A `Future` of an `Ended`, or a job of submitit, which has `done`, `result` and `cancel` as well."""

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
    **engine: Unpack[EngineOptions],
) -> list[Outcome]:
    """Do the runs that the store lacks, each stored as soon as it is done.

    - `workers`: local processes, by default one per core. `executor`: anything else that runs the jobs, for example
      `client.get_executor()` of Dask; it is not shut down.
    - `on_progress(work, outcomes)`: called several times a second with the work done and the runs that ended. The work
      of a run is its number of steps, or the seconds that `costs` has for its id; see `ordered` for what comes first.
    - `diagnosed`: ids of runs that are diagnosed too, after training; a diagnosis counts as `DIAGNOSIS_STEPS` steps.
    - `about`: added to every run's provenance.
    - `gather`: the workers do not see the store's folder; their files come back through the executor.
    - `resources`: what each run needs. `time_limit`: the seconds that a run may take; then it is ended and has failed.
    """
    store.prepare()
    executor, gather = engine.get("executor"), engine.get("gather", False)
    resources = engine.get("resources") or Resources()
    # Compiles once, or finds out that it cannot; otherwise every worker here would.
    if kernels == "auto" and (executor is None or isinstance(executor, LocalPool)) and not status().available:
        kernels = "torch"
    todo = {spec.run_id: spec for spec in ordered(specs, costs or {}) if missing(spec, store, diagnosed)}
    if not todo:
        return []
    settings = Settings(
        folder=None if gather else str(store.folder.resolve()),
        kernels=kernels,
        about=dict(about or {}),
        plugins=tuple(str(Path(path).resolve()) for path in plugins),
        threads=resources.threads,
        device=resources.device,
        time_limit=engine.get("time_limit"),
    )
    jobs = [
        Job(run_id, spec.to_dict(), run_id in diagnosed, slot, uuid.uuid4().hex, _sent(store, run_id, gather))
        for slot, (run_id, spec) in enumerate(todo.items())
    ]
    amounts = {run_id: workload([spec], store, diagnosed, costs) for run_id, spec in todo.items()}
    steps = {run_id: step_cost(spec, costs) for run_id, spec in todo.items()}
    progress = _Progress(jobs, amounts, steps, on_progress)
    pool = executor or LocalPool(local_workers(workers, resources, len(todo)), len(todo))
    if isinstance(executor, LocalPool):
        for job in jobs:
            executor.forget(job.slot)  # what a former call left there
    try:
        with _gathering(store) if gather else nullcontext():
            return list(_Driver(pool, settings, store, todo, diagnosed, progress).outcomes(jobs))
    finally:
        if executor is None:
            pool.shutdown()


def ordered(specs: Sequence[Spec], costs: Mapping[str, float]) -> list[Spec]:
    """Costly runs first, so that no worker is left with one at the end; of many hours' work, seed by seed.

    An interruption then leaves whole seeds, which can be compared. `costs`: seconds by run id, or empty.
    """
    by_cost = sorted(specs, key=lambda spec: -costs.get(spec.run_id, 0.0))
    return sorted(by_cost, key=lambda spec: spec.seed) if sum(costs.values()) > MANY_HOURS else by_cost


@contextmanager
def shared_workers(engine: EngineOptions, workers: int | None, jobs: int) -> Iterator[tuple[LocalPool, EngineOptions]]:
    """Local processes for several calls, started when first used and ended with the context; and options for `run_all`.

    The options have these processes as executor, unless they have another one already.

    - `jobs`: at most how many jobs a call will have.
    """
    with LocalPool(local_workers(workers, engine.get("resources") or Resources(), jobs), jobs) as pool:
        yield pool, engine if engine.get("executor") is not None else {**engine, "executor": pool}


@contextmanager
def _gathering(store: Store) -> Iterator[None]:
    """Workers that do not see the store cannot tell each other what they do, so one driver at a time sends them."""
    with store.lease("gathering") as mine:
        if not mine:
            raise BadInput(
                f"another process is gathering runs into store {str(store.folder)!r}; wait for it, or give this one a "
                "store of its own"
            )
        yield


def _sent(store: Store, run_id: str, gather: bool) -> Mapping[str, bytes]:
    """What a worker without a shared store needs of a run that is trained but not diagnosed."""
    return store.run_folder(run_id).files() if gather and store.has(run_id) else {}


def _put_if_done(future: Handle, finished: "queue.SimpleQueue[Handle]") -> bool:
    done = bool(future.done())
    if done:
        finished.put(future)
    return done


class _Progress:
    """The work done: all of the runs that ended, and what the local workers report of the others."""

    def __init__(
        self,
        jobs: Sequence[Job],
        amounts: Mapping[str, float],
        steps: Mapping[str, float],
        on_progress: OnProgress | None,
    ) -> None:
        self.open = {job.run_id: job for job in jobs}
        self.amounts, self.step_costs, self.on_progress = amounts, steps, on_progress
        self.finished = self.last = 0.0
        self.ended: list[Outcome] = []

    def end(self, outcome: Outcome) -> None:
        if self.open.pop(outcome.run_id, None):
            self.finished += self.amounts[outcome.run_id]
        self.ended.append(outcome)

    def update(self, engine: Executor) -> None:
        if self.on_progress is None:
            return
        done = self.finished
        if isinstance(engine, LocalPool):
            steps = engine.steps()
            for run_id, job in self.open.items():
                if steps[job.slot]:
                    done += min(steps[job.slot] * self.step_costs[run_id], self.amounts[run_id])
        self.last = max(self.last, done)  # a run that is done again does not take progress back
        self.on_progress(self.last, self.ended)


class _Driver:
    """Submits jobs, takes in what comes back, and decides what happens to jobs whose worker died."""

    def __init__(
        self,
        engine: Executor,
        settings: Settings,
        store: Store,
        specs: Mapping[str, Spec],
        diagnosed: Collection[str],
        progress: _Progress,
    ) -> None:
        self.engine, self.settings, self.store = engine, settings, store
        self.specs, self.diagnosed, self.progress = specs, diagnosed, progress
        self.suspects: list[Job] = []  # their worker died once: tried again at the end, alone
        self.busy: list[Job] = []  # another process is doing them
        self.false_starts = 0

    def outcomes(self, jobs: Sequence[Job]) -> list[Outcome]:
        batch = list(jobs)
        while batch or self.suspects or self.busy:
            alone = not batch and bool(self.suspects)
            if not batch:
                batch = [self.suspects.pop(0)] if self.suspects else self._no_longer_busy()
            batch = self._sort_lost(list(self._do(batch)), alone)
        self.progress.update(self.engine)
        return self.progress.ended

    def _do(self, batch: Sequence[Job]) -> Iterator[Job]:
        """Do the jobs; yields those whose worker died."""
        finished: queue.SimpleQueue[Handle] = queue.SimpleQueue()
        futures: dict[Handle, Job] = {}
        silent: list[Handle] = []  # submitit's jobs, which have to be asked whether they ended
        try:
            for job in batch:
                future = self._submit(job)
                futures[future] = job
                if hasattr(future, "add_done_callback"):
                    future.add_done_callback(finished.put)
                else:
                    silent.append(future)
            while futures:
                try:
                    future = finished.get(timeout=HEARTBEAT)
                except queue.Empty:
                    self.progress.update(self.engine)
                    silent = [future for future in silent if not _put_if_done(future, finished)]
                    continue
                job = futures.pop(future)
                ended = self._result(future)
                if ended is None:
                    yield job
                else:
                    self._take(job, ended, len(futures))
                if finished.empty():
                    self.progress.update(self.engine)
        finally:
            for future in futures:
                future.cancel()

    def _submit(self, job: Job) -> Handle:
        try:
            return self.engine.submit(work, job, self.settings)
        except BrokenExecutor as error:
            raise RunFailed(f"the executor is broken: {error}; run the same again with a new one") from None

    def _result(self, future: Handle) -> Ended | None:
        """How the job ended; None if its worker died. `work` raises nothing, so any error is the engine's."""
        try:
            ended: Ended = future.result()
            return ended
        except BrokenExecutor:
            return None
        except Exception as error:
            if type(error).__name__ in WORKER_DIED:
                return None
            if isinstance(error, CancelledError):
                reason = "its tasks were cancelled; has its scheduler ended?"
            else:
                reason = f"{type(error).__name__}: {error} (do all workers have composcope {__version__}?)"
            raise RunFailed(
                f"the executor failed: {reason}; finished runs are stored, run the same again to resume"
            ) from None

    def _take(self, job: Job, ended: Ended, remaining: int) -> None:
        self.false_starts = 0
        if ended.files:
            self.store.add(ended.run_id, ended.files)
        if ended.state == "stop":
            raise RunFailed(f"{ended.failure}; stopped, {counted(remaining + 1, 'run')} left")
        if ended.state == "busy":
            self.busy.append(job)
        else:
            self.progress.end(Outcome(ended.run_id, ended.failure))

    def _sort_lost(self, lost: Sequence[Job], alone: bool) -> list[Job]:
        """What becomes of jobs whose worker died; returns those to submit again."""
        again, steps = [], self.engine.steps() if isinstance(self.engine, LocalPool) else None
        for job in lost:
            failure = hung_before(self.store, job)
            if failure:
                self.progress.end(Outcome(job.run_id, failure))
            elif alone:
                self._give_up(job)
            elif steps is None or steps[job.slot]:
                self.suspects.append(job)
            else:
                again.append(job)
            if isinstance(self.engine, LocalPool):
                self.engine.forget(job.slot)
        if lost and len(again) == len(lost):
            self.false_starts += 1
            if self.false_starts == MAX_FALSE_STARTS:
                raise RunFailed(
                    f"worker processes died {self.false_starts} times in a row before they began a run; is there enough"
                    ' memory, and does a script of your own call this under `if __name__ == "__main__":`?'
                    f" {counted(len(again), 'run')} left"
                )
        return again

    def _give_up(self, job: Job) -> None:
        reason = f"its worker process died {MAX_DEATHS} times, the last time while running alone"
        spec = self.specs[job.run_id]
        self.store.save_failure(spec, f"{reason}; out of memory, or a crash in compiled code?", provenance_of("cpu", 1))
        self.progress.end(Outcome(job.run_id, f"run {job.run_id}: {reason}"))

    def _no_longer_busy(self) -> list[Job]:
        """After a pause, the runs that another process was doing and has not finished."""
        end = time.monotonic() + BUSY_PAUSE
        while time.monotonic() < end:
            self.progress.update(self.engine)
            time.sleep(HEARTBEAT)
        waiting, self.busy = self.busy, []
        again = []
        for job in waiting:
            if missing(self.specs[job.run_id], self.store, self.diagnosed):
                again.append(job)
            else:
                self.progress.end(Outcome(job.run_id))
        return again
