"""Terminal output: a progress bar with the time left, and tables whose lines never wrap."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[float, float], None]]:
    """A progress bar on standard error, updated with (done, total); nothing is shown without a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(file=sys.stderr)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def print_table(rows: Sequence[Mapping[Any, object]]) -> None:
    """Aligned columns under the first row's keys, one line per row however narrow the terminal is."""
    texts = [[str(key) for key in rows[0]], *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def _cell(value: object) -> str:
    if value is None or value != value:  # NaN
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
