"""Diagnoses of stored runs and of modules in users' files."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from torch import nn

from composcope.diagnosis import Diagnosis, diagnose, load_diagnosis, save_diagnosis
from composcope.diagnosis.whole import OnProgress
from composcope.encodings import Encoding
from composcope.errors import BadInput
from composcope.experiments.plugins import load_plugin
from composcope.experiments.run import build, load
from composcope.experiments.spec import Spec, read_toml
from composcope.experiments.store import Store
from composcope.holdouts import Holdout
from composcope.tasks.base import Task

# The version of what `measure_run` keeps; raised when a measure's definition changes.
VERSION = 1


def diagnose_run(store: Store, run_id: str, on_progress: OnProgress | None = None) -> Diagnosis:
    """The diagnosis of a stored run, beside that of its module before training."""
    result = load(store, run_id)
    spec = result.spec
    drawer = spec.decoder.drawer(result.module)
    if drawer is None:
        raise BadInput(f"run {run_id}: {type(spec.decoder).__name__} draws no images, so there is nothing to diagnose")
    untrained = spec.decoder.drawer(build(spec))
    return diagnose(
        drawer, spec.task, spec.holdout, spec.encoding, untrained=untrained, seed=spec.seed, on_progress=on_progress
    )


def measure_run(store: Store, run_id: str, on_progress: OnProgress | None = None) -> Diagnosis:
    """Diagnose a stored run and keep it beside the run: with its maps, and as the measures named "diagnosis"."""
    diagnosis = diagnose_run(store, run_id, on_progress)
    save_diagnosis(diagnosis, store.diagnosis_folder(run_id))
    store.save_measures(run_id, "diagnosis", VERSION, diagnosis.numbers())
    return diagnosis


def is_diagnosed(store: Store, run_id: str) -> bool:
    """Whether an up-to-date diagnosis is kept beside the run."""
    known = "diagnosis" in store.measures(run_id, {"diagnosis": VERSION})
    return known and (store.diagnosis_folder(run_id) / "numbers.json").is_file()


def stored_diagnosis(store: Store, run_id: str) -> Diagnosis:
    """The diagnosis kept beside the run; made and kept if there is none, or none that can be read."""
    if is_diagnosed(store, run_id):
        with suppress(BadInput):
            return load_diagnosis(store.diagnosis_folder(run_id))
    return measure_run(store, run_id)


def world(path: Path) -> tuple[Task, Holdout, Encoding]:
    """What a decoder of the user's own was asked to draw: a spec's task, holdout and encoding, without the rest."""
    tables = read_toml(path)
    needed: dict[str, Any] = {
        name: tables[name] for name in ("version", "task", "holdout", "encoding") if name in tables
    }
    asked = Spec.from_dict({**needed, "decoder": {"kind": "mlp"}, "sampling": {"kind": "everything"}})
    return asked.task, asked.holdout, asked.encoding


def load_decoder(source: str, weights: Path | None = None) -> nn.Module:
    """The module that `path/file.py:function` makes, with weights from a safetensors file. Only run files you trust."""
    path, _, name = source.rpartition(":")
    make = getattr(load_plugin(path), name, None)
    if not callable(make):
        raise BadInput(f"{source!r}: {path} has no function {name!r} that makes a module")
    module = make()
    if not isinstance(module, nn.Module):
        raise BadInput(f"{source!r}: {name}() gives {type(module).__name__}, not a torch.nn.Module")
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
