"""The command line: parse, delegate, print. Torch is imported only where work begins, so that --help is instant."""

import logging
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from composcope.errors import BadInput, ComposcopeError

if TYPE_CHECKING:
    import pandas as pd

    from composcope.experiments.spec import Spec

app = typer.Typer(
    help="Does this generative decoder compose? Train, withhold, measure, explain.\n\n"
    "Begin with: composcope run examples/bump_cnn.toml",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

StoreOption = Annotated[Path, typer.Option("--store", help="Folder that holds the results.")]
PluginOption = Annotated[
    list[Path] | None, typer.Option("--plugin", help="Python file with components of your own; may be repeated.")
]
WorkersOption = Annotated[int | None, typer.Option(min=1, help="Processes, one thread each; by default one a core.")]
KernelsOption = Annotated[
    Literal["auto", "torch"],
    typer.Option(help="auto: compiled convolutions where they are faster; torch: the library's."),
]
DEFAULT_STORE = Path("runs")
INTERRUPTED = 130


@app.command()
def run(
    spec: Annotated[Path, typer.Argument(help="TOML file that describes the run.")],
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Change a field: --set decoder.depth=6. An empty value takes it out."
        ),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    plugin: PluginOption = None,
    device: Annotated[str, typer.Option(help="Where to train: cpu, cuda, cuda:1, mps.")] = "cpu",
    threads: Annotated[int, typer.Option(min=1, max=1024, help="CPU threads; the same number, the same bytes.")] = 1,
    kernels: KernelsOption = "auto",
) -> None:
    """Train one run, or load it if the store has it, and print what was measured."""
    from composcope.experiments.run import run as run_spec
    from composcope.experiments.spec import Spec, read_toml
    from composcope.experiments.store import Store
    from composcope.experiments.sweep import total_steps, with_settings
    from composcope.kernels import keep_memory
    from composcope.terminal import progress_bar

    _load_plugins(plugin)
    value = Spec.from_dict(with_settings(read_toml(spec), set_ or []))
    target = Store(store)
    known = target.has(value.run_id)
    if known:
        result = run_spec(value, target)
    else:
        keep_memory()
        steps = total_steps(value)
        with progress_bar("training") as advance:
            result = run_spec(
                value, target, device, threads, kernels, on_step=lambda step, module: advance(step, steps)
            )
    print(f"run {result.run_id}: {'loaded from' if known else f'trained in {result.seconds:.1f} s, kept in'} {store}")
    _print_measures(result.measures)


@app.command()
def sweep(
    sweep: Annotated[Path, typer.Argument(help="TOML file with a table [base], a spec, and a table [vary] of lists.")],
    workers: WorkersOption = None,
    store: StoreOption = DEFAULT_STORE,
    plugin: PluginOption = None,
    kernels: KernelsOption = "auto",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say how many runs there are and how long they may take.")
    ] = False,
) -> None:
    """Train every combination of the listed values; what the store has is skipped, so the same command goes on."""
    from composcope.experiments.store import Store
    from composcope.experiments.sweep import Sweep

    _load_plugins(plugin)
    specs = Sweep.from_toml(sweep).specs()
    target = Store(store)
    todo = [spec for spec in specs if not target.has(spec.run_id)]
    print(f"{len(specs)} runs: {len(specs) - len(todo)} done, {len(todo)} to do")
    if dry_run:
        _print_estimate(todo, workers, kernels)
        return
    _warn_of_extrapolation(todo)
    _run_all(todo, store, workers, plugin or [], kernels)


@app.command(name="list")
def list_(store: StoreOption = DEFAULT_STORE) -> None:
    """List the runs of a store: what differs between them and what came out."""
    from composcope.experiments.store import Store
    from composcope.terminal import print_table

    frame = Store(store).frame(verify=True)
    if frame.empty:
        print(f"no runs in {store}")
        return
    print_table(_overview(frame).to_dict("records"))
    for row in frame[frame["problem"] != ""].itertuples():
        print(f"{row.status} {row.run_id}: {row.problem}")


