"""A diagnosis as files: `numbers.json` with everything that is a number or a word, `arrays.npz` with the maps.

`pack` and `unpack` are also what a store writes and reads.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from composcope.diagnosis.diagnosis import Diagnosis
from composcope.errors import BadInput
from composcope.files import make_folder, read_regular, sha256, write_atomically
from composcope.plain import Arrays, from_plain, pack_arrays, to_plain, unpack_arrays

# Format 1 kept every tensor in the arrays; since 2 the tree has the short curves, and every tensor's type and shape;
# since 3 the tree has a checksum.
FORMAT = 3
READABLE = (1, 2, 3)
MOST_TEXT = 2**27
INLINE = ("/error/by_distance/",)


def pack(diagnosis: Diagnosis) -> tuple[dict[str, Any], bytes]:
    """A tree of plain data and the contents of a .npz file; `unpack` puts them together again."""
    arrays: Arrays = {}
    tree: dict[str, Any] = to_plain(diagnosis, arrays, INLINE)
    return tree, pack_arrays(arrays)


def unpack(tree: Mapping[str, Any], content: bytes | None) -> Diagnosis:
    """The diagnosis that was packed; without the arrays it has its numbers but no maps. ValueError if unreadable."""
    try:
        diagnosis: Diagnosis = from_plain(Diagnosis, tree, {} if content is None else unpack_arrays(content))
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"not a diagnosis: {error}") from None
    return diagnosis


def save_diagnosis(diagnosis: Diagnosis, folder: str | os.PathLike[str]) -> None:
    """Write `numbers.json` and `arrays.npz` into the folder, which is created if necessary."""
    path = Path(folder)
    try:
        if path.is_symlink():
            raise BadInput(f"{str(folder)!r} is a link; name the folder that it leads to")
        make_folder(path, parents=True)
        tree, content = pack(diagnosis)
        body = {
            "format": FORMAT,
            "sha256": _checksum(tree),
            "arrays_sha256": sha256(content),
            "diagnosis": tree,
        }
        write_atomically(path / "arrays.npz", content)
        write_atomically(path / "numbers.json", (json.dumps(body, indent=1, allow_nan=False) + "\n").encode())
    except OSError as error:
        raise BadInput(f"{str(folder)!r} is not a folder that can be written to: {error.strerror}") from None


def _checksum(tree: Any) -> str:
    return sha256(json.dumps(tree, sort_keys=True).encode())


def load_diagnosis(folder: str | os.PathLike[str]) -> Diagnosis:
    """The diagnosis that `save_diagnosis` wrote."""
    path = Path(folder)
    try:
        body = json.loads(read_regular(path / "numbers.json", MOST_TEXT))
        content = read_regular(path / "arrays.npz")
    except FileNotFoundError as error:
        raise BadInput(f"{str(folder)!r} holds no diagnosis: {Path(str(error.filename)).name} is missing") from None
    except (ValueError, RecursionError):
        raise BadInput(f"{str(path / 'numbers.json')!r} is not the JSON that was written") from None
    except OSError as error:
        raise BadInput(f"{str(folder)!r} holds no diagnosis: {error.strerror}") from None
    if not isinstance(body, dict) or body.get("format") not in READABLE:
        raise BadInput(f"{str(folder)!r} holds no diagnosis of a format that this version reads ({READABLE})")
    if body["format"] >= 3 and _checksum(body.get("diagnosis")) != body.get("sha256"):
        raise BadInput(f"{str(path / 'numbers.json')!r} is not what was written: its checksum does not match")
    if sha256(content) != body.get("arrays_sha256"):
        raise BadInput(f"{str(path / 'arrays.npz')!r} is not the file that numbers.json was written with")
    try:
        return unpack(body["diagnosis"], content)
    except (KeyError, ValueError) as error:
        raise BadInput(f"{str(folder)!r} holds a diagnosis that cannot be read: {error}") from None
