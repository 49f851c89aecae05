"""The command about what training would give: forecast."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from composcope.cli.app import (
    DEFAULT_STORE,
    JsonOption,
    PluginOption,
    StoreOption,
    app,
    complete_run_ids,
    load_plugins,
    print_json,
)
from composcope.cli.groups import DIAGNOSE
from composcope.errors import BadInput
from composcope.terminal import shown

if TYPE_CHECKING:
    from composcope.forecasts import Forecast

MOST_WRITTEN = 10_000  # images


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

    latents = made.latents[:: -(-len(made.latents) // MOST_WRITTEN)]
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
