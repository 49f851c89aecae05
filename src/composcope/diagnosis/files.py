"""A diagnosis on disk: `numbers.json` with everything that is a number or a word, `arrays.npz` with the maps.

Both are written under another name and renamed; the first holds the checksum of the second, so that a pair torn apart
is noticed. Values are rebuilt from the types that the diagnosis declares; nothing in the files is run.
"""

import dataclasses
import hashlib
import io
import json
import math
import os
import types
import typing
import uuid
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from composcope.diagnosis.layers import LayerDiagnosis
from composcope.diagnosis.outputs import SuperpositionReport
from composcope.diagnosis.whole import Diagnosis
from composcope.errors import BadInput
from composcope.measures.complexity import Complexity

FORMAT = 1
Arrays = dict[str, np.ndarray]


def save_diagnosis(diagnosis: Diagnosis, folder: str | os.PathLike[str]) -> None:
    """Write `numbers.json` and `arrays.npz` into the folder, which is made if need be."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{str(folder)!r} is no folder that can be written to: {error.strerror}") from None
    arrays: Arrays = {}
    values = to_plain(diagnosis, "", arrays)
    packed = io.BytesIO()
    np.savez_compressed(packed, allow_pickle=False, **arrays)
    content = packed.getvalue()
    body = {"format": FORMAT, "arrays_sha256": hashlib.sha256(content).hexdigest(), "diagnosis": values}
    _write(path / "arrays.npz", content)
    _write(path / "numbers.json", (json.dumps(body, indent=1, allow_nan=False) + "\n").encode())


def load_diagnosis(folder: str | os.PathLike[str]) -> Diagnosis:
    """The diagnosis that `save_diagnosis` wrote."""
    path = Path(folder)
    try:
        body = json.loads((path / "numbers.json").read_bytes())
        content = (path / "arrays.npz").read_bytes()
    except FileNotFoundError as error:
        raise BadInput(f"{str(folder)!r} holds no diagnosis: {Path(str(error.filename)).name} is missing") from None
    except ValueError:
        raise BadInput(f"{str(path / 'numbers.json')!r} is not the JSON that was written") from None
    except OSError as error:
        raise BadInput(f"{str(folder)!r} holds no diagnosis: {error.strerror}") from None
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise BadInput(f"{str(folder)!r} holds no diagnosis of format {FORMAT}")
    if hashlib.sha256(content).hexdigest() != body.get("arrays_sha256"):
        raise BadInput(f"{str(path / 'arrays.npz')!r} is not the file that numbers.json was written with")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        found: Diagnosis = from_plain(Diagnosis, body["diagnosis"], "", arrays)
    except (AttributeError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise BadInput(f"{str(folder)!r} holds a diagnosis that cannot be read: {error}") from None
    return found


def to_plain(value: Any, path: str, arrays: Arrays) -> Any:
    """Numbers and words as plain data; tensors go into `arrays` under their path and leave None behind."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name), f"{path}/{f.name}", arrays) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {_key(key): to_plain(part, f"{path}/{_key(key)}", arrays) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(part, f"{path}/{i}", arrays) for i, part in enumerate(value)]
    if isinstance(value, Tensor):
        arrays[path] = value.detach().cpu().numpy()
        return None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def _key(key: Any) -> str:
    return "*".join(key) if isinstance(key, tuple) else str(key)


def from_plain(kind: Any, data: Any, path: str, arrays: Arrays) -> Any:
    """The value of this type that `to_plain` made plain."""
    if path in arrays:
        return torch.from_numpy(arrays[path])
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        options = [option for option in inner if option is not type(None)]
        return None if data is None else from_plain(options[0], data, path, arrays)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = typing.get_type_hints(kind)
        fields = {f.name: f"{path}/{f.name}" for f in dataclasses.fields(kind)}
        return kind(**{name: from_plain(hints[name], data[name], where, arrays) for name, where in fields.items()})
    if origin is dict:
        words = inner[0] is str
        return {
            key if words else tuple(key.split("*")): from_plain(inner[1], part, f"{path}/{key}", arrays)
            for key, part in data.items()
        }
    if origin is tuple:
        return tuple(from_plain(inner[0], part, f"{path}/{i}", arrays) for i, part in enumerate(data))
    return math.nan if data is None and kind is float else data


def numbers(diagnosis: Diagnosis) -> dict[str, Any]:
    """Every single number by measure, without maps: what a store keeps of a diagnosis. A measure not made is empty."""
    judged, error = diagnosis.verdict, to_plain(diagnosis.error, "", {})
    values = {
        "verdict": {"kind": judged.kind, "score": judged.score, "shares": judged.shares} if judged else {},
        "error": {name: value for name, value in error.items() if name not in ("map", "maps", "by_distance")},
        "by_distance": {
            name: {part.name: getattr(curve, part.name).tolist() for part in dataclasses.fields(curve)}
            for name, curve in diagnosis.error.by_distance.items()
        },
        "superposition": _sums(diagnosis.superposition) if diagnosis.superposition else {},
        "kernels": _scalars(to_plain(diagnosis.kernels, "", {})),
        "complexity": {name: _counts(counted) for name, counted in (diagnosis.complexity or {}).items()},
        **_of_layers(diagnosis.layers),
        "untrained": _of_layers(diagnosis.untrained) if diagnosis.untrained else {},
        "notes": dict(diagnosis.notes),
    }
    plain: dict[str, Any] = to_plain(values, "", {})
    return plain


def _sums(reported: SuperpositionReport) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: part and {"correlation": part.correlation, "control": part.control}
        for name, part in (("parts", reported.parts), ("means", reported.means))
    }
    if reported.blend is not None:
        each = {part.name: getattr(reported.blend, part.name) for part in dataclasses.fields(reported.blend)}
        found["blend"] = {name: values.double().mean().item() for name, values in each.items()}
        found["blend"]["share_nearer_blend"] = reported.blend.share_nearer_blend
    return found


def _counts(counted: Complexity) -> dict[str, float]:
    return {
        "mean": counted.mean,
        "maximum": counted.maximum,
        "mean_to_epsilon": counted.mean_to_epsilon,
        "maximum_to_epsilon": counted.maximum_to_epsilon,
    }


def _scalars(data: dict[str, Any]) -> dict[str, Any]:
    """A plain mapping without the entries that were arrays."""
    return {
        name: part for name, part in data.items() if name not in ("rows", "cosine", "l2", "overlap", "schmidt_values")
    }


def _of_layers(layers: Mapping[str, LayerDiagnosis]) -> dict[str, Any]:
    """The layers' numbers, by measure and then by layer."""
    found: dict[str, Any] = {"geometry": {}, "probes": {}, "tuning": {}, "linear_factorization": {}}
    for name, layer in layers.items():
        shape, tuned, shares = layer.geometry, layer.tuning, layer.linear_factorization
        found["geometry"][name] = shape and {
            "method": shape.method,
            "volume": dataclasses.asdict(shape.volumes),
            "factorization": dataclasses.asdict(shape.factorization),
        }
        found["probes"][name] = {
            factor: dataclasses.asdict(score) for factor, score in (layer.probe or {}).items()
        } or None
        found["tuning"][name] = tuned and {
            "stripe": tuned.mean_stripe,
            "bump": tuned.mean_bump,
            "silent": tuned.silent,
            "units": len(tuned.stripe),
        }
        found["linear_factorization"][name] = shares and {"by_term": shares.by_term, "by_order": list(shares.by_order)}
    return found


def _write(path: Path, content: bytes) -> None:
    """Write under another name and rename, so that a reader never sees half a file."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
