"""A decoder of the user's own, from a file: the module with its weights, and what it was trained to draw."""

from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from composcope.activations import Decode
from composcope.encodings import Encoding
from composcope.errors import BadInput
from composcope.holdouts import Holdout
from composcope.runs.plugins import importing_from, load_plugin
from composcope.runs.spec import Spec, read_toml
from composcope.tasks.base import Task


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
        try:
            module.load_state_dict(_state(weights))
        except RuntimeError as error:
            raise _misfit(weights, error) from None
    return module


def _misfit(weights: Path, error: Exception) -> BadInput:
    return BadInput(f"weights {str(weights)!r} do not fit the module: {str(error).splitlines()[-1].strip()}")


# Under which name training scripts keep the weights in a file with other things in it.
STATES = ("state_dict", "model_state_dict", "model", "module", "net", "weights")
# What wrappers for several devices or for compilation put before every name.
PREFIXES = ("module.", "_orig_mod.")


def _state(weights: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, or of a file of torch.save that holds nothing but data."""
    try:
        if weights.suffix not in (".pt", ".pth", ".ckpt", ".bin"):
            return dict(safetensors.torch.load_file(weights))
        content: Any = torch.load(weights, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise BadInput(f"file not found: {str(weights)!r}") from None
    except (SafetensorError, OSError, EOFError) as error:
        raise _misfit(weights, error) from None
    except Exception as error:  # whatever the restricted reader refuses
        raise BadInput(
            f"weights {str(weights)!r}: only tensors and plain data are read, and the file holds something else; save "
            f"module.state_dict() ({str(error).strip().splitlines()[0]:.150})"
        ) from None
    while isinstance(content, dict) and not _named_tensors(content):
        inner = next((content[name] for name in STATES if isinstance(content.get(name), dict)), None)
        if inner is None:
            raise BadInput(f"weights {str(weights)!r} hold no state dict; they have {', '.join(map(str, content))}")
        content = inner
    if not isinstance(content, dict):
        raise BadInput(f"weights {str(weights)!r} hold a {type(content).__name__}; a state dict is needed")
    for prefix in PREFIXES:
        if all(name.startswith(prefix) for name in content):
            content = {name.removeprefix(prefix): tensor for name, tensor in content.items()}
    return content


def _named_tensors(state: dict[Any, Any]) -> bool:
    return bool(state) and all(isinstance(name, str) and isinstance(part, Tensor) for name, part in state.items())
