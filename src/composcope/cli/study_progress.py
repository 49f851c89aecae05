"""What is printed while a study is planned and run: the plan with its cost, progress and failures."""

import sys
from contextlib import ExitStack
from itertools import chain
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from composcope.cli import interrupt
from composcope.cli.sweeps import journal_of, time_left
from composcope.display import counted
from composcope.terminal import shown

if TYPE_CHECKING:
    from composcope.store.store import Store
    from composcope.study.reproduce import Event, Planned
    from composcope.workers.journal import Journal

STAGES = {
    "timing": "timing a few steps of each network",
    "runs": "runs",
    "figures": "figures",
    "claims": "claims",
}


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
        from composcope.terminal import progress_bar

        interrupt.check()
        if isinstance(event, Progress):
            if event.stage != self.stage:
                self.bar.close()
                if event.stage == "runs" and self.store is not None:
                    self.journal = self.bar.enter_context(
                        journal_of(self.store, f"reproduce {self.title}", self.runs, event.total)
                    )
                self.advance = self.bar.enter_context(progress_bar(STAGES[event.stage]))
                self.stage = event.stage
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
            failures = [outcome for outcome in event.outcomes if outcome.failure]
            for outcome in failures:
                print(f"error: {shown(outcome.failure)}", file=sys.stderr)
            print(f"{counted(len(event.outcomes) - len(failures), 'run')} done, {len(failures)} failed")


def _print_plan(event: "Planned", workers: int | None) -> None:
    work, request = event.work, event.request
    if event.round == 0:
        print(
            f"{request.study.name}, preset {request.preset.name}:"
            f" {counted(len(request.panels), 'figure')}, {counted(len(request.claims), 'claim')}"
        )
        runs = counted(len(work.runs), "run")
        print(f"{runs}: {work.done} in {event.store.folder}, {len(work.todo)} to do now", end="")
        later = sum(work.later.values())
        print(f"; up to {later} more as searches continue" if later else "")
    elif work.todo:
        print(f"the searches need {counted(len(work.todo), 'run', 'more')}")
    if work.todo:
        print(time_left(event.seconds, len(work.todo), workers))


def print_dry_run(
    study: str | None, figures: list[str], store: Any, workers: int | None, kernels: Any, options: dict[str, Any]
) -> None:
    """The plan, with the cost of each figure in CPU time; runs that figures share are counted once."""
    from composcope.runs.costs import missing, workload
    from composcope.study.plan import specs_of
    from composcope.study.reproduce import Planned, estimated_costs
    from composcope.study.request import make_request, remaining_work
    from composcope.study.study import find_study
    from composcope.terminal import print_table

    request = make_request(find_study(study), figures, **options)
    work = remaining_work(request, store)
    specs = list(work.todo.values())
    candidates = {  # of which a search does some, depending on what the runs before them show
        panel.name: [spec for spec in specs_of(request.plan(panel)).values() if missing(spec, store)]
        for panel in request.panels
        if work.later.get(panel.name)
    }
    with EventPrinter(workers) as printer:
        costs = estimated_costs([*specs, *chain(*candidates.values())], kernels, printer)
        printer(Planned(request, work, store, workload(specs, store, work.diagnosed, costs), 0))
    rows, counted, more = [], set[str](), 0.0
    for panel in request.panels:
        new = work.wanted[panel.name] - counted
        own = [spec for run_id, spec in work.todo.items() if run_id in new]
        counted |= new
        seconds = workload(own, store, work.diagnosed, costs)
        searching = 0.0
        if searched := candidates.get(panel.name):
            mean = workload(searched, store, work.diagnosed, costs) / len(searched)
            searching = mean * work.later[panel.name]
        more += searching
        time = _time_range(seconds, searching) if own else "-"
        rows.append({"figure": panel.name, "runs to do": len(own), "core time": time})
    total = _time_range(workload(specs, store, work.diagnosed, costs), more)
    print_table([*rows, {"figure": "all", "runs to do": len(specs), "core time": total}])


def _time_range(seconds: float, more: float) -> str:
    """A time, or from when to when if searches may need more."""
    from composcope.terminal import duration

    return f"{duration(seconds)} to {duration(seconds + more)}" if more else duration(seconds)
