"""Alternatives timed side by side: they take turns within one run, so that a busy machine slows all of them alike."""

import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from composcope import fastconv


@dataclass(frozen=True)
class Times:
    """Medians of one alternative, in seconds."""

    cpu: float
    wall: float


def measure(alternatives: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Times]:
    """Median times of the alternatives, taking turns; each runs once beforehand to warm up."""
    cpu: dict[str, list[float]] = {name: [] for name in alternatives}
    wall: dict[str, list[float]] = {name: [] for name in alternatives}
    for turn in range(rounds + 1):
        for name, run in alternatives.items():
            starts = time.process_time(), time.perf_counter()
            run()
            if turn:
                cpu[name].append(time.process_time() - starts[0])
                wall[name].append(time.perf_counter() - starts[1])
    return {name: Times(statistics.median(cpu[name]), statistics.median(wall[name])) for name in alternatives}


def report(times: Mapping[str, Times], unit: float = 1e3, sign: str = "ms") -> None:
    """One line per alternative, with the ratio to the first."""
    first = next(iter(times.values()))
    for name, t in times.items():
        ratio = f"{first.cpu / t.cpu:5.2f}x cpu {first.wall / t.wall:5.2f}x wall"
        print(f"  {name:<34} {t.cpu * unit:9.2f} {sign} cpu {t.wall * unit:9.2f} {sign} wall  {ratio}")


def machine() -> str:
    """The machine in a line, with what PyTorch and the compiled convolutions use of it."""
    status = fastconv.status()
    kernels = f"kernels with {status.lanes} lanes" if status.available else f"no kernels: {status.reason}"
    uses = torch.backends.cpu.get_cpu_capability()
    return f"{processor()}, {os.cpu_count()} cores, PyTorch uses {uses}, {kernels}, torch {torch.__version__}"


def processor() -> str:
    """The processor's name."""
    names = [line for line in _cpuinfo().splitlines() if line.startswith("model name")]
    return names[0].partition(":")[2].strip() if names else platform.machine()


def folder() -> str:
    """A folder's name for the machine's results: amd-epyc-avx2."""
    return re.sub(r"[^a-z0-9]+", "-", f"{processor()} {torch.backends.cpu.get_cpu_capability()}".lower()).strip("-")


def _cpuinfo() -> str:
    path = Path("/proc/cpuinfo")
    return path.read_text() if path.exists() else ""


def serve(run: Callable[[], object]) -> None:
    """In a process of its own: one run for every line read, answered with its CPU and wall time."""
    for _ in sys.stdin:
        starts = time.process_time(), time.perf_counter()
        run()
        print(time.process_time() - starts[0], time.perf_counter() - starts[1], flush=True)


def compare(script: str, names: Sequence[str], arguments: Sequence[object], rounds: int) -> dict[str, Times]:
    """Median times of alternatives, each in a process of its own: in one they would share the memory's state."""
    pipe, words = subprocess.PIPE, [str(argument) for argument in arguments]
    commands = {name: [sys.executable, script, "--serve", name, *words] for name in names}
    servers = {
        name: subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for name, command in commands.items()
    }
    taken: dict[str, list[Times]] = {name: [] for name in names}
    for turn in range(rounds + 1):
        for name, server in servers.items():
            times = ask(server)
            if turn:
                taken[name].append(times)
    for server in servers.values():
        server.communicate()
    median = statistics.median
    return {name: Times(median(t.cpu for t in all_), median(t.wall for t in all_)) for name, all_ in taken.items()}


def ask(server: "subprocess.Popen[str]") -> Times:
    """One epoch of a serving process."""
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write("\n")
    server.stdin.flush()
    cpu, wall = server.stdout.readline().split()
    return Times(float(cpu), float(wall))


if __name__ == "__main__":
    print(folder())
