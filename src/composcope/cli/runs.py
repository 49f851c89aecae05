"""Commands that train runs and list them: run, sweep, list, show."""

import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from composcope.cli.app import (
    DEFAULT_STORE,
    JsonOption,
    KernelsOption,
    PluginOption,
    StoreOption,
    WorkersOption,
    app,
    complete_run_ids,
    load_plugins,
    print_json,
)
from composcope.cli.groups import LOOK, TRAIN

if TYPE_CHECKING:
    import pandas as pd

    from composcope.experiments.spec import Spec
    from composcope.experiments.store import Store


@app.command(rich_help_panel=TRAIN, short_help="Train one run, or load it if the store has it.")
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


@app.command(rich_help_panel=TRAIN, short_help="Train every combination of listed values; can be resumed.")
def sweep(
    sweep: Annotated[Path, typer.Argument(help="TOML file with a table base, a spec, and a table vary of lists.")],
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
    todo = [spec for spec in specs if not target.has(spec.run_id)]
    print(f"{len(specs)} runs: {len(specs) - len(todo)} done, {len(todo)} to do")
    if dry_run:
        print(time_left(sum(estimated_costs(todo, kernels).values()), len(todo), workers))
        return
    _warn_of_extrapolation(todo)
    if run_with_progress(todo, target, workers, plugin or [], kernels):
        raise typer.Exit(1)


@app.command(name="list", rich_help_panel=LOOK, short_help="List a store's runs and their main results.")
def list_(store: StoreOption = DEFAULT_STORE, as_json: JsonOption = False) -> None:
    """List the runs of a store: the settings in which they differ, and the main results."""
    from composcope.experiments.store import Store
    from composcope.terminal import print_table

    frame = Store(store).frame(verify=True)
    if as_json:
        print_json(frame.to_dict("records"))
        return
    if frame.empty:
        print(f"no runs in {store}")
        return
    print_table(_overview(frame).to_dict("records"))
    for row in frame[frame["problem"] != ""].itertuples():
        print(f"{row.status} {row.run_id}: {row.problem}")


@app.command(rich_help_panel=LOOK, short_help="Show one run: spec, split, images, measures, provenance.")
def show(
    run_id: Annotated[str, typer.Argument(help="The run's id, or its first digits.", autocompletion=complete_run_ids)],
    store: StoreOption = DEFAULT_STORE,
    plugin: PluginOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one run: its spec, its split's certificate, held-out images, measures, curve and provenance.

    The images are drawn where the terminal has colours.
    """
    from composcope.experiments.spec import Spec
    from composcope.experiments.store import Store
    from composcope.holdouts import split

    load_plugins(plugin)
    target = Store(store)
    full_id = target.find(run_id)
    record = target.record(full_id, verify=True)
    if as_json:
        print_json(record)
        if record.status != "done":
            raise typer.Exit(1)
        return
    print(f"run {full_id}: {record.status}" + (f", {record.problem}" if record.problem else ""))
    if record.status == "damaged":
        raise typer.Exit(1)
    spec = Spec.from_dict(record.spec)
    print(f"\n{spec.to_toml()}")
    print(f"split: {split(spec.task, spec.holdout).certificate}")
    if record.status == "failed":
        raise typer.Exit(1)
    _print_images(target, full_id)
    _print_measures(record.measures)
    curve = target.curve(full_id)
    print(f"loss: {curve['loss'].iloc[0]:.3g} in epoch 1, {curve['loss'].iloc[-1]:.3g} in epoch {len(curve)}")
    print("\n".join(f"{name}: {value}" for name, value in record.provenance.items()))


def _print_images(store: "Store", run_id: str) -> None:
    """Held-out images, the true ones above those that the run draws, if the terminal can show them."""
    from composcope.experiments.display import shown_rows
    from composcope.experiments.run import load
    from composcope.terminal import can_draw, print_images

    if not can_draw():
        return
    run = load(store, run_id)
    if not run.draws or not run.split.mask.any():
        return
    rows = shown_rows(run, 4)
    print("held-out images: true above, drawn below")
    print_images([images[rows].flip(-2).numpy() for images in (run.truth, run.draw())])  # row 0 is at the bottom


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
    from composcope.terminal import progress_bar

    total = workload(specs, store, diagnosed, costs)
    with progress_bar(f"{len(specs)} runs") as advance:
        outcomes = run_all(
            specs, store, workers, plugins, kernels, lambda done, _: advance(min(done, total), total), diagnosed, costs
        )
    failures = [outcome for outcome in outcomes if outcome.failure]
    for outcome in failures:
        print(f"error: {outcome.failure}", file=sys.stderr)
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


def _overview(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The columns that a terminal has room for: the settings that differ between the runs, and the main measures."""
    settings = [name for name in frame.columns if not name.startswith(("error.", "diagnosis."))]
    varied = [name for name in settings if "." in name and frame[name].nunique(dropna=False) > 1]
    shown = dict.fromkeys(["encoding.kind", "decoder.kind", *varied[:8], "seed"])
    verdict = [name for name in ("diagnosis.verdict.kind", "diagnosis.verdict.score") if name in frame]
    columns = ["run_id", "status", *shown, "error.seen_mse", "error.heldout_mse", "error.accuracy", *verdict, "seconds"]
    short = frame.reindex(columns=columns)
    return short.rename(columns=lambda name: name.removeprefix("error.").removeprefix("diagnosis."))


def _warn_of_extrapolation(specs: "Sequence[Spec]") -> None:
    from composcope.experiments.spec import warn_unless_composition

    for spec in {(spec.task, spec.holdout): spec for spec in specs}.values():
        warn_unless_composition(spec)


def _print_measures(measures: Mapping[str, Mapping[str, Any]]) -> None:
    from composcope.experiments.store import flatten

    for name, values in measures.items():
        flat = flatten(values)
        parts = [f"{key} {value:.4g}" for key, value in flat.items() if isinstance(value, int | float)]
        listed = ", ".join(parts) if len(parts) <= 12 else f"{len(parts)} numbers, in Store.frame()"
        print(f"measured {name}: {listed}")
