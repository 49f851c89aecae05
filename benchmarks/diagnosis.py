"""What a diagnosis costs: exact geometry against differences and reverse mode, the whole of it, and how it grows.

Alternatives take turns within one run, on one thread; medians of CPU time are compared (wall time beside them), so that
a busy machine slows all sides alike. Ratios carry over to other machines, seconds do not.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

import torch
from timing import machine
from torch import Tensor, nn

import composcope as cs
from composcope.activations import Subject, code_tangents
from composcope.diagnosis import diagnose
from composcope.measures.geometry import grid_metric

ENCODING = cs.Bump()


def taking_turns(alternatives: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, tuple[float, float]]:
    """Median seconds of CPU and wall time of each alternative."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in alternatives}
    for _ in range(rounds):
        for name, run in alternatives.items():
            cpu, wall = time.process_time(), time.perf_counter()
            run()
            times[name].append((time.process_time() - cpu, time.perf_counter() - wall))
    return {
        name: (statistics.median(cpu for cpu, _ in taken), statistics.median(wall for _, wall in taken))
        for name, taken in times.items()
    }


def peak_memory() -> float:
    """The most memory this process has held, in MB. (`ru_maxrss` would count that of the process it came from.)"""
    with open("/proc/self/status") as status:
        return next(float(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


class Setting:
    """A CNN and all it needs, over an N x N grid."""

    def __init__(self, size: int, depth: int = 4, width: int = 64) -> None:
        self.task = cs.BumpTask(size)
        torch.manual_seed(0)
        self.module: nn.Module = cs.CNN(depth, width).build((size, size), (1, size, size)).eval()
        self.latents = self.task.grid()
        self.codes = ENCODING.encode(self.latents, self.task.factors)
        tangents = code_tangents(ENCODING, self.latents, self.task.factors, (0, 1))
        assert isinstance(tangents, Tensor)
        self.tangents = tangents
        self.subject = Subject(self.module, self.codes)

    def forward(self) -> None:
        self.subject.images(self.codes)

    def exact(self) -> None:
        self.subject.metrics(self.codes, self.tangents)

    def differences(self) -> None:
        found: dict[str, Tensor] = {}
        for part in self.subject.parts(self.codes, 600 * 2**20):
            metric = grid_metric(part.values, self.task.factors)
            found[part.layer.name] = found.get(part.layer.name, torch.zeros_like(metric)) + metric

    def reverse(self, points: int) -> None:
        """The output's jacobian by one backward pass per pixel, then along the factors."""
        for row in range(points):
            code = self.codes[row : row + 1]
            jacobian = torch.autograd.functional.jacobian(lambda c: self.module(c).flatten(), code)[:, 0]
            slopes = jacobian @ self.tangents[:, row].T
            slopes.T @ slopes


def compare(size: int, depth: int, width: int, rounds: int) -> None:
    setting = Setting(size, depth, width)
    times = taking_turns(
        {
            "exact, all layers": setting.exact,
            "differences, all layers": setting.differences,
            "forward only": setting.forward,
        },
        rounds,
    )
    sample = 1
    cpu, wall = taking_turns({"reverse": lambda: setting.reverse(sample)}, 1)["reverse"]
    points = len(setting.codes)
    times[f"reverse mode, image only (from {sample} point)"] = (cpu * points / sample, wall * points / sample)
    print(f"\ngeometry of CNN(depth={depth}, width={width}) over {points} points of {size} x {size}, {rounds} rounds")
    exact = times["exact, all layers"]
    for name, (cpu, wall) in times.items():
        print(f"  {name:<42} {cpu:8.2f} s cpu {wall:8.2f} s wall   exact takes {exact[0] / cpu:7.4f} of it")
    ratios = exact[0] / times["differences, all layers"][0], cpu / exact[0]
    print(f"  exact / differences = {ratios[0]:.2f} (at most 1.5)   reverse / exact = {ratios[1]:.0f} (at least 100)")


def grow(sizes: list[int], depths: list[int], width: int) -> None:
    print(
        f"\nexact geometry as the grid grows, CNN(depth=4, width={width}): each image grows too, so cost goes with N^4"
    )
    for size in sizes:
        cost(Setting(size, 4, width), f"N = {size}")
    size = sizes[0]
    print(f"\nexact geometry over more points of the same {size} x {size} images")
    setting = Setting(size, 4, width)
    codes, tangents = setting.codes, setting.tangents
    for times in (1, 2, 4):
        setting.codes, setting.tangents = codes.repeat(times, 1), tangents.repeat(1, times, 1)
        cost(setting, f"{len(setting.codes)} points")
    print(f"\nexact geometry as layers are added, N = {size}, width {width}")
    for depth in depths:
        cost(Setting(size, depth, width), f"depth {depth}")


def cost(setting: Setting, name: str) -> None:
    cpu, wall = taking_turns({"exact": setting.exact}, 2)["exact"]
    pixels = len(setting.codes) * setting.subject.features
    print(f"  {name:<12} {cpu:8.2f} s cpu {wall:8.2f} s wall   {cpu / pixels * 1e9:6.1f} ns per point and feature")


def whole(size: int, depth: int, width: int) -> None:
    """A complete diagnosis; called in a process of its own, since peak memory is a process's."""
    setting = Setting(size, depth, width)
    cpu, wall = time.process_time(), time.perf_counter()
    diagnose(setting.module, setting.task, cs.Square(size * 6 // 28, size * 22 // 28), ENCODING)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = peak_memory()
    print(f"\ncomplete diagnosis of CNN(depth={depth}, width={width}), {size} x {size}")
    print(f"  {cpu:.1f} s cpu, {wall:.1f} s wall (at most 60)   peak {peak:.0f} MB (at most 2048)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--whole", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    size, depth, width = (12, 3, 16) if chosen.quick else (28, 4, 64)
    if chosen.whole:
        whole(size, depth, width)
        return
    print(machine("one thread"))
    compare(size, depth, width, rounds=2 if chosen.quick else 3)
    sys.stdout.flush()
    again = [sys.executable, __file__, "--whole", *(["--quick"] if chosen.quick else [])]
    subprocess.run(again, check=True)
    grow([8, 12] if chosen.quick else [16, 28, 56], [2, 3] if chosen.quick else [2, 4, 6, 8], 8 if chosen.quick else 16)


if __name__ == "__main__":
    main()
