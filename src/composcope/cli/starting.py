"""Commands to begin with: init writes a file, components lists what a spec can name, doctor looks at the machine."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from composcope.cli.app import START, app, print_json
from composcope.cli.options import DEFAULT_STORE, JsonOption, PluginOption, StoreOption, load_plugins
from composcope.errors import BadInput

STARTERS = Path(__file__).parent / "starters"
COMMANDS = {
    "spec.toml": "composcope run {file}",
    "sweep.toml": "composcope sweep {file}",
    "study.txt": "composcope reproduce --study my-study --plugin {file}",
}


@app.command(rich_help_panel=START, short_help="Write a commented file to start from: spec, sweep or study.")
def init(
    file: Annotated[Path, typer.Argument(help="The file to write: spec.toml, sweep.toml or study.py.")],
) -> None:
    """Write a commented file to start from.

    A name that ends in .py is a study, one that begins with "sweep" and ends in .toml a sweep, any other .toml a spec.
    """
    from composcope.files import write_atomically

    starter = _starter(file)
    if file.exists():
        raise BadInput(f"{str(file)!r} exists already; choose another name, or remove it first")
    text = (STARTERS / starter).read_text(encoding="utf-8").replace("FILE", shlex.quote(str(file)))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, text.encode())
    except OSError as error:
        raise BadInput(f"{str(file)!r} cannot be written: {error.strerror}") from None
    print(f"wrote {file}; next: {COMMANDS[starter].format(file=shlex.quote(str(file)))}")


def _starter(file: Path) -> str:
    if file.suffix == ".py":
        return "study.txt"
    if file.suffix == ".toml":
        return "sweep.toml" if file.name.startswith("sweep") else "spec.toml"
    raise BadInput(f"{str(file)!r}: init writes .toml files (a spec; a sweep if its name begins so) and .py (a study)")


@app.command(rich_help_panel=START, short_help="List tasks, holdouts, encodings, decoders and their fields.")
def components(
    name: Annotated[
        str | None, typer.Argument(help="A role (decoder) or a kind (cnn); all of them by default.")
    ] = None,
    plugin: PluginOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what a spec can name: tasks, holdouts, encodings, decoders, samplings and penalties, with their fields.

    A field without a default must be given.
    """
    import composcope.runs.spec  # noqa: F401  (importing it registers every component)
    from composcope.components import describe, nearest

    load_plugins(plugin)
    entries = describe()
    wanted = "penalty" if name == "penalties" else name.removesuffix("s") if name else None
    chosen = [entry for entry in entries if name in (None, entry.kind) or wanted == entry.role]
    if not chosen:
        names = sorted({word for entry in entries for word in (entry.role, entry.kind)})
        raise BadInput(f"there is no component {name!r}{nearest(name, names)}; choose from: {', '.join(names)}")
    if as_json:
        print_json(chosen)
        return
    role = ""
    for entry in chosen:
        if entry.role != role:
            role = entry.role
            print(f"\n[{role}]" if role != "penalty" else "\n[[penalties]]")
        print(f'  kind = "{entry.kind}"  {entry.summary}')
        for field in entry.fields:
            default = f" = {field.default}" if field.default is not None else ", must be given"
            print(f"      {field.name}: {field.type}{default}")


@app.command(rich_help_panel=START, short_help="Report what is installed and what this machine offers.")
def doctor(store: StoreOption = DEFAULT_STORE) -> None:
    """Report what is installed, what this machine offers and whether results can be stored."""
    from composcope.runs.machine import report_machine
    from composcope.store.store import store_state

    for name, finding in report_machine(store_state(store)).items():
        print(f"{name}: {finding}")
