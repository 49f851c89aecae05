"""Commands that say what a decoder does, and why: diagnose, measure, and forecast before it is trained."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from composcope.cli.app import DIAGNOSE, app, print_json
from composcope.cli.options import DEFAULT_STORE, JsonOption, PluginOption, StoreOption, complete_run_ids, load_plugins
from composcope.errors import BadInput, ComposcopeError
from composcope.terminal import shown

if TYPE_CHECKING:
    from composcope.forecasts import Forecast

MAX_WRITTEN = 10_000  # images


@app.command(rich_help_panel=DIAGNOSE, short_help="Report whether a decoder composes, and why: a run, or your own.")
def diagnose(
    decoder: Annotated[
        str,
        typer.Argument(
            help="A run's id, or path/file.py:function that returns your own module; that file's code is run.",
            autocompletion=complete_run_ids,
        ),
    ],
    spec: Annotated[Path | None, typer.Option(help="For a module: TOML file with task, holdout and encoding.")] = None,
    weights: Annotated[
        Path | None, typer.Option(help="For a module: its weights, a safetensors file or a state dict in a .pt file.")
    ] = None,
    pick: Annotated[
        str | None, typer.Option(help="For a module with several outputs: the image's index or key.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for diagnosis.html, a page to look at, numbers.json and arrays.npz.")
    ] = None,
    only: Annotated[
        Literal["verdict"] | None, typer.Option(help="verdict: compute only the verdict and the errors (fast).")
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Images per combination, for a module that is random.")] = 1,
    inputs: Annotated[
        Literal["code", "factors", "keywords", "dict", "slots"],
        typer.Option(help="What a module takes: one code, an argument per factor, a dict, or slots."),
    ] = "code",
    layers: Annotated[
        list[str] | None, typer.Option("--layers", help="A layer to measure, by name; may be repeated. All by default.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="Where to run it: cpu, cuda, cuda:1, mps.")] = None,
    geometry: Annotated[
        Literal["exact", "differences", "both"] | None, typer.Option(help="How derivatives are taken.")
    ] = None,
    memory: Annotated[float, typer.Option(min=1, help="Megabytes for images and activations.")] = 600,
    points: Annotated[int, typer.Option(min=3, help="Points that are compared in pairs, at most.")] = 1024,
    examples: Annotated[
        Path | None, typer.Option(help="For a generator without one true image: a folder of real images.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="CSV file with a column file and one per factor; by default labels.csv in it.")
    ] = None,
    holdout: Annotated[
        list[str] | None,
        typer.Option(help='What was not trained on, as "digit=1,4 tint=red"; may be repeated. Or file.py:function.'),
    ] = None,
    reader: Annotated[
        str | None, typer.Option(help="path/file.py:function that returns your classifier of the factors.")
    ] = None,
    n_samples: Annotated[int, typer.Option(min=1, help="Images per combination that are drawn and read.")] = 32,
    store: StoreOption = DEFAULT_STORE,
    plugin: PluginOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report whether a decoder composes, and why: a run of the store, or any PyTorch module from codes to images."""
    from composcope.diagnosis import diagnose as diagnose_module
    from composcope.diagnosis import save_diagnosis
    from composcope.fastconv import keep_memory
    from composcope.forecasts import forecast
    from composcope.forecasts.forecast import stored_forecast
    from composcope.pages.diagnosis_page import write_diagnosis_page
    from composcope.runs.own_decoder import load_decoder, read_task
    from composcope.store.store import Store
    from composcope.terminal import progress_bar

    load_plugins(plugin)
    keep_memory()  # freed memory stays in the process, which saves up to a third of the time
    options: dict[str, Any] = {"layers": layers or None, "device": device, "memory_mb": memory, "most_points": points}
    if geometry is not None:
        options["geometry"] = geometry
    with progress_bar("diagnosis") as advance:
        if examples is not None:
            from composcope.cli.generators import diagnose_with_examples

            chosen = {"inputs": inputs, "pick": _entry(pick), "device": device}
            if spec or weights:
                raise BadInput(
                    "--spec and --weights describe a decoder with true images; with --examples leave them out"
                )
            diagnosis = diagnose_with_examples(
                decoder, examples, labels, holdout or [], reader, n_samples, chosen, advance
            )
            title, settings, expected = decoder, None, None
        elif labels or holdout or reader:
            raise BadInput("--labels, --holdout and --reader belong to --examples, a folder of real images")
        elif ".py" in decoder:
            if ":" not in decoder:
                raise BadInput(f"{decoder}: name the function that returns the module, as in {decoder}:make_decoder")
            if spec is None:
                raise BadInput(f"{decoder}: --spec is needed, a TOML file with [task], [holdout] and [encoding]")
            task, region, encoding = read_task(spec)
            module = load_decoder(decoder, weights)
            diagnosis = diagnose_module(
                module,
                task,
                region,
                encoding,
                inputs=inputs,
                pick=_entry(pick),
                on_progress=advance,
                draws=draws,
                only=only,
                **options,
            )
            title, settings, expected = decoder, None, None
        elif spec or weights or pick or inputs != "code":
            raise BadInput(
                f"{decoder}: --spec, --weights, --pick and --inputs belong to a module, path/file.py:function"
            )
        else:
            target = Store(store)
            run = target[target.find(decoder)]
            diagnosis = run.diagnose(on_progress=advance, draws=draws, only=only, **options)
            title, settings = f"Run {run.run_id}", run.spec
            # The store has its numbers; the images follow from the spec within seconds.
            known = out is not None and stored_forecast(target, run.run_id)
            expected = forecast(run.spec) if known else None
    if as_json:
        print_json(diagnosis.numbers())
    else:
        print(shown(diagnosis.summary()))
    if out is not None:
        save_diagnosis(diagnosis, out)
        page = write_diagnosis_page(diagnosis, out / "diagnosis.html", title, settings, forecast=expected)
        if not as_json:
            print(f"saved in {out}; to look at: {page}")


