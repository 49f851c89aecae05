"""The program: how its commands are arranged, exit codes, errors in one line, and JSON."""

import errno
import json
import logging
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from composcope.cli.interrupt import interruptible
from composcope.errors import BadInput, ComposcopeError
from composcope.terminal import shown

START, REPRODUCE, TRAIN = "Start", "Reproduce a paper, or run a study", "Train"
DIAGNOSE, LOOK = "Diagnose", "Look at results"
ORDER = (START, REPRODUCE, TRAIN, DIAGNOSE, LOOK)

WELCOME = """\
composcope: does this generative decoder compose?

Three things to do first:

  composcope reproduce cures
      Trains the paper's failing decoder and its cures, draws them side by side and writes out/report.html.

  composcope init spec.toml
      Writes a commented file that describes one run. Train it with: composcope run spec.toml

  composcope diagnose your_file.py:your_function --spec task.toml
      Tells whether your own PyTorch decoder composes, and why. Without one of your own: composcope diagnose RUN_ID

All commands: composcope --help"""


class GroupedCommands(TyperGroup):
    """Commands in the order of their groups; within a group as they were registered."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=self._group_of)

    def _group_of(self, name: str) -> int:
        group = getattr(self.commands[name], "rich_help_panel", None)
        return ORDER.index(group) if group in ORDER else len(ORDER)


app = typer.Typer(
    cls=GroupedCommands,
    help="Does this generative decoder compose? Hold out, train, measure, explain.",
    epilog="Exit codes: 0 success, 1 a run failed, 2 wrong usage, 130 interrupted.",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

INTERRUPTED = 130
INTERRUPTED_TEXT = "interrupted; finished runs are stored, rerun the same command to resume"


def _version(wanted: bool) -> None:
    if wanted:
        from composcope import __version__

        print(f"composcope {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(WELCOME)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line: exit code 0 on success, 1 when a run failed, 2 for wrong usage, 130 when interrupted."""
    warnings.showwarning = _show_warning
    logging.basicConfig(stream=sys.stderr, format="%(message)s")
    logging.getLogger("composcope.fastconv").setLevel(logging.INFO)
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if any("\0" in argument for argument in given):
            raise BadInput("an argument has a null character, which no name of a file can have")
        with interruptible():
            try:
                app(args=given, standalone_mode=True)
            finally:
                sys.stdout.flush()  # a full disk is noticed here, while we can still say so
    except ComposcopeError as error:
        print(f"error: {shown(error)}", file=sys.stderr)
        sys.exit(2 if isinstance(error, BadInput) else 1)
    except BrokenPipeError:  # the reader has seen enough, as in `composcope list | head`
        _end_output()
        sys.exit(1)
    except OSError as error:
        _end_output()
        where = f" {str(error.filename)!r}" if error.filename else ""
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        advice = "; make room, or choose another disk with --store or --out, and rerun" if full else ""
        print(f"error: cannot read or write{where}: {error.strerror or error}{advice}", file=sys.stderr)
        sys.exit(1)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            print(INTERRUPTED_TEXT, file=sys.stderr)
        raise


def _end_output() -> None:
    """Throw away output that could not be written, or Python would try again at its end and print a traceback."""
    try:
        sys.stdout.flush()
    except OSError:
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


def print_json(data: Any) -> None:
    """Plain data as JSON; a number that is not finite becomes null."""
    from composcope.plain import to_plain

    print(json.dumps(to_plain(data, {}), indent=2, allow_nan=False))