@app.command()
def show(
    run_id: Annotated[str, typer.Argument(help="The run's id, or as many of its first digits as are needed.")],
    store: StoreOption = DEFAULT_STORE,
    plugin: PluginOption = None,
) -> None:
    """Show one run: its spec, its split's certificate, measures, curve and provenance."""
    from composcope.experiments.spec import Spec
    from composcope.experiments.store import Store
    from composcope.holdouts import split

    _load_plugins(plugin)
    target = Store(store)
    found = target.find(run_id)
    record = target.record(found, verify=True)
    print(f"run {found}: {record.status}" + (f", {record.problem}" if record.problem else ""))
    if record.status == "damaged":
        raise typer.Exit(1)
    spec = Spec.from_dict(record.spec)
    print(f"\n{spec.to_toml()}")
    print(f"split: {split(spec.task, spec.holdout).certificate}")
    if record.status == "failed":
        raise typer.Exit(1)
    _print_measures(record.measures)
    curve = target.curve(found)
    print(f"loss: {curve['loss'].iloc[0]:.3g} in epoch 1, {curve['loss'].iloc[-1]:.3g} in epoch {len(curve)}")
    print("\n".join(f"{name}: {value}" for name, value in record.provenance.items()))


@app.command()
def diagnose(
    decoder: Annotated[
        str, typer.Argument(help="A run's id, or path/file.py:function that makes a module of your own.")
    ],
    spec: Annotated[Path | None, typer.Option(help="For a module: TOML file with task, holdout and encoding.")] = None,
    weights: Annotated[Path | None, typer.Option(help="For a module: its weights, a safetensors file.")] = None,
    pick: Annotated[
        str | None, typer.Option(help="For a module that gives several things: the image's place or key.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for numbers.json and arrays.npz.")] = None,
    store: StoreOption = DEFAULT_STORE,
    plugin: PluginOption = None,
) -> None:
    """Say whether a decoder composes and why: one of the store's runs, or any PyTorch module from codes to images."""
    from composcope.diagnosis import diagnose as diagnose_module
    from composcope.diagnosis import save_diagnosis
    from composcope.experiments import examine
    from composcope.experiments.store import Store
    from composcope.terminal import progress_bar

    _load_plugins(plugin)
    with progress_bar("diagnosis") as advance:
        if ".py" in decoder:
            if ":" not in decoder:
                raise BadInput(f"{decoder}: name the function that makes the module, as in {decoder}:make_decoder")
            if spec is None:
                raise BadInput(f"{decoder}: --spec is needed, a TOML file with [task], [holdout] and [encoding]")
            task, holdout, encoding = examine.world(spec)
            module = examine.load_decoder(decoder, weights)
            place = int(pick) if pick is not None and pick.lstrip("-").isdecimal() else pick
            found = diagnose_module(module, task, holdout, encoding, pick=place, on_progress=advance)
        elif spec or weights or pick:
            raise BadInput(f"{decoder}: --spec, --weights and --pick belong to a module, path/file.py:function")
        else:
            target = Store(store)
            found = examine.diagnose_run(target, target.find(decoder), on_progress=advance)
    print(found.summary())
    if out is not None:
        save_diagnosis(found, out)
        print(f"kept in {out}")


