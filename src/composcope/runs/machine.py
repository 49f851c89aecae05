"""The machine: a device and threads for a run, what the numbers may depend on, and what is installed."""

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import metadata, util
from pathlib import Path
from typing import Any

import torch

import composcope
from composcope.errors import BadInput
from composcope.fastconv import mode, status

PACKAGES = (
    "torch",
    "numpy",
    "pydantic",
    "pandas",
    "scipy",
    "scikit-learn",
    "scikit-image",
    "matplotlib",
    "safetensors",
)
EXTRAS = {"paper": "umap", "dev": "pytest"}


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


def report_machine(store: str) -> dict[str, str]:
    """One line per finding, for `composcope doctor`: what is installed and what the machine offers.

    - `store`: the line about the store.
    """
    lines = {"composcope": metadata.version("composcope"), "python": platform.python_version()}
    lines |= {name: metadata.version(name) for name in PACKAGES}
    lines["cores"] = f"{os.cpu_count()} ({torch.backends.cpu.get_cpu_capability()})"
    lines["threads"] = f"{torch.get_num_threads()} at most; a run uses 1 by default"
    lines["kernels"] = _kernels_state()
    lines["accelerator"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "none, training on the CPU"
    lines["store"] = store
    for extra, module in EXTRAS.items():
        lines[f"extra [{extra}]"] = (
            "installed" if util.find_spec(module) else f"not installed (pip install composcope[{extra}])"
        )
    return lines


def _kernels_state() -> str:
    state = status()
    if state.available:
        return f"compiled convolutions, {state.lanes} floats to a vector"
    return f"PyTorch's convolutions, which are slower: {state.reason}"
