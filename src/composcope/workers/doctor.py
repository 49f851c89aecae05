"""What is installed, what the machine offers, whether results can be stored."""

import os
import platform
from importlib import metadata, util
from pathlib import Path

from composcope import fastconv
from composcope.display import counted
from composcope.errors import BadInput
from composcope.store.store import Store

PARTS = ("torch", "numpy", "pydantic", "pandas", "scipy", "scikit-learn", "scikit-image", "matplotlib", "safetensors")
EXTRAS = {"paper": "umap", "dev": "pytest"}


def findings(store: str | Path) -> dict[str, str]:
    """One line per finding, for `composcope doctor`."""
    import torch

    lines = {"composcope": metadata.version("composcope"), "python": platform.python_version()}
    lines |= {name: metadata.version(name) for name in PARTS}
    lines["cores"] = f"{os.cpu_count()} ({torch.backends.cpu.get_cpu_capability()})"
    lines["threads"] = f"{torch.get_num_threads()} at most; a run uses 1 by default"
    lines["kernels"] = _kernels_state()
    lines["accelerator"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "none, training on the CPU"
    lines["store"] = _store_state(store)
    for extra, module in EXTRAS.items():
        lines[f"extra [{extra}]"] = (
            "installed" if util.find_spec(module) else f"not installed (pip install composcope[{extra}])"
        )
    return lines


def _kernels_state() -> str:
    state = fastconv.status()
    if state.available:
        return f"compiled convolutions, {state.lanes} floats to a vector"
    return f"PyTorch's convolutions, which are slower: {state.reason}"


def _store_state(folder: str | Path) -> str:
    try:
        existed = Path(folder).exists()  # looked at first, since preparing a store creates it
        store = Store(folder)
        if not existed:
            parent = next(path for path in Path(folder).absolute().parents if path.exists())
            able = os.access(parent, os.W_OK) and parent.is_dir()
            return f"{folder} does not exist yet and {'can' if able else 'CANNOT'} be created"
        store.prepare()
        return f"{folder} is writable and holds {counted(len(store.run_ids()), 'run')}"
    except BadInput as problem:
        return f"PROBLEM: {problem}"
