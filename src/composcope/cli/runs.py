"""Commands that train runs and list them: run, sweep, list, show."""

import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from composcope.cli.app import DEFAULT_STORE, KernelsOption, PluginOption, StoreOption, WorkersOption, app, load_plugins

if TYPE_CHECKING:
    from composcope.experiments.spec import Spec
    from composcope.experiments.store import Store


@app.command()
def run(
    spec: Annotated[Path, typer.Argument(help="TOML file that describes the run.")],
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Change a field: --set decoder.depth=6. An empty value removes it."
        ),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    plugin: PluginOption = None,
    device: Annotated[str, typer.Option(help="Where to train: cpu, cuda, cuda:1, mps.")] = "cpu",
    threads: Annotated[int, typer.Option(min=1, max=1024, help="CPU threads; equal numbers give equal bytes.")] = 1,
    kernels: KernelsOption = "auto",
) -> None:
    """Train one run, or load it if the store has it, and print what was measured."""
    from composcope.experiments.run import run as run_spec
    from composcope.experiments.spec import Spec, read_toml
    from composcope.experiments.store import Store
    from composcope.experiments.sweep import total_steps, with_settings
    from composcope.fastconv import keep_memory
    from composcope.terminal import progress_bar

    load_plugins(plugin)
    value = Spec.from_dict(with_settings(read_toml(spec), set_ or []))
    target = Store(store)
    stored = target.has(value.run_id)
    if stored:
        result = run_spec(value, target)
    else:
        keep_memory()
        steps = total_steps(value)
        with progress_bar("training") as advance:
            result = run_spec(
                value, target, device, threads, kernels, on_step=lambda step, module: advance(step, steps)
            )
    source = "loaded from" if stored else f"trained in {result.seconds:.1f} s, stored in"
    print(f"run {result.run_id}: {source} {store}")
    _print_measures(result.measures)


@app.command()
def sweep(
    sweep: Annotated[Path, typer.Argument(help="TOML file with a table [base], a spec, and a table [vary] of lists.")],
    workers: WorkersOption = None,
    store: StoreOption = DEFAULT_STORE,
    plugin: PluginOption = None,
    kernels: KernelsOption = "auto",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print how many runs there are and how long they may take.")
    ] = False,
) -> None:
    """Train every combination of the listed values; runs in the store are skipped, so rerun the command to resume."""
    from composcope.experiments.store import Store
    from composcope.experiments.sweep import Sweep

    load_plugins(plugin)
    specs = Sweep.from_toml(sweep).specs()
    target = Store(store)
    todo = [spec for spec in specs if not target.complete(spec.run_id)]
    print(f"{len(specs)} runs: {len(specs) - len(todo)} done, {len(todo)} to do")
    if dry_run:
        print(time_left(sum(estimated_costs(todo, kernels).values()), len(todo), workers))
        return
    _warn_of_extrapolation(todo)
    if run_with_progress(todo, target, workers, plugin or [], kernels):
        raise typer.Exit(1)


@app.command(name="list")
def list_(store: StoreOption = DEFAULT_STORE) -> None:
    """List the runs of a store: the settings in which they differ, and the main results."""
    from composcope.experiments.index import without_collections
    from composcope.experiments.store import Store
    from composcope.terminal import print_table, progress_bar, shown

    with progress_bar("reading runs") as advance:
        records = Store(store).records(verify=True, on_progress=advance)
    if not records:
        print(f"no runs in {store}")
        return
    with without_collections():
        print_table(_overview([record.row() for record in records]))
    for record in records:
        if record.problem:
            print(f"{record.status} {record.run_id}: {shown(record.problem)}")


