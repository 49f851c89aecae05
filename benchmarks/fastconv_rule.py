"""Is the rule that chooses a convolution right? Every cell measured both ways, and the cells where the rule loses.

Run it on a processor whose number of lanes has not been measured; the rule's constants are in fastconv/rule.py.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from timing import machine
from torch import Tensor

from composcope import fastconv
from composcope.fastconv.functional import Layer, by_kernel, by_torch
from composcope.fastconv.rule import best_kernel, candidate

WIDTHS = (16, 24, 32, 64, 128)
BATCHES = (1, 8, 16, 32)
SIZES: dict[Layer, tuple[int, ...]] = {
    "conv3x3": (7, 8, 14, 16, 20, 28, 40, 56),
    "upsample2x": (4, 5, 7, 8, 10, 14, 20, 28),  # of the input
}
ALLOWED = 0.95  # PyTorch's time / ours, where ours is chosen


@dataclass(frozen=True)
class Cell:
    """A layer of one size: n images of c channels and size x size pixels to k channels."""

    layer: Layer
    n: int
    c: int
    k: int
    size: int

    def chosen(self, lanes: int) -> bool:
        return best_kernel(self.layer, self.n, self.c, self.k, self.size, self.size, lanes) is not None

    def ratio(self, seconds: float) -> float:
        """PyTorch's time / ours, forward and backward with ReLU: medians of CPU time, taking turns."""
        up = self.layer == "upsample2x"
        x = torch.randn(self.n, self.c, self.size, self.size, requires_grad=True)
        shape = (self.c, self.k, 4, 4) if up else (self.k, self.c, 3, 3)
        weight = (torch.randn(shape) / (3 * self.c**0.5)).requires_grad_()
        bias = torch.randn(self.k, requires_grad=True)
        kernel = candidate(self.layer, self.k)

        def step(forward: Callable[[], Tensor]) -> None:
            y = forward()
            torch.autograd.grad(y, [x, weight, bias], torch.ones_like(y))

        def theirs() -> None:
            step(lambda: by_torch(self.layer, x, weight, bias, True))

        def ours() -> None:
            step(lambda: by_kernel(self.layer, kernel, x, weight, bias, True))

        return turns(theirs, ours, seconds)


def turns(first: Callable[[], None], second: Callable[[], None], seconds: float) -> float:
    """Median time of the first / of the second, for about so many seconds and at least five rounds."""
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


def table(layer: Layer, outputs: str, cells: Callable[[int, int, int], Cell], options: argparse.Namespace) -> list[str]:
    """Print the ratios by size and width for every batch; the violations, one line each."""
    lanes, violations = fastconv.status().lanes, []
    for n in BATCHES:
        print(f"{layer}, {outputs}, batch {n}: PyTorch's time / ours; t = the rule uses PyTorch's")
        print("  size " + "".join(f"  width {width:<5}" for width in WIDTHS))
        for size in SIZES[layer]:
            line = f"  {size:4} "
            for width in WIDTHS:
                cell = cells(n, width, size)
                ratio, chosen = cell.ratio(options.seconds), cell.chosen(lanes)
                if chosen and ratio < ALLOWED:  # a busy machine may have disturbed it: once more, for longer
                    ratio = cell.ratio(3 * options.seconds)
                line += f"  {ratio:6.2f} {' ' if chosen else 't'}    "
                if chosen and ratio < ALLOWED:
                    violations.append(f"{cell}: {ratio:.2f}")
            print(line, flush=True)
    return violations


def report(violations: Iterable[str]) -> None:
    lines = list(violations)
    print(f"cells where ours is chosen and PyTorch's takes less than {ALLOWED} of its time: {len(lines)}")
    print("\n".join(f"  {line}" for line in lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.2, help="for each cell, about")
    options = parser.parse_args()
    torch.set_num_threads(1)
    fastconv.keep_memory()
    status = fastconv.status()
    print(f"{machine()}; one thread")
    if not status.available:
        return
    violations = table("conv3x3", "as many", lambda n, width, size: Cell("conv3x3", n, width, width, size), options)
    violations += table(
        "upsample2x", "as many", lambda n, width, size: Cell("upsample2x", n, width, width, size), options
    )
    violations += table("conv3x3", "one", lambda n, width, size: Cell("conv3x3", n, width, 1, size), options)
    report(violations)


if __name__ == "__main__":
    main()
