"""Commands about runs: train one, list them, show one, compare several."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from composcope.cli.app import LOOK, TRAIN, app, print_json
from composcope.cli.options import (
    DEFAULT_STORE,
    JsonOption,
    KernelsOption,
    PluginOption,
    StoreOption,
    complete_run_ids,
    load_plugins,
)
from composcope.errors import BadInput

if TYPE_CHECKING:
    from composcope.store.store import Store

# How the names of what was measured begin, unlike those of settings.
MEASURES = ("error.", "diagnosis.", "forecast.")


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
    from composcope.fastconv import keep_memory
    from composcope.runs.pipeline import run as run_spec
    from composcope.runs.spec import Spec, read_toml
    from composcope.runs.sweep import with_settings
    from composcope.store.store import Store
    from composcope.terminal import progress_bar

    load_plugins(plugin)
    value = Spec.from_dict(with_settings(read_toml(spec), set_ or []))
    target = Store(store)
    stored = target.has(value.run_id)
    if stored:
        result = run_spec(value, target)
    else:
        keep_memory()
        with progress_bar("training") as advance:
            result = run_spec(
                value, target, device, threads, kernels, on_step=lambda step, module: advance(step, value.total_steps)
            )
    source = "loaded from" if stored else f"trained in {result.seconds:.1f} s, stored in"
    print(f"run {result.run_id}: {source} {store}")
    _print_measures(result.measures)


@app.command(name="list", rich_help_panel=LOOK, short_help="List a store's runs and their main results.")
def list_(store: StoreOption = DEFAULT_STORE, as_json: JsonOption = False) -> None:
    """List the runs of a store: the settings in which they differ, and the main results."""
    from composcope.store.index import without_collections
    from composcope.store.store import Store
    from composcope.terminal import print_table, progress_bar, shown

    with progress_bar("reading runs") as advance:
        rows = Store(store).rows(verify=True, on_progress=advance)
    if as_json:
        print_json(rows)
        return
    if not rows:
        print(f"no runs in {store}")
        return
    with without_collections():
        print_table(_overview(rows))
    for row in rows:
        if row["problem"]:
            print(f"{row['status']} {row['run_id']}: {shown(row['problem'])}")


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
    import tomli_w

    from composcope.store.store import Store
    from composcope.terminal import shown

    load_plugins(plugin)
    target = Store(store)
    full_id = target.find(run_id)
    record = target.record(full_id, verify=True)
    if as_json:
        print_json(record)
        if record.status != "done":
            raise typer.Exit(1)
        return
    print(f"run {full_id}: {record.status}" + (f", {shown(record.problem)}" if record.problem else ""))
    if record.status == "damaged":
        raise typer.Exit(1)
    print(f"\n{shown(tomli_w.dumps(dict(record.spec)))}")
    print(f"split: {shown(record.provenance.get('split', 'not known'))}")
    if record.status == "failed":
        raise typer.Exit(1)
    _print_images(target, full_id)
    _print_measures(record.measures)
    losses = target.run_folder(full_id).losses()
    print(f"loss: {losses[0]:.3g} in epoch 1, {losses[-1]:.3g} in epoch {len(losses)}")
    print("\n".join(shown(f"{name}: {value}") for name, value in record.provenance.items() if name != "split"))


@app.command(rich_help_panel=LOOK, short_help="Print what differs between runs, in spec and in results.")
def compare(
    run_ids: Annotated[
        list[str], typer.Argument(help="Two or more runs, by id or first digits.", autocompletion=complete_run_ids)
    ],
    store: StoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
) -> None:
    """Print what differs between runs: the fields of their specs, their errors, and their verdicts if measured."""
    from composcope.store.records import compare_records
    from composcope.store.store import Store
    from composcope.terminal import print_table

    if len(run_ids) < 2:
        raise BadInput(
            f"compare needs at least two runs, not {len(run_ids)}; composcope list --store {store} lists them"
        )
    target = Store(store)
    comparison = compare_records([target.record(target.find(prefix), verify=True) for prefix in run_ids])
    if as_json:
        print_json(comparison)
        return
    for title, rows in (("spec", comparison.settings), ("results", comparison.results)):
        print(f"{title}:" if rows else f"{title}: no difference")
        if rows:
            print_table([{"": name, **values} for name, values in rows.items()])
        print()


def _print_images(store: "Store", run_id: str) -> None:
    """Held-out images, the true ones above those that the run draws, if the terminal can show them."""
    from composcope.terminal import can_draw, print_images

    if not can_draw():
        return
    run = store[run_id]
    if not run.draws or not run.split.mask.any():
        return
    rows = run.sample_rows(4)
    print("held-out images: true above, drawn below")
    print_images([run.truth[rows].numpy(), run.draw()[rows].numpy()])


def _overview(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The columns that a terminal has room for: the settings that differ between the runs, and the main measures."""
    names = dict.fromkeys(name for row in dict.fromkeys(map(tuple, rows)) for name in row)
    settings = [name for name in names if "." in name and not name.startswith(MEASURES)]
    varied = [name for name in settings if len({row.get(name) for row in rows}) > 1]
    selected = dict.fromkeys(["encoding.kind", "decoder.kind", *varied[:8], "seed"])
    verdict = [name for name in ("diagnosis.verdict.kind", "diagnosis.verdict.score", "forecast.kind") if name in names]
    times = ["seconds", *(["cpu_seconds"] if any(row.get("cpu_seconds") is not None for row in rows) else [])]
    columns = ["run_id", "status", *selected, "error.seen_mse", "error.heldout_mse", "error.accuracy", *verdict, *times]
    short = {name: name.removeprefix("error.").removeprefix("diagnosis.") for name in columns}
    return [{short[name]: row.get(name) for name in columns} for row in rows]


def _print_measures(measures: Mapping[str, Mapping[str, Any]]) -> None:
    from composcope.store.records import flatten
    from composcope.terminal import shown

    for name, values in measures.items():
        flat = flatten(values)
        parts = [f"{key} {value:.4g}" for key, value in flat.items() if isinstance(value, int | float)]
        listed = ", ".join(parts) if len(parts) <= 12 else f"{len(parts)} numbers, in Store.frame()"
        print(shown(f"measured {name}: {listed}"))