def _entry(pick: str | None) -> int | str | None:
    return int(pick) if pick is not None and pick.lstrip("-").isdecimal() else pick


@app.command(rich_help_panel=DIAGNOSE, short_help="Diagnose stored runs and keep the diagnoses with them.")
def measure(
    run_ids: Annotated[
        list[str] | None,
        typer.Argument(help="Runs to diagnose, by id; by default all finished runs.", autocompletion=complete_run_ids),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    plugin: PluginOption = None,
) -> None:
    """Diagnose stored runs and store the diagnoses with them, without training again."""
    from composcope.fastconv import keep_memory
    from composcope.store.store import Store
    from composcope.terminal import progress_bar

    load_plugins(plugin)
    keep_memory()
    target = Store(store)
    chosen = [target.find(prefix) for prefix in run_ids or []]
    finished = [run_id for run_id in target.run_ids() if target.has(run_id)]
    if not chosen and not finished:
        print(f"no runs in {store}")
    failed = False
    for run_id in chosen or finished:
        try:
            with progress_bar(f"run {run_id}") as advance:
                verdict = target[run_id].measure(on_progress=advance).verdict
        except ComposcopeError as error:
            failed = True
            print(f"error: {shown(error)}", file=sys.stderr)
            continue
        score = f", score {verdict.score:.2f}" if verdict and verdict.score is not None else ""
        print(f"run {run_id}: " + (f"{verdict.kind}{score}" if verdict else "nothing is held out"))
    if failed:
        raise typer.Exit(1)


@app.command(rich_help_panel=DIAGNOSE, short_help="Forecast what a run will draw, before it is trained.")
def forecast(
    spec: Annotated[
        str,
        typer.Argument(
            help="TOML file that describes the run; or a stored run's id, to keep the forecast with it.",
            autocompletion=complete_run_ids,
        ),
    ],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a field of the file: --set encoding.kind=onehot."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for forecast.png, forecast.npz (images) and forecast.json (numbers).")
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    plugin: PluginOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forecast what a run will draw on held-out combinations, in about a hundredth of the time that training takes.

    A log-linear regression and a Gaussian kernel are fitted to the training set and judged like a decoder; the command
    says which of them resembles the run's decoder, and abstains where neither is known to.
    """
    from composcope.forecasts import forecast as forecast_spec
    from composcope.forecasts.forecast import forecast_run
    from composcope.runs.spec import Spec, read_toml
    from composcope.runs.sweep import with_settings
    from composcope.store.store import Store
    from composcope.terminal import progress_bar

    load_plugins(plugin)
    named = Path(spec).suffix != ".toml" and not Path(spec).exists()
    if named and set_:
        raise BadInput(f"{spec}: --set changes a file's fields; {spec!r} is taken for a stored run's id")
    with progress_bar("forecast") as advance:
        if named:
            target = Store(store)
            made = forecast_run(target, target.find(spec), advance)
        else:
            made = forecast_spec(Spec.from_dict(with_settings(read_toml(spec), set_ or [])), advance)
    if as_json:
        print_json(made.numbers())
    else:
        print(shown(made))
        _print_images(made)
    if out is not None:
        _write(made, out)
        if not as_json:
            print(f"saved in {out}: forecast.png, forecast.npz, forecast.json")


def _print_images(made: "Forecast") -> None:
    """Some held-out images, if the terminal can show them."""
    from composcope.terminal import can_draw, print_images

    samples = made.prediction.diagnosis.samples
    if not can_draw() or samples is None:
        return
    latents, truth = samples.latents[:4], samples.truth[:4]
    print("\nheld-out images: true above, forecast below")
    print_images([truth.numpy(), made.prediction.draw(latents).numpy()])


def _write(made: "Forecast", folder: Path) -> None:
    """The images of the held-out combinations (evenly spaced ones if they are many), a picture, and the numbers."""
    import json

    from composcope.files import make_folder, write_atomically
    from composcope.plain import pack_arrays
    from composcope.study.drawing import as_bytes

    latents = made.latents[:: -(-len(made.latents) // MAX_WRITTEN)]
    figure: Any = made.plot().figure
    images = {
        name.lower().replace(" ", "_").replace("-", "_"): prediction.draw(latents).numpy()
        for name, prediction in made.predictions.items()
    }
    arrays = {"latents": latents.numpy(), "true": made.spec.task.render(latents).numpy(), **images}
    try:
        make_folder(folder, parents=True)
        write_atomically(folder / "forecast.npz", pack_arrays(arrays))
        write_atomically(folder / "forecast.json", (json.dumps(made.numbers(), indent=2) + "\n").encode())
        write_atomically(folder / "forecast.png", as_bytes(figure, "png"))
    except OSError as error:
        raise BadInput(f"{str(folder)!r} is not a folder that can be written to: {error.strerror}") from None
