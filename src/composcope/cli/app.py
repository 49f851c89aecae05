"""What the commands share: the program, common options, exit codes."""

import logging
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from composcope.errors import BadInput, ComposcopeError
from composcope.terminal import shown

app = typer.Typer(
    help="Does this generative decoder compose? Train, withhold, measure, explain.\n\n"
    "To start: composcope run examples/bump_cnn.toml",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

StoreOption = Annotated[Path, typer.Option("--store", help="Folder that holds the results.")]
PluginOption = Annotated[
    list[Path] | None,
    typer.Option("--plugin", help="Python file with your own components; its code is run. May be repeated."),
]
WorkersOption = Annotated[int | None, typer.Option(min=1, help="Processes, one thread each; by default one per core.")]
KernelsOption = Annotated[
    Literal["auto", "torch"],
    typer.Option(help="auto: compiled convolutions where they are faster; torch: PyTorch's."),
]
DEFAULT_STORE = Path("runs")
INTERRUPTED = 130


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
    """Run the command line: exit code 0 on success, 1 when a run failed, 2 for wrong usage, 130 when interrupted."""
    warnings.showwarning = _show_warning
    logging.basicConfig(stream=sys.stderr, format="%(message)s")
    logging.getLogger("composcope.fastconv").setLevel(logging.INFO)
    try:
        try:
            app(args=list(sys.argv[1:] if arguments is None else arguments), standalone_mode=True)
        finally:
            sys.stdout.flush()  # here, where a full disk can still be reported
    except OSError as error:
        _end_output()
        about = f"{shown(error.filename)!r}: " if error.filename else ""
        print(f"error: {about}{error.strerror or error}", file=sys.stderr)
        sys.exit(1)
    except ComposcopeError as error:
        print(f"error: {shown(error)}", file=sys.stderr)
        sys.exit(2 if isinstance(error, BadInput) else 1)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            print("interrupted; finished runs are stored, rerun the same command to resume", file=sys.stderr)
        raise


def _end_output() -> None:
    """Print no more: otherwise Python tries once more when it ends, and complains again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    print(f"warning: {shown(message)}", file=sys.stderr)


def load_plugins(paths: Sequence[Path] | None) -> None:
    from composcope.experiments.plugins import load_installed_plugins, load_plugin

    load_installed_plugins()
    for path in paths or []:
        load_plugin(path)
