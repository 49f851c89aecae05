"""Is the rule that chooses a convolution right? Every cell measured both ways, and the cells where the rule loses.

Run it on a processor whose number of lanes has not been measured; the rule's constants are in fastconv/functional.py.
Ours is measured as training calls it, so that choosing a kernel is part of its time.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterable

import torch
from layers import Cell
from timing import machine

from composcope import fastconv
from composcope.fastconv.functional import Layer

WIDTHS = (16, 24, 32, 64, 128)
BATCHES = (1, 8, 16, 32)
SIZES: dict[Layer, tuple[int, ...]] = {
    "conv3x3": (7, 8, 14, 16, 20, 28, 40, 56),
    "upsample2x": (3, 4, 5, 6, 7, 8, 10, 14, 20, 28),  # of the input; 3 and 6 are those of images of 10 pixels
}
LOW_RANK = [Cell("conv3x3", n, 2, k, size, relu=False) for n in (16, 32) for size in (8, 16, 32) for k in (1, 2, 3, 4)]
ROTATION = [
    Cell("upsample2x", 32, 128, 128, 7, relu=False),
    Cell("upsample2x", 32, 128, 64, 14, relu=False),
    Cell("conv3x3", 32, 64, 1, 28, relu=False),
    Cell("upsample2x", 32, 24, 24, 7, relu=False),
    Cell("upsample2x", 32, 24, 24, 14, relu=False),
    Cell("conv3x3", 32, 24, 1, 28, relu=False),
]
COLOUR = [Cell("conv3x3", n, c, 3, size, relu=False) for n in (1, 16, 32) for c in (24, 64) for size in (8, 16, 32, 64)]
NETWORKS = {
    "low-rank networks": LOW_RANK,
    "rotation networks of both presets": ROTATION,
    "last layers of colour images": COLOUR,
}
ALLOWED = 0.95  # PyTorch's time / ours, where ours is chosen


def ratio(cell: Cell, seconds: float) -> float:
    """PyTorch's time / ours; if the rule loses, a mean over longer, since a busy machine may have disturbed it."""
    with cell.forced():
        theirs, ours = cell.sides(*cell.tensors()).values()
        found = turns(theirs, ours, seconds)
        if cell.chosen and found < ALLOWED:
            return (found + 3 * turns(theirs, ours, 3 * seconds)) / 4
        return found


def turns(first: Callable[[], object], second: Callable[[], object], seconds: float) -> float:
    """Median CPU time of the first / of the second, for about so many seconds and at least five rounds."""
    first()
    second()
    taken: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + seconds
    while len(taken[0]) < 5 or time.perf_counter() < end:
        for times, run in zip(taken, (first, second), strict=True):
            start = time.process_time()
            run()
            times.append(time.process_time() - start)
    return statistics.median(taken[0]) / statistics.median(taken[1])


def violation(cell: Cell, found: float) -> list[str]:
    return [f"{cell}: {found:.2f}"] if cell.chosen and found < ALLOWED else []


def table(layer: Layer, outputs: str, cells: Callable[[int, int, int], Cell], seconds: float) -> list[str]:
    """Print the ratios by size and width for every batch; the violations, one line each."""
    violations = []
    for n in BATCHES:
        print(f"{layer}, {outputs}, batch {n}: PyTorch's time / ours; t = the rule uses PyTorch's")
        print("  size " + "".join(f"  width {width:<5}" for width in WIDTHS))
        for size in SIZES[layer]:
            line = f"  {size:4} "
            for width in WIDTHS:
                cell = cells(n, width, size)
                found = ratio(cell, seconds)
                line += f"  {found:6.2f} {' ' if cell.chosen else 't'}    "
                violations += violation(cell, found)
            print(line, flush=True)
    return violations


def widths(seconds: float) -> list[str]:
    """Layers of as many channels as before them, and the last layer of a decoder."""
    return [
        *table("conv3x3", "as many", lambda n, width, size: Cell("conv3x3", n, width, width, size), seconds),
        *table("upsample2x", "as many", lambda n, width, size: Cell("upsample2x", n, width, width, size), seconds),
        *table("conv3x3", "one", lambda n, width, size: Cell("conv3x3", n, width, 1, size), seconds),
    ]


def networks(seconds: float) -> list[str]:
    """The layers of the paper's other networks, without ReLU."""
    violations = []
    for name, cells in NETWORKS.items():
        print(f"{name}: PyTorch's time / ours; t = the rule uses PyTorch's")
        for cell in cells:
            found = ratio(cell, seconds)
            print(f"  {cell!s:<42} {found:6.2f} {'' if cell.chosen else 't'}".rstrip(), flush=True)
            violations += violation(cell, found)
    return violations


def report(violations: Iterable[str]) -> None:
    lines = list(violations)
    print(f"cells where ours is chosen and PyTorch's takes less than {ALLOWED} of its time: {len(lines)}")
    print("\n".join(f"  {line}" for line in lines))


PARTS = {"widths": widths, "networks": networks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.2, help="for each cell, about")
    parser.add_argument("--only", choices=PARTS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    fastconv.keep_memory()
    print(machine("one thread"))
    if fastconv.status().available:
        parts = [options.only] if options.only else PARTS
        report([line for part in parts for line in PARTS[part](options.seconds)])


if __name__ == "__main__":
    main()
