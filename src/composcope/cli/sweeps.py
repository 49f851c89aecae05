"""Commands for many runs: sweep, and status from another terminal."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from composcope.cli.app import TRAIN, app
from composcope.cli.options import (
    DEFAULT_STORE,
    DaskOption,
    GatherOption,
    KernelsOption,
    PluginOption,
    ResourceOption,
    ShardOption,
    StoreOption,
    TimeLimitOption,
    WorkersOption,
    check_engine,
    engine_options,
    load_plugins,
    shard_of,
)
from composcope.cli.progress import TIMING, run_with_progress, time_left
from composcope.display import counted
from composcope.terminal import shown

if TYPE_CHECKING:
    from composcope.runs.spec import Spec
    from composcope.store.store import Store
    from composcope.workers.sweeps import SweepIds

MAX_STATUSES = 20  # the latest sweeps


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
    from composcope.workers.sweeps import SweepMemory, check_writable, is_summary_of, select_runs

    check_engine(dask, gather, resource)
    if out is not None and not dry_run:
        check_writable(out)
    part, target, filters = shard_of(shard), Store(store), only or []
    settings = [text for text in filters if "=" in text]
    memory = None if plugin or dry_run else SweepMemory(sweep, settings)
    ids = memory.read() if memory else None
    specs: dict[str, Spec] = {}
    selection = None if ids is None else select_runs(ids.run_ids, target, part, filters, limit, retry_failed)
    if ids is None or selection is None or selection.todo:  # otherwise there is no need to know what the runs are
        ids, specs = _read_sweep(sweep, settings, plugin)
        selection = select_runs(ids.run_ids, target, part, filters, limit, retry_failed)
        if memory:
            memory.write(ids)
    skipped = 0 if retry_failed else len(selection.failed)
    print(f"{counted(len(selection.run_ids), 'run')}: {selection.done} done, {len(selection.todo)} to do", end="")
    print(f", {skipped} failed before (--retry-failed)" if skipped else "", end="")
    print(f" in shard {part}" if shard else "")
    todo = [specs[run_id] for run_id in selection.todo]
    if dry_run:
        _print_costs(todo, ids.varied, kernels, workers)
        return
    folder = out or target.folder / "summaries"
    if todo:
        from composcope.runs.spec import warn_of_splits

        warn_of_splits(todo)
        with engine_options(dask, gather, resource, time_limit, workers) as engine:
            run_with_progress(todo, target, workers, plugin or [], kernels, title=sweep.name, engine=engine)
    if not todo and is_summary_of(folder / f"{sweep.stem}.csv", len(selection.run_ids)):
        print(f"summary: {folder / sweep.stem}.csv")
    else:
        _print_summary(selection.run_ids, target, ids.varied, folder, sweep.stem)
    if any(map(target.failed, selection.run_ids if todo else selection.failed)):
        raise typer.Exit(1)


def _read_sweep(
    path: Path, settings: Sequence[str], plugin: Sequence[Path] | None
) -> "tuple[SweepIds, dict[str, Spec]]":
    """The ids of the runs that a file describes, and their specs."""
    from composcope.runs.sweep import Sweep
    from composcope.workers.sweeps import SweepIds

    load_plugins(plugin)
    plan = Sweep.from_toml(path)
    specs = {spec.run_id: spec for spec in plan.specs(settings)}
    return SweepIds(list(specs), plan.varied), specs


def _print_costs(
    specs: "Sequence[Spec]", varied: Sequence[str], kernels: Literal["auto", "torch"], workers: int | None
) -> None:
    from composcope.terminal import print_table, progress_bar
    from composcope.workers.costs import estimated_costs
    from composcope.workers.sweeps import cost_rows

    with progress_bar(TIMING) as advance:
        costs = estimated_costs(specs, kernels, on_progress=advance)
    print_table(cost_rows(specs, varied, costs))
    print(time_left(sum(costs.values()), len(specs), workers))


def _print_summary(run_ids: Sequence[str], store: "Store", varied: Sequence[str], folder: Path, name: str) -> None:
    """The results of a sweep, once all its runs have ended, whoever did them."""
    from composcope.terminal import print_table
    from composcope.workers.sweeps import MAX_ROWS, summary_rows, sweep_frame, write_summary

    left = sum(not store.has(run_id) and not store.failed(run_id) for run_id in run_ids)
    if left:
        print(f"{counted(left, 'run')} left; the summary is written when all have ended")
        return
    frame = sweep_frame(store, run_ids)
    rows = summary_rows(frame, varied)
    print_table(rows[:MAX_ROWS])
    if len(rows) > MAX_ROWS:
        print(f"... and {counted(len(rows) - MAX_ROWS, 'row', 'more')}")
    print(f"summary: {', '.join(map(str, write_summary(frame, folder, name)))}")


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
    print_table([status.row for status in statuses[-MAX_STATUSES:]])
    for entry in statuses[-MAX_STATUSES:]:
        if entry.last_failure and entry.state == "running":
            print(shown(f"last failure of {entry.title}: {entry.last_failure}"))