@app.command()
def measure(
    run_ids: Annotated[
        list[str] | None, typer.Argument(help="Runs to diagnose, by id; all that are done by default.")
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    plugin: PluginOption = None,
) -> None:
    """Diagnose stored runs and keep the numbers beside them, without training again."""
    from composcope.experiments.examine import measure_run
    from composcope.experiments.store import Store
    from composcope.terminal import progress_bar

    _load_plugins(plugin)
    target = Store(store)
    wanted = [target.find(prefix) for prefix in run_ids or []] or [one for one in target.run_ids() if target.has(one)]
    if not wanted:
        print(f"no runs in {store}")
    failed = False
    for run_id in wanted:
        try:
            with progress_bar(f"run {run_id}") as advance:
                verdict = measure_run(target, run_id, on_progress=advance).verdict
        except ComposcopeError as error:
            failed = True
            print(f"error: {error}", file=sys.stderr)
            continue
        print(f"run {run_id}: " + (f"{verdict.kind}, score {verdict.score:.2f}" if verdict else "nothing is held out"))
    if failed:
        raise typer.Exit(1)


@app.command()
def doctor(store: StoreOption = DEFAULT_STORE) -> None:
    """Say what is installed, what this machine offers and whether results can be kept."""
    from composcope.experiments.doctor import findings

    for name, finding in findings(store).items():
        print(f"{name}: {finding}")


@app.command()
def reproduce(
    figures: Annotated[
        list[str] | None, typer.Argument(help="failure, cures or cures28; the first two by default.")
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("out"),
    workers: WorkersOption = None,
) -> None:
    """Reproduce the paper: train what the pictures need, draw them and print the numbers behind them."""
    from composcope.components import nearest
    from composcope.experiments.store import Store
    from composcope.figures.style import save
    from composcope.reproduce import DEFAULT, catalogue
    from composcope.terminal import print_table

    entries = catalogue()
    names = figures or DEFAULT
    for name in names:
        if name not in entries:
            raise BadInput(f"no picture is named {name!r}{nearest(name, entries)}; there are: {', '.join(entries)}")
    target = Store(store)
    runs = {spec.run_id: spec for name in names for spec in entries[name].specs()}
    todo = [spec for spec in runs.values() if not target.has(spec.run_id)]
    print(f"{', '.join(names)}: {len(runs)} runs, {len(todo)} to do")
    _run_all(todo, store, workers)
    for name in names:
        picture, rows = entries[name].make(target)
        print(f"\n{entries[name].title}")
        print_table(rows)
        print(f"pictures: {', '.join(str(path) for path in save(picture, out / name))}")
    print(f"results: {store} (composcope list --store {store})")


def _version(wanted: bool) -> None:
    if wanted:
        from composcope import __version__

        print(f"composcope {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line: exit code 0 for good, 1 when a run failed, 2 for wrong use, 130 when interrupted."""
    warnings.showwarning = _show_warning
    logging.basicConfig(stream=sys.stderr, format="%(message)s")
    logging.getLogger("composcope.kernels").setLevel(logging.INFO)
    try:
        app(args=list(sys.argv[1:] if arguments is None else arguments), standalone_mode=True)
    except ComposcopeError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, BadInput) else 1)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            print("interrupted; finished runs are kept, and the same command goes on from there", file=sys.stderr)
        raise


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    print(f"warning: {message}", file=sys.stderr)


def _load_plugins(paths: Sequence[Path] | None) -> None:
    from composcope.experiments.plugins import load_installed_plugins, load_plugin

    load_installed_plugins()
    for path in paths or []:
        load_plugin(path)


def _run_all(
    specs: "Sequence[Spec]",
    store: Path,
    workers: int | None,
    plugins: Sequence[Path] = (),
    kernels: Literal["auto", "torch"] = "auto",
) -> None:
    """Do the runs with a progress bar; exit with 1 if some failed, after all were tried."""
    from composcope.experiments.executor import run_all
    from composcope.experiments.store import Store
    from composcope.experiments.sweep import total_steps
    from composcope.terminal import progress_bar

    steps = sum(map(total_steps, specs))
    with progress_bar(f"{len(specs)} runs") as advance:
        outcomes = run_all(
            specs, Store(store), workers, plugins, kernels, on_progress=lambda done, _: advance(done, steps)
        )
    failures = [outcome for outcome in outcomes if outcome.failure]
    for outcome in failures:
        print(f"error: {outcome.failure}", file=sys.stderr)
    if specs:
        print(f"{len(outcomes) - len(failures)} runs done, {len(failures)} failed; kept in {store}")
    if failures:
        raise typer.Exit(1)


def _print_estimate(specs: "Sequence[Spec]", workers: int | None, kernels: Literal["auto", "torch"]) -> None:
    import os

    from composcope.experiments.sweep import estimate_seconds

    crew = workers or os.cpu_count() or 1
    seconds = estimate_seconds(specs, kernels) / max(min(crew, len(specs)), 1)
    print(
        f"about {seconds:.0f} s with {crew} workers ({seconds / 3600:.1f} h), from timing a few steps of each network"
    )


def _overview(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The columns worth a line in a terminal: what differs between the runs, and the main measures."""
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
        found = ", ".join(parts) if len(parts) <= 12 else f"{len(parts)} numbers, in Store.frame()"
        print(f"measured {name}: {found}")
