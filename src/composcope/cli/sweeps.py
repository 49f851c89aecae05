"""Commands for many runs: sweep, and status from another terminal."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from composcope.cli import interrupt
from composcope.cli.app import DEFAULT_STORE, KernelsOption, PluginOption, StoreOption, WorkersOption, app, load_plugins
from composcope.cli.engine import (
    DaskOption,
    GatherOption,
    ResourceOption,
    ShardOption,
    TimeLimitOption,
    check_engine,
    engine_options,
    shard_of,
)
from composcope.cli.groups import TRAIN
from composcope.display import counted
from composcope.errors import BadInput
from composcope.terminal import shown

if TYPE_CHECKING:
    from composcope.runs.spec import Spec
    from composcope.store.store import Store
    from composcope.store.sweep_ids import SweepIds
    from composcope.workers.executor import EngineOptions
    from composcope.workers.journal import Journal
    from composcope.workers.sharding import Shard

# Rows of a table that are printed; files have all of them.
MOST_ROWS = 30


@app.command(rich_help_panel=TRAIN, short_help="Train every combination of listed values; can be resumed.")
def sweep(
    sweep: Annotated[
        Path,
        typer.Argument(help=r"TOML file: \[base], a spec, or several \[\[base]]; \[vary], \[\[zip]] and \[\[skip]]."),
    ],
    workers: WorkersOption = None,
    store: StoreOption = DEFAULT_STORE,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the summary, CSV and Parquet; by default in the store.")
    ] = None,
    plugin: PluginOption = None,
    kernels: KernelsOption = "auto",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print how many runs there are and what they cost, by part.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="NAME=VALUE|ID",
            help="Only runs with this setting, or whose id begins so; repeatable.",
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Do at most this many runs now.")] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try runs again that failed; otherwise they are left out.")
    ] = False,
    time_limit: TimeLimitOption = None,
    resource: ResourceOption = None,
    dask: DaskOption = None,
    gather: GatherOption = False,
    shard: ShardOption = None,
) -> None:
    """Train every combination of the listed values; runs in the store are skipped, so rerun the command to resume.

    Progress is also written to the store's logs, where `composcope status` finds it from another terminal.
    """
    from composcope.store.store import Store
    from composcope.store.summary import check_writable, is_summary_of
    from composcope.store.sweep_ids import SweepMemory

    check_engine(dask, gather, resource)
    if out is not None and not dry_run:
        check_writable(out)
    part, target = shard_of(shard), Store(store)
    settings = [text for text in only or [] if "=" in text]
    memory = None if plugin or dry_run else SweepMemory(sweep, settings)
    ids = memory.read() if memory else None
    specs: dict[str, Spec] = {}
    chosen = None if ids is None else _choose(ids.run_ids, target, part, only, limit, retry_failed)
    if ids is None or chosen is None or chosen.todo:  # otherwise there is no need to know what the runs are
        ids, specs = _read_sweep(sweep, settings, plugin)
        chosen = _choose(ids.run_ids, target, part, only, limit, retry_failed)
        if memory:
            memory.write(ids)
    skipped = 0 if retry_failed else len(chosen.failed)
    print(f"{counted(len(chosen.run_ids), 'run')}: {chosen.done} done, {len(chosen.todo)} to do", end="")
    print(f", {skipped} failed before (--retry-failed)" if skipped else "", end="")
    print(f" in shard {part}" if shard else "")
    todo = [specs[run_id] for run_id in chosen.todo]
    if dry_run:
        print_costs(todo, ids.varied, kernels, workers)
        return
    folder = out or target.folder / "summaries"
    if todo:
        _warn_of_splits(todo)
        with engine_options(dask, gather, resource, time_limit, workers) as engine:
            run_with_progress(todo, target, workers, plugin or [], kernels, title=sweep.name, engine=engine)
    if not todo and is_summary_of(folder / f"{sweep.stem}.csv", len(chosen.run_ids)):
        print(f"summary: {folder / sweep.stem}.csv")
    else:
        print_summary(chosen.run_ids, target, ids.varied, folder, sweep.stem)
    if any(map(target.failed, chosen.run_ids if todo else chosen.failed)):
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Chosen:
    """The runs of a sweep that were asked for: how many are done, which failed before, and which are to be done now."""

    run_ids: list[str]
    done: int
    failed: list[str]
    todo: list[str]


def _choose(
    run_ids: Sequence[str],
    store: "Store",
    part: "Shard",
    only: Sequence[str] | None,
    limit: int | None,
    retry_failed: bool,
) -> _Chosen:
    prefixes = tuple(text for text in only or [] if "=" not in text)
    wanted = [run_id for run_id in run_ids if not prefixes or run_id.startswith(prefixes)]
    if only and not wanted:
        raise BadInput(f"--only {' '.join(only)}: no run of the sweep is like this")
    open_ = [run_id for run_id in wanted if not store.complete(run_id)]
    failed = [run_id for run_id in open_ if store.failed(run_id)]
    skipped = set() if retry_failed else set(failed)
    todo = [run_id for run_id in open_ if part.has(run_id) and run_id not in skipped]
    return _Chosen(wanted, len(wanted) - len(open_), failed, todo[:limit])


def _read_sweep(
    path: Path, settings: Sequence[str], plugin: Sequence[Path] | None
) -> "tuple[SweepIds, dict[str, Spec]]":
    """The ids of the runs that a file describes, and their specs."""
    from composcope.runs.sweep import Sweep
    from composcope.store.sweep_ids import SweepIds

    load_plugins(plugin)
    plan = Sweep.from_toml(path)
    specs = {spec.run_id: spec for spec in plan.specs(settings)}
    return SweepIds(list(specs), plan.varied), specs


@app.command(rich_help_panel=TRAIN, short_help="Show how far the sweeps of a store are, from another terminal.")
def status(store: StoreOption = DEFAULT_STORE) -> None:
    """Show what the sweeps on a store are doing, from any terminal that sees its folder."""
    from composcope.store.store import Store
    from composcope.terminal import print_table
    from composcope.workers.journal import read_statuses

    target = Store(store)
    ids = target.run_ids()
    done, failed = sum(map(target.has, ids)), sum(map(target.failed, ids))
    print(f"{store}: {counted(done, 'run')} done, {failed} failed")
    statuses = read_statuses(target)
    if not statuses:
        print("no sweep has run on this store")
        return
    print_table([status.row for status in statuses[-20:]])
    for entry in statuses[-20:]:
        if entry.last_failure and entry.state == "running":
            print(shown(f"last failure of {entry.title}: {entry.last_failure}"))


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
    from composcope.runs.costs import workload
    from composcope.terminal import progress_bar
    from composcope.workers.executor import Outcome, run_all

    if not specs:
        return
    store.prepare()
    total = workload(specs, store)
    with journal_of(store, title, len(specs), total) as journal, progress_bar(counted(len(specs), "run")) as advance:

        def tell(done: float, ended: Sequence[Outcome]) -> None:
            interrupt.check()
            advance(min(done, total), total)
            journal.update(done, ended)

        outcomes = run_all(specs, store, workers, plugins, kernels, tell, **engine)
    failures = [outcome for outcome in outcomes if outcome.failure]
    for outcome in failures:
        print(f"error: {shown(outcome.failure)}", file=sys.stderr)
    print(f"{counted(len(outcomes) - len(failures), 'run')} done, {len(failures)} failed; stored in {store.folder}")


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


def print_costs(
    specs: "Sequence[Spec]", varied: Sequence[str], kernels: Literal["auto", "torch"], workers: int | None
) -> None:
    """What the runs cost in CPU time, in all and for each value of the lists."""
    from composcope.store.store import flatten
    from composcope.terminal import duration, print_table

    costs = estimated_costs(specs, kernels)
    rows = []
    for name in [name for name in varied if name != "seed"]:
        parts: dict[str, list[float]] = {}
        for spec in specs:
            fields = flatten(spec.to_dict())
            own = {key: value for key, value in fields.items() if key == name or key.startswith(f"{name}.")}
            label = str(own[name]) if name in own else ", ".join(map(str, own.values()))
            parts.setdefault(label or "-", []).append(costs[spec.run_id])
        for label, seconds in list(parts.items())[:MOST_ROWS]:
            rows.append({"part": f"{name} = {label}", "runs": len(seconds), "CPU time": duration(sum(seconds))})
    total = sum(costs.values())
    print_table([*rows, {"part": "all", "runs": len(specs), "CPU time": duration(total)}])
    print(time_left(total, len(specs), workers))


def print_summary(run_ids: Sequence[str], store: "Store", varied: Sequence[str], folder: Path, name: str) -> None:
    """The results of a sweep, once all its runs have ended, whoever did them."""
    from composcope.store.summary import summary_rows, sweep_frame, write_summary
    from composcope.terminal import print_table

    left = sum(not store.has(run_id) and not store.failed(run_id) for run_id in run_ids)
    if left:
        print(f"{counted(left, 'run')} left; the summary is written when all have ended")
        return
    frame = sweep_frame(store, run_ids)
    rows = summary_rows(frame, varied)
    print_table(rows[:MOST_ROWS])
    if len(rows) > MOST_ROWS:
        print(f"... and {counted(len(rows) - MOST_ROWS, 'row', 'more')}")
    print(f"summary: {', '.join(map(str, write_summary(frame, folder, name)))}")


def estimated_costs(specs: "Sequence[Spec]", kernels: Literal["auto", "torch"] = "auto") -> dict[str, float]:
    """Each run's seconds on one core, by id; with a progress bar, since timing large networks takes a while."""
    from composcope.runs.costs import estimate_seconds
    from composcope.terminal import progress_bar

    with progress_bar("timing a few steps of each network") as advance:
        seconds = estimate_seconds(specs, kernels, on_progress=advance)
    return {spec.run_id: cost for spec, cost in zip(specs, seconds, strict=True)}


def time_left(seconds: float, runs: int, workers: int | None) -> str:
    """The estimate in words, from CPU seconds."""
    import os

    from composcope.terminal import duration

    crew = workers or os.cpu_count() or 1
    parallel = max(min(crew, runs), 1)
    return (
        f"about {duration(seconds / parallel)} with {counted(crew, 'worker')}, from timing a few steps of each network"
    )


def _warn_of_splits(specs: "Sequence[Spec]") -> None:
    from composcope.runs.spec import warn_unless_composition

    for spec in {(spec.task, spec.holdout, spec.sampling): spec for spec in specs}.values():
        warn_unless_composition(spec)
