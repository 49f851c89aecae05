"""Dataclasses to plain data and arrays, and back: what JSON and one .npz file can hold.

A tree of plain data holds everything except the contents of tensors, which go into `arrays` under their path. The tree
has each tensor's type and shape, so that a value can be rebuilt from the tree alone, with tensors without contents.
Values are rebuilt from the types that the dataclasses declare: nothing that was read is ever run.
"""

import dataclasses
import io
import math
import struct
import types
import typing
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

Arrays = dict[str, np.ndarray]
# Of all arrays in a file, unpacked; and the axes of one.
MAX_ARRAY_BYTES = 2**32
MAX_AXES = 32
SIMPLE = frozenset([str, int, float, bool])
MISSING = object()


def to_plain(value: Any, arrays: Arrays, inline: Sequence[str] = (), path: str = "") -> Any:
    """Plain data for a value made of dataclasses, mappings, tuples, lists, tensors, numbers, text and None.

    - `arrays`: filled with the contents of tensors, by path ("/layers/image/geometry/metric").
    - `inline`: beginnings of paths whose tensors stay in the tree, as lists: short ones that a reader wants at once.

    Numbers that are not finite become None. Tuple keys of mappings are joined by "*", keys with a label become it.

    >>> arrays = {}
    >>> to_plain({("x", "y"): torch.ones(2), "n": 3}, arrays)
    {'x*y': {'tensor': 'float32', 'shape': [2]}, 'n': 3}
    >>> list(arrays)
    ['/x*y']
    """
    if type(value) is float:  # first, since most values are numbers and words
        return value if math.isfinite(value) else None
    if value is None or type(value) in SIMPLE:
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {_text(key): to_plain(part, arrays, inline, f"{path}/{_text(key)}") for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(part, arrays, inline, f"{path}/{index}") for index, part in enumerate(value)]
    if isinstance(value, Tensor):
        note = {"tensor": str(value.dtype).removeprefix("torch."), "shape": list(value.shape)}
        if path.startswith(tuple(inline)):
            return {**note, "values": to_plain(value.detach().flatten().tolist(), {})}
        arrays[path] = value.detach().cpu().numpy()
        return note
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def from_plain(kind: Any, data: Any, arrays: Arrays) -> Any:
    """The value of this type that `to_plain` turned into `data` and `arrays`.

    A field that the data lack (since it was added later) takes its default. A tensor that `arrays` lack is made on the
    "meta" device: it has its type and shape but no contents.
    """
    return _reader(kind)(data, arrays, "")


Reader = Callable[[Any, Arrays, str], Any]


@cache
def _reader(kind: Any) -> Reader:
    """What `from_plain` does with data of a type, decided once per type: a diagnosis has a thousand values."""
    content = _content_reader(kind)

    def read(data: Any, arrays: Arrays, path: str) -> Any:
        if path in arrays:
            return torch.from_numpy(arrays[path])
        if isinstance(data, dict) and isinstance(data.get("tensor"), str):
            return _tensor(data)
        return content(data, arrays, path)

    return read


def _content_reader(kind: Any) -> Reader:
    """The reader of data that are not a tensor."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        first = _content_reader(_first(inner))
        return lambda data, arrays, path: None if data is None else first(data, arrays, path)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _dataclass_reader(kind)
    if origin in (dict, Mapping):
        part_reader = _reader(inner[1])
        return lambda data, arrays, path: {
            _key(inner[0], key): part_reader(part, arrays, f"{path}/{key}") for key, part in data.items()
        }
    if origin in (tuple, list, Sequence):
        return _sequence_reader(origin, inner)
    if kind is float:
        return lambda data, arrays, path: math.nan if data is None else data
    return lambda data, arrays, path: data


def _first(options: Sequence[Any]) -> Any:
    """The type of an optional value."""
    return next(option for option in options if option is not type(None))


def _sequence_reader(origin: Any, inner: tuple[Any, ...]) -> Reader:
    same = origin is not tuple or inner[-1] is Ellipsis
    readers = [_reader(part) for part in inner if part is not Ellipsis]

    def read(data: Any, arrays: Arrays, path: str) -> Any:
        parts = [readers[0 if same else index](part, arrays, f"{path}/{index}") for index, part in enumerate(data)]
        return parts if origin is list else tuple(parts)

    return read


def _is_leaf(kind: Any) -> bool:
    """Whether numbers and words are read as they are."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _is_leaf(_first(inner))
    return origin not in (dict, Mapping, tuple, list, Sequence) and not dataclasses.is_dataclass(kind)


