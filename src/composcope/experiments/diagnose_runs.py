"""Diagnoses of stored runs, and of modules in users' own files."""

from pathlib import Path
from typing import Any

from torch import nn

from composcope.diagnosis import Diagnosis
from composcope.diagnosis.diagnose import OnProgress
from composcope.encodings import Encoding
from composcope.errors import BadInput
from composcope.experiments.plugins import load_plugin
from composcope.experiments.run import load
from composcope.experiments.spec import Spec, read_toml
from composcope.experiments.store import Store
from composcope.holdouts import Holdout
from composcope.tasks.base import Task


def diagnose_run(store: Store, run_id: str, on_progress: OnProgress | None = None) -> Diagnosis:
    """The diagnosis of a stored run, made anew and not stored."""
    return load(store, run_id).diagnose(on_progress)


def measure_run(store: Store, run_id: str, on_progress: OnProgress | None = None) -> Diagnosis:
    """Diagnose a stored run and store the diagnosis with it."""
    diagnosis = diagnose_run(store, run_id, on_progress)
    store.save_diagnosis(run_id, diagnosis)
    return diagnosis


def read_task(path: Path) -> tuple[Task, Holdout, Encoding]:
    """What a module of the user's own was trained to draw: a spec file's task, holdout and encoding."""
    tables = read_toml(path)
    needed: dict[str, Any] = {
        name: tables[name] for name in ("version", "task", "holdout", "encoding") if name in tables
    }
    # The file need not say how the module was trained; a spec must, so it gets any decoder and sampling.
    spec = Spec.from_dict({**needed, "decoder": {"kind": "mlp"}, "sampling": {"kind": "everything"}})
    return spec.task, spec.holdout, spec.encoding


def load_decoder(source: str, weights: Path | None = None) -> nn.Module:
    """The module that `path/file.py:function` returns, with weights from a safetensors file. Only run trusted files."""
    path, _, name = source.rpartition(":")
    make = getattr(load_plugin(path), name, None)
    if not callable(make):
        raise BadInput(f"{source!r}: {path} has no function {name!r} that makes a module")
    module = make()
    if not isinstance(module, nn.Module):
        raise BadInput(f"{source!r}: {name}() returns {type(module).__name__}, not a torch.nn.Module")
    if weights is not None:
        _load_weights(module, weights)
    return module


def _load_weights(module: nn.Module, weights: Path) -> None:
    import safetensors.torch
    from safetensors import SafetensorError

    try:
        module.load_state_dict(safetensors.torch.load_file(weights))
    except FileNotFoundError:
        raise BadInput(f"there is no file {str(weights)!r}") from None
    except (SafetensorError, RuntimeError, OSError) as error:
        raise BadInput(
            f"weights {str(weights)!r} do not fit the module: {str(error).splitlines()[-1].strip()}"
        ) from None
