"""Small charts as coordinates: lines over layers, and an effect beside its threshold. `parts.html` draws them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from composcope.display import number

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 260, 130, 44, 8, 8, 22
STRIP_WIDTH, STRIP_EDGE = 150, 8


@dataclass(frozen=True)
class Line:
    """One line of a chart; None where there is no value. `control`: drawn dashed and pale."""

    label: str
    values: Sequence[float | None]
    control: bool = False


@dataclass(frozen=True)
class Chart:
    """Coordinates of everything in the chart.

    - `said`: all values in words, for those who cannot see it. `step`: from one position to the next; `rules`: heights
      and labels of the axis. `ends`: labels of the first and last position; `curves`: each line's style and points.
    """

    said: str
    step: float
    rules: list[tuple[float, str]]
    ends: tuple[str, str]
    curves: list[tuple[str, list[tuple[float, float]]]]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def chart(title: str, lines: Sequence[Line], labels: Sequence[str], low: float, high: float) -> Chart | None:
    """The lines over labelled positions, evenly spaced, on an axis that shows at least low to high."""
    finite = [value for line in lines for value in line.values if value is not None and math.isfinite(value)]
    if not finite:
        return None
    low, high = min(low, *finite), max(high, *finite)
    if high - low < 1e-12:
        low, high = low - 0.5, high + 0.5
    step = (WIDTH - LEFT - RIGHT) / max(1, len(labels) - 1)

    def y(value: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low), 1)

    # A line at 0 helps only where it is clear of the axis's ends and their labels.
    zero = (0.0,) if min(high, -low) > 0.15 * (high - low) else ()
    curves: list[tuple[str, list[tuple[float, float]]]] = []
    for line in lines:
        style = "control" if line.control else f"line{sum(kind != 'control' for kind, _ in curves)}"
        points = [
            (round(LEFT + step * index, 1), y(value))
            for index, value in enumerate(line.values)
            if value is not None and math.isfinite(value)
        ]
        curves.append((style, points))
    rules = [(y(value), tick(value)) for value in dict.fromkeys((low, high, *zero))]
    said = "; ".join(f"{line.label}: {_said(labels, line.values)}" for line in lines)
    return Chart(f"{title}. {said}", step, rules, (labels[0], labels[-1]), curves)


def _said(labels: Sequence[str], values: Sequence[float | None]) -> str:
    return ", ".join(f"{label} {number(value)}" for label, value in zip(labels, values, strict=True))


@dataclass(frozen=True)
class Strip:
    """An effect beside its threshold: the claimed range from `start` on, the interval, one dot per seed."""

    start: float
    extent: float
    thresholds: list[float]
    low: float
    high: float
    dots: list[float]
    width: int = STRIP_WIDTH


def strip(
    values: Sequence[float], low: float | None, high: float | None, threshold: float, relation: str
) -> Strip | None:
    """The strip of an effect; None where there is no interval."""
    if not values or low is None or high is None:
        return None
    limits = [-threshold, threshold] if relation == "within" else [threshold]
    least, most = min(*values, *limits, low), max(*values, *limits, high)
    room = (most - least) * 0.12 or 1.0
    scale = (STRIP_WIDTH - 2 * STRIP_EDGE) / (most - least + 2 * room)

    def x(value: float) -> float:
        return round(STRIP_EDGE + (value - least + room) * scale, 1)

    start = 0 if relation in ("<", "differs") else x(limits[0])
    end = STRIP_WIDTH if relation in (">", "differs") else x(limits[-1])
    dots = [x(value) for value in values]
    return Strip(start, round(end - start, 1), [x(limit) for limit in limits], x(low), x(high), dots)


def tick(value: float) -> str:
    """A short label.

    >>> tick(0.0), tick(1.0), tick(-1.234), tick(0.00412)
    ('0', '1', '-1.2', '4.1e-3')
    """
    if value == 0 or 0.01 <= abs(value) < 1000:
        return f"{value:.2g}"
    digits, power = f"{value:.1e}".split("e")
    return f"{digits}e{int(power)}"