def _dataclass_reader(kind: type) -> Reader:
    hints = typing.get_type_hints(kind)
    fields = [
        (field.name, _reader(hints[field.name]), _is_leaf(hints[field.name]), field.init)
        for field in dataclasses.fields(kind)
    ]

    def read(data: Any, arrays: Arrays, path: str) -> Any:
        parts = {}
        for name, reader, leaf, _ in fields:
            part = data.get(name, MISSING)
            if leaf and type(part) in SIMPLE:  # as most are
                parts[name] = part
            elif part is not MISSING or f"{path}/{name}" in arrays:
                parts[name] = reader(part, arrays, f"{path}/{name}")
        if len(parts) < len(fields):  # the constructor supplies defaults, and derives the fields that it derives
            return kind(**{name: parts[name] for name, *_, init in fields if init and name in parts})
        # Otherwise they are restored as they were: to derive them again would need tensors that may have no contents.
        value: Any = object.__new__(kind)
        for name, part in parts.items():
            object.__setattr__(value, name, part)
        return value

    return read


def _tensor(note: Mapping[str, Any]) -> Tensor:
    """A tensor from its note in the tree: with the values that are there, or on the "meta" device."""
    dtype: torch.dtype = getattr(torch, note["tensor"])
    if "values" not in note:
        return _without_contents(dtype, tuple(note["shape"]))
    numbers = [math.nan if number is None else number for number in note["values"]]
    return torch.tensor(numbers, dtype=dtype).reshape(note["shape"])


@lru_cache(maxsize=1000)  # they cannot differ, and thousands of runs have the same
def _without_contents(dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def _text(key: Any) -> str:
    """A mapping's key as text; a value with a label is written by its label."""
    if type(key) is str:
        return key
    return "*".join(key) if isinstance(key, tuple) else str(getattr(key, "label", key))


def _key(kind: Any, text: str) -> Any:
    """The key that was written: a tuple of words where the mapping declares one, a number, or the text itself."""
    if typing.get_origin(kind) is tuple:
        return tuple(text.split("*"))
    return int(text) if kind is int else text


def pack_arrays(arrays: Arrays) -> bytes:
    """The arrays as the contents of a compressed .npz file: the same arrays give the same bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # dated 1980, unlike what numpy.savez writes
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
    return content.getvalue()


def unpack_arrays(content: bytes, most: int = MAX_ARRAY_BYTES) -> Arrays:
    """The arrays of a .npz file's contents; ValueError if it is not one, or holds anything but plain arrays.

    The sizes that the file declares are compared with each other, and their sum with `most`, before anything is
    unpacked: a small file may declare terabytes.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            total = sum(entry.file_size for entry in entries)
            if total > most:
                raise ValueError(f"its arrays would take {total} bytes; {most} are allowed")
            return {entry.filename.removesuffix(".npy"): _array(archive, entry) for entry in entries}
    except (OSError, EOFError, KeyError, AttributeError, NotImplementedError, RuntimeError, struct.error) as error:
        raise ValueError(f"not a file of arrays: {error}") from None
    except (zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"not a file of arrays: {error}") from None


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    """One array, if its header declares as many bytes as follow it."""
    content = archive.read(entry)
    (length,) = struct.unpack_from("<I" if content[6:7] > b"\x01" else "<H", content, 8)
    start = length + (12 if content[6:7] > b"\x01" else 10)
    shape, in_columns, dtype = _header(content[:start])
    if dtype.hasobject:
        raise ValueError(f"{entry.filename}: holds Python objects, which are not read")
    if math.prod(shape) * dtype.itemsize != len(content) - start or len(shape) > MAX_AXES:
        raise ValueError(f"{entry.filename}: {len(content) - start} bytes for {dtype} of shape {shape}")
    array = np.frombuffer(content, dtype, offset=start).copy()
    return array.reshape(shape, order="F" if in_columns else "C")


@lru_cache(maxsize=1000)  # the arrays of thousands of runs have the same headers, and reading one is slow
def _header(content: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    return npy_header(io.BytesIO(content))


def npy_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether column by column, and type from the beginning of a .npy file; ValueError if it is none."""
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in read:
        raise ValueError(f"a .npy file of version {version}, which is not read")
    return read[version](file)
