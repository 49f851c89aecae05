"""Commands that look at decoders: diagnose, measure; and doctor, which looks at the machine."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from composcope.cli.app import DEFAULT_STORE, PluginOption, StoreOption, app, load_plugins
from composcope.errors import BadInput, ComposcopeError


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
    out: Annotated[
        Path | None, typer.Option(help="Folder for a page to look at, diagnosis.html, numbers.json and arrays.npz.")
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    plugin: PluginOption = None,
) -> None:
    """Say whether a decoder composes and why: one of the store's runs, or any PyTorch module from codes to images."""
    from composcope.diagnosis import diagnose as diagnose_module
    from composcope.diagnosis import save_diagnosis
    from composcope.experiments import examine
    from composcope.experiments.store import Store
    from composcope.report.diagnosis_page import write_diagnosis_page
    from composcope.report.samples import module_samples, run_samples
    from composcope.terminal import progress_bar

    load_plugins(plugin)
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
            shown = module_samples(module, task, holdout, encoding, place)
            title, settings = decoder, None
        elif spec or weights or pick:
            raise BadInput(f"{decoder}: --spec, --weights and --pick belong to a module, path/file.py:function")
        else:
            target = Store(store)
            run_id = target.find(decoder)
            found = examine.diagnose_run(target, run_id, on_progress=advance)
            shown = run_samples(target, run_id)
            title, settings = f"Run {run_id}", target.spec(run_id)
    print(found.summary())
    if out is not None:
        save_diagnosis(found, out)
        page = write_diagnosis_page(found, out / "diagnosis.html", title, settings, shown)
        print(f"kept in {out}; to look at: {page}")


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

    load_plugins(plugin)
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
