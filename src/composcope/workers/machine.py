"""What a run uses of the machine: a device, threads, and what of it the numbers may depend on."""

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch

import composcope
from composcope.errors import BadInput
from composcope.fastconv import mode, status


def provenance_of(device: str, threads: int) -> dict[str, Any]:
    """What a run's numbers may depend on beyond its spec."""
    return {
        "composcope": composcope.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": cpu_model(),
        "processor": torch.backends.cpu.get_cpu_capability(),
        "lanes": 0 if mode() == "torch" else status().lanes,  # which would compile
        "cores": os.cpu_count(),
        "threads": threads,
        "device": device,
        "dtype": "float32",
    }


@cache
def cpu_model() -> str:
    """The model name of the CPU, for example "AMD EPYC 7B13"; the architecture if the system does not tell."""
    with suppress(OSError, subprocess.SubprocessError):
        if sys.platform == "darwin":
            command = ["sysctl", "-n", "machdep.cpu.brand_string"]
            return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or platform.machine()


def source_commit() -> str:
    """The commit of the source that is running, if it is in a git checkout; otherwise empty."""
    with suppress(OSError, subprocess.SubprocessError):
        command = ["git", "-C", str(Path(composcope.__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    return ""


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def usable_device(name: str) -> torch.device:
    """The device, or BadInput that says why it cannot be used."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
        return device
    except (RuntimeError, AssertionError) as error:
        raise BadInput(
            f"device = {name!r} cannot be used here: {str(error).splitlines()[0]}; without it training is on the CPU"
        ) from None