@app.command()
def show(
    run_id: Annotated[str, typer.Argument(help="The run's id, or its first digits.")],
    store: StoreOption = DEFAULT_STORE,
    plugin: PluginOption = None,
) -> None:
    """Show one run: its spec, its split's certificate, measures, curve and provenance."""
    import tomli_w

    from composcope.experiments.store import Store
    from composcope.terminal import shown

    load_plugins(plugin)
    target = Store(store)
    full_id = target.find(run_id)
    record, certificate = target.certified(full_id)
    print(f"run {full_id}: {record.status}" + (f", {shown(record.problem)}" if record.problem else ""))
    if record.status == "damaged":
        raise typer.Exit(1)
    print(f"\n{shown(tomli_w.dumps(dict(record.spec)))}")
    print(f"split: {shown(certificate) or 'not known; is a --plugin missing?'}")
    if record.status == "failed":
        raise typer.Exit(1)
    _print_measures(record.measures)
    losses = target.losses(full_id)
    print(f"loss: {losses[0]:.3g} in epoch 1, {losses[-1]:.3g} in epoch {len(losses)}")
    print("\n".join(shown(f"{name}: {value}") for name, value in record.provenance.items() if name != "split"))


def run_with_progress(
    specs: "Sequence[Spec]",
    store: "Store",
    workers: int | None,
    plugins: Sequence[Path] = (),
    kernels: Literal["auto", "torch"] = "auto",
    diagnosed: Collection[str] = (),
    costs: Mapping[str, float] | None = None,
) -> list[str]:
    """Do the runs with a progress bar; returns the ids of those that failed, after all were tried."""
    from composcope.experiments.executor import run_all, workload
    from composcope.terminal import progress_bar, shown

    total = workload(specs, store, diagnosed, costs)
    with progress_bar(f"{len(specs)} runs") as advance:
        outcomes = run_all(
            specs, store, workers, plugins, kernels, lambda done, _: advance(min(done, total), total), diagnosed, costs
        )
    failures = [outcome for outcome in outcomes if outcome.failure]
    for outcome in failures:
        print(f"error: {shown(outcome.failure)}", file=sys.stderr)
    if specs:
        print(f"{len(outcomes) - len(failures)} runs done, {len(failures)} failed; stored in {store.folder}")
    return [outcome.run_id for outcome in failures]


def estimated_costs(specs: "Sequence[Spec]", kernels: Literal["auto", "torch"] = "auto") -> dict[str, float]:
    """Each run's seconds on one core, by id; with a progress bar, since timing large networks takes a while."""
    from composcope.experiments.sweep import estimate_seconds
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
    return f"about {duration(seconds / parallel)} with {crew} workers, from timing a few steps of each network"


def _overview(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The columns that a terminal has room for: the settings that differ between the runs, and the main measures."""
    names = dict.fromkeys(name for row in dict.fromkeys(map(tuple, rows)) for name in row)
    settings = [name for name in names if "." in name and not name.startswith(("error.", "diagnosis."))]
    varied = [name for name in settings if len({row.get(name) for row in rows}) > 1]
    shown = dict.fromkeys(["encoding.kind", "decoder.kind", *varied[:8], "seed"])
    verdict = [name for name in ("diagnosis.verdict.kind", "diagnosis.verdict.score") if name in names]
    columns = ["run_id", "status", *shown, "error.seen_mse", "error.heldout_mse", "error.accuracy", *verdict, "seconds"]
    short = {name: name.removeprefix("error.").removeprefix("diagnosis.") for name in columns}
    return [{short[name]: row.get(name) for name in columns} for row in rows]


def _warn_of_extrapolation(specs: "Sequence[Spec]") -> None:
    from composcope.experiments.spec import warn_unless_composition

    for spec in {(spec.task, spec.holdout): spec for spec in specs}.values():
        warn_unless_composition(spec)


def _print_measures(measures: Mapping[str, Mapping[str, Any]]) -> None:
    from composcope.experiments.records import flatten
    from composcope.terminal import shown

    for name, values in measures.items():
        flat = flatten(values)
        parts = [f"{key} {value:.4g}" for key, value in flat.items() if isinstance(value, int | float)]
        listed = ", ".join(parts) if len(parts) <= 12 else f"{len(parts)} numbers, in Store.frame()"
        print(shown(f"measured {name}: {listed}"))
