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

Turn = tuple[float, float]
"""CPU and wall time of one turn, in seconds."""


@dataclass(frozen=True)
class Times:
    """Seconds of one alternative: medians, and the clock's of the first turn, which is not among them."""

    cpu: float
    wall: float
    first: float


def measure(alternatives: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Times]:
    """Median times of the alternatives, taking turns; each runs once beforehand to warm up."""
    turns: dict[str, list[Turn]] = {name: [] for name in alternatives}
    for _ in range(rounds + 1):
        for name, run in alternatives.items():
            turns[name].append(timed(run))
    return {name: summary(taken) for name, taken in turns.items()}


def timed(run: Callable[[], object]) -> Turn:
    """CPU and wall time of one call."""
    starts = time.process_time(), time.perf_counter()
    run()
    return time.process_time() - starts[0], time.perf_counter() - starts[1]


def summary(turns: Sequence[Turn]) -> Times:
    first, *counted = turns
    cpu, wall = zip(*counted, strict=True)
    return Times(statistics.median(cpu), statistics.median(wall), first[1])


def report(times: Mapping[str, Times], unit: float = 1e3, sign: str = "ms") -> None:
    """One line per alternative, with the ratio to the first."""
    first = next(iter(times.values()))
    for name, t in times.items():
        ratio = f"{first.cpu / t.cpu:5.2f}x cpu {first.wall / t.wall:5.2f}x wall"
        print(f"  {name:<34} {t.cpu * unit:9.2f} {sign} cpu {t.wall * unit:9.2f} {sign} wall  {ratio}")


# Set both to avx2 and AVX2 to see on a processor with AVX-512 what one without would do. The first limits PyTorch and
# our kernels, the second oneDNN, which computes PyTorch's convolutions.
LIMITS = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA")


def machine(*notes: str) -> str:
    """The machine in a line, with what PyTorch and our kernels use of it; a warning if they are not limited alike."""
    status = fastconv.status()
    kernels = f"kernels with {status.lanes} lanes" if status.available else f"no kernels: {status.reason}"
    uses = f"PyTorch uses {torch.backends.cpu.get_cpu_capability()}"
    parts = [processor(), f"{os.cpu_count()} cores", uses, kernels, f"torch {torch.__version__}"]
    limited = f"; limited by {' '.join(f'{name}={os.environ[name]}' for name in limits())}" if limits() else ""
    line = ", ".join(parts) + limited + "".join(f"; {note}" for note in notes)
    if len(limits()) == 1:
        (other,) = set(LIMITS) - set(limits())
        line += f"\nWARNING: {other} is not set, so that PyTorch's convolutions and our kernels are not limited alike"
    return line


def limits() -> list[str]:
    """Which of the variables that limit the instruction set are set."""
    return [name for name in LIMITS if os.environ.get(name)]


def processor() -> str:
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        return name_in(info.read_text()) or platform.machine()
    if sys.platform == "darwin":
        asked = subprocess.run(["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True)
        return asked.stdout.strip() or platform.machine()
    return platform.machine()


def name_in(cpuinfo: str) -> str:
    """The model in the text of /proc/cpuinfo; on ARM, where there is none, the numbers of its maker and its cores.

    >>> name_in("CPU implementer : 0x41\\nCPU part : 0xd0c")
    'ARM 0x41 0xd0c'
    """
    fields = [(name.strip(), value.strip()) for name, _, value in (x.partition(":") for x in cpuinfo.splitlines())]
    if models := [value for name, value in fields if name == "model name"]:
        return models[0]
    numbers = dict.fromkeys(value for name, value in fields if name in ("CPU implementer", "CPU part"))
    return " ".join(["ARM", *numbers]) if numbers else ""


def folder() -> str:
    """A folder's name for the machine's results: amd-epyc-avx2, or amd-epyc-avx2-limited."""
    name = f"{processor()} {torch.backends.cpu.get_cpu_capability()} {'limited' if limits() else ''}"
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def serve(run: Callable[[], object]) -> None:
    """In a process of its own: one run for every line read, answered with its CPU and wall time."""
    for _ in sys.stdin:
        print(*timed(run), flush=True)


def compare(script: str, names: Sequence[str], arguments: Sequence[object], rounds: int) -> dict[str, Times]:
    """Median times of alternatives, each in a process of its own: in one they would share the memory's state."""
    pipe, words = subprocess.PIPE, [str(argument) for argument in arguments]
    commands = {name: [sys.executable, script, "--serve", name, *words] for name in names}
    servers = {
        name: subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for name, command in commands.items()
    }
    turns: dict[str, list[Turn]] = {name: [] for name in names}
    for _ in range(rounds + 1):
        for name, server in servers.items():
            turns[name].append(ask(server))
    for server in servers.values():
        server.communicate()
    return {name: summary(taken) for name, taken in turns.items()}


def ask(server: "subprocess.Popen[str]") -> Turn:
    """One turn of a serving process."""
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write("\n")
    server.stdin.flush()
    cpu, wall = server.stdout.readline().split()
    return float(cpu), float(wall)
