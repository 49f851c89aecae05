"""Terminal output: progress with the time left, as a bar or as lines of a log, and tables whose lines never wrap."""

import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console

# Pixels of an image that a line of the terminal shows at most: four images fit into 80 columns.
MAX_IMAGE_WIDTH = 16
# Without a terminal (a log file, a pipe) a line is printed after this many seconds, and then every so often.
FIRST_LINE, NEXT_LINES = 5.0, 30.0  # seconds
FORESEEABLE = 0.01  # share done from which the time left is more than a guess: processes take seconds to start
# Characters that a terminal or a browser acts on instead of showing: controls but for tab and line feed, marks that
# change the direction of text, and halves of surrogate pairs, which cannot be written at all.
ACTED_ON = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[float, float], None]]:
    """Progress on standard error, updated with (done, total): a bar in a terminal, a line now and then elsewhere."""
    from rich.console import Console

    console = Console(file=sys.stderr)
    if not console.is_terminal:
        yield _LogLines(title)
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


class _LogLines:
    """Prints the share done and the time left, now and then."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.start = time.monotonic()
        self.due = self.start + FIRST_LINE

    def __call__(self, done: float, total: float) -> None:
        now = time.monotonic()
        if now < self.due or not total:
            return
        self.due = now + NEXT_LINES
        share = min(done / total, 1.0)
        foreseeable = share >= FORESEEABLE
        rest = f", about {duration((now - self.start) * (1 - share) / share)} left" if foreseeable else ""
        print(f"{self.title}: {share:.0%} done{rest}", file=sys.stderr, flush=True)


def shown(text: object) -> str:
    """Text from files or users with every character that a terminal would act on written as its code.

    >>> shown("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return ACTED_ON.sub(lambda sign: repr(sign[0])[1:-1], str(text))


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(42.4), duration(75), duration(9000)
    ('42 s', '1 min 15 s', '2 h 30 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def can_draw() -> bool:
    """Whether standard output is a terminal with colours and Unicode, which is what `print_images` needs."""
    from rich.console import Console

    console = Console()
    unicode = (console.encoding or "").startswith("utf")
    return console.is_terminal and console.color_system in ("256", "truecolor") and not console.no_color and unicode


def print_images(rows: "Sequence[np.ndarray]", console: "Console | None" = None) -> None:
    """Images in the terminal, two pixels to a character; each row is an array (n, channels, height, width) in [0, 1].

    Images of more than `MAX_IMAGE_WIDTH` pixels are shown smaller, every so many pixels averaged.
    """
    from rich.console import Console
    from rich.text import Text

    console = console or Console()
    for images in rows:
        small = [_smaller(image) for image in images]
        lines = Text()
        for top in range(0, len(small[0]), 2):
            for image in small:
                for upper, lower in zip(image[top], image[min(top + 1, len(image) - 1)], strict=True):
                    lines.append("▀", style=f"rgb({upper}) on rgb({lower})")
                lines.append("  ")
            lines.append("\n")
        console.print(lines)


def _smaller(image: "np.ndarray") -> list[list[str]]:
    """The image as rows of "red,green,blue", reduced to at most `MAX_IMAGE_WIDTH` pixels a side."""
    channels, height, width = image.shape
    step = -(-max(height, width) // MAX_IMAGE_WIDTH)
    cut = image[:, : height // step * step, : width // step * step]
    mean = cut.reshape(channels, height // step, step, width // step, step).mean(axis=(2, 4)).clip(0, 1)
    colours = mean if channels == 3 else mean[:1].repeat(3, axis=0)
    return [
        [",".join(str(round(255 * float(c))) for c in pixel) for pixel in row] for row in colours.transpose(1, 2, 0)
    ]


def print_table(rows: Sequence[Mapping[Any, object]]) -> None:
    """Aligned columns under the first row's keys, one line per row however narrow the terminal is."""
    texts = [[_cell(key) for key in rows[0]], *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    line = "  ".join(f"{{:<{width}}}" for width in widths)
    print("\n".join([line.format(*row).rstrip() for row in texts]))


def _cell(value: object) -> str:
    if value is None or value != value:  # NaN
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    text = str(value)
    return text if text.isprintable() else shown(text).replace("\n", " ").replace("\t", " ")
