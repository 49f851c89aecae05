"""Diagnoses of stored runs, and of modules in users' own files."""

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from composcope.activations import Decode
from composcope.diagnosis import Diagnosis
from composcope.diagnosis.diagnose import OnProgress
from composcope.encodings import Encoding
from composcope.errors import BadInput
from composcope.holdouts import Holdout
from composcope.runs.plugins import importing_from, load_plugin
from composcope.runs.run import load
from composcope.runs.spec import Spec, read_toml
from composcope.store.store import Store
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


def made_by(source: str) -> Any:
    """What the function of `path/file.py:function` returns. Only run trusted files."""
    path, _, name = source.rpartition(":")
    make = getattr(load_plugin(path), name, None)
    if not callable(make):
        raise BadInput(f"{source!r}: {path} has no function {name!r} that makes a module")
    with importing_from(Path(path).resolve()):
        return make()


def load_decoder(source: str, weights: Path | None = None) -> Decode:
    """The module or function that `path/file.py:function` returns, with weights from a file. Only run trusted files."""
    name = source.rpartition(":")[2]
    module: Decode = made_by(source)
    if isinstance(module, Tensor) or not callable(module):
        raise BadInput(f"{source!r}: {name}() returns {type(module).__name__}, not a torch.nn.Module or a function")
    if weights is not None:
        if not isinstance(module, nn.Module):
            raise BadInput(f"{source!r}: {name}() returns a function, which has no weights to load")
        _load_weights(module, weights)
    return module


def _load_weights(module: nn.Module, weights: Path) -> None:
    try:
        module.load_state_dict(_state(weights))
    except RuntimeError as error:
        raise BadInput(
            f"weights {str(weights)!r} do not fit the module: {str(error).splitlines()[-1].strip()}"
        ) from None


# Under which name training scripts keep the weights in a file with other things in it.
STATES = ("state_dict", "model_state_dict", "model", "module", "net", "weights")
# What wrappers for several devices or for compilation put before every name.
PREFIXES = ("module.", "_orig_mod.")


def _state(weights: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, or of a file of torch.save that holds nothing but data."""
    import safetensors.torch
    import torch
    from safetensors import SafetensorError

    try:
        if weights.suffix not in (".pt", ".pth", ".ckpt", ".bin"):
            return dict(safetensors.torch.load_file(weights))
        found: Any = torch.load(weights, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise BadInput(f"file not found: {str(weights)!r}") from None
    except (SafetensorError, OSError, EOFError) as error:
        raise BadInput(
            f"weights {str(weights)!r} do not fit the module: {str(error).splitlines()[-1].strip()}"
        ) from None
    except Exception as error:  # whatever the restricted reader refuses
        raise BadInput(
            f"weights {str(weights)!r}: only tensors and plain data are read, and the file holds something else; save "
            f"module.state_dict() ({str(error).strip().splitlines()[0]:.150})"
        ) from None
    while isinstance(found, dict) and not _named_tensors(found):
        inner = next((found[name] for name in STATES if isinstance(found.get(name), dict)), None)
        if inner is None:
            raise BadInput(f"weights {str(weights)!r} hold no state dict; they have {', '.join(map(str, found))}")
        found = inner
    if not isinstance(found, dict):
        raise BadInput(f"weights {str(weights)!r} hold a {type(found).__name__}; a state dict is needed")
    for prefix in PREFIXES:
        if all(name.startswith(prefix) for name in found):
            found = {name.removeprefix(prefix): tensor for name, tensor in found.items()}
    return found


def _named_tensors(state: dict[Any, Any]) -> bool:
    return bool(state) and all(isinstance(name, str) and isinstance(part, Tensor) for name, part in state.items())
