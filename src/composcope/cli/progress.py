"""What is printed while runs are done: the plan with its cost, progress, failures, and a log in the store."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from composcope.cli import interrupt
from composcope.display import counted
from composcope.terminal import duration, progress_bar, shown

if TYPE_CHECKING:
    from composcope.runs.spec import Spec
    from composcope.store.store import Store
    from composcope.study.reproduce import Event, Planned
    from composcope.workers.executor import EngineOptions, Outcome
    from composcope.workers.journal import Journal

TIMING = "timing a few steps of each network"
STAGES = {"timing": TIMING, "runs": "runs", "figures": "figures", "claims": "claims"}


def run_with_progress(
    specs: "Sequence[Spec]",
    store: "Store",
    workers: int | None,
    plugins: Sequence[Path] = (),
    kernels: Literal["auto", "torch"] = "auto",
    *,
    title: str,
    engine: "EngineOptions",
) -> None:
    """Do the runs with a progress bar and a log in the store; failures are printed after all were tried."""
    from composcope.workers.costs import workload
    from composcope.workers.executor import run_all

    store.prepare()
    total = workload(specs, store)
    with journal_of(store, title, len(specs), total) as journal, progress_bar(counted(len(specs), "run")) as advance:

        def report(done: float, ended: "Sequence[Outcome]") -> None:
            interrupt.check()
            advance(min(done, total), total)
            journal.update(done, ended)

        outcomes = run_all(specs, store, workers, plugins, kernels, report, **engine)
    print(f"{_count_outcomes(outcomes)}; stored in {store.folder}")


def _count_outcomes(outcomes: "Sequence[Outcome]") -> str:
    """How many runs are done and how many failed; every failure is printed."""
    failures = [outcome for outcome in outcomes if outcome.failure]
    for outcome in failures:
        print(f"error: {shown(outcome.failure)}", file=sys.stderr)
    return f"{counted(len(outcomes) - len(failures), 'run')} done, {len(failures)} failed"


@contextmanager
def journal_of(store: "Store", title: str, runs: int, total: float) -> "Iterator[Journal]":
    """The log of a sweep; its last line says how the sweep ended."""
    from composcope.workers.journal import Journal

    journal = Journal(store, title, runs, total)
    try:
        yield journal
    except KeyboardInterrupt:
        journal.finish("interrupted")
        raise
    except BaseException as error:
        journal.finish("stopped", str(error))
        raise
    journal.finish("finished")


def time_left(seconds: float, runs: int, workers: int | None) -> str:
    """The estimate in words, from CPU seconds."""
    processes = workers or os.cpu_count() or 1
    parallel = max(min(processes, runs), 1)
    return f"about {duration(seconds / parallel)} with {counted(processes, 'worker')}, from {TIMING}"


class EventPrinter:
    """Prints what a study's events say; one progress bar per stage, and a log in the store while runs are done."""

    def __init__(self, workers: int | None = None, store: "Store | None" = None) -> None:
        self.workers, self.store = workers, store
        self.stage, self.title, self.runs = "", "", 0
        self.bar = ExitStack()
        self.journal: Journal | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.__exit__(kind, error, trace)

    def __call__(self, event: "Event") -> None:
        from composcope.study.reproduce import Planned, Progress

        interrupt.check()
        if isinstance(event, Progress):
            if event.stage != self.stage:
                self._begin(event.stage, event.total)
            self.advance(event.done, event.total)
            if event.stage == "runs" and self.journal is not None:
                self.journal.update(event.done, event.outcomes)
            return
        self.bar.close()
        self.stage = ""
        if isinstance(event, Planned):
            self.title, self.runs = event.request.study.name, len(event.work.todo)
            _print_plan(event, self.workers)
        else:
            print(_count_outcomes(event.outcomes))

    def _begin(self, stage: str, total: float) -> None:
        self.bar.close()
        if stage == "runs" and self.store is not None:
            journal = journal_of(self.store, f"reproduce {self.title}", self.runs, total)
            self.journal = self.bar.enter_context(journal)
        self.advance = self.bar.enter_context(progress_bar(STAGES[stage]))
        self.stage = stage


def _print_plan(event: "Planned", workers: int | None) -> None:
    work, request = event.work, event.request
    if event.round == 0:
        figures, claims = counted(len(request.panels), "figure"), counted(len(request.claims), "claim")
        print(f"{request.study.name}, preset {request.preset.name}: {figures}, {claims}")
        done = sum(map(event.store.has, work.runs))
        print(f"{counted(len(work.runs), 'run')}: {done} in {event.store.folder}, {len(work.todo)} to do now", end="")
        later = sum(work.later.values())
        print(f"; up to {later} more as searches continue" if later else "")
    elif work.todo:
        print(f"the searches need {counted(len(work.todo), 'run', 'more')}")
    if work.todo:
        print(time_left(event.seconds, len(work.todo), workers))
