"""A stored run as a row of a listing, and how to tell that its files have not changed since the row was made."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Status = Literal["done", "failed", "damaged", "missing"]
# What is a cell of a table as it is.
SIMPLE = frozenset([str, int, float, bool, type(None)])


@dataclass(frozen=True)
class Record:
    """A run's row in a listing, whatever its state: everything but its weights.

    - `status`: "missing" for a run that is not in the store; the store itself gives none of these.
    - `problem`: why it failed, or what is damaged.
    """

    run_id: str
    status: Status
    spec: Mapping[str, Any]
    provenance: Mapping[str, Any]
    measures: Mapping[str, Mapping[str, Any]]
    problem: str = ""

    def row(self) -> dict[str, Any]:
        """The record as one flat table: `decoder.depth`, `error.heldout_mse`."""
        names = {"run_id": self.run_id, "status": self.status}
        row: dict[str, Any] = dict(names)
        _add_flat(row, self.spec, "")
        _add_flat(row, self.measures, "")
        row |= names  # a stranger's spec may have such fields
        row |= {name: self.provenance.get(name) for name in ("seconds", "cpu_seconds")}
        row["problem"] = self.problem
        return row


def flatten(data: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables as one, with dotted names.

    >>> flatten({"decoder": {"kind": "cnn", "depth": 4}, "seed": 0})
    {'decoder.kind': 'cnn', 'decoder.depth': 4, 'seed': 0}
    """
    flat: dict[str, Any] = {}
    _add_flat(flat, data, "")
    return flat


def _add_flat(flat: dict[str, Any], data: Mapping[str, Any], prefix: str) -> None:
    """Written for speed: the rows of a large store have a million values."""
    for key, value in data.items():
        kind = type(value)
        if kind in SIMPLE:
            flat[prefix + key] = value
        elif kind is dict or isinstance(value, Mapping):
            _add_flat(flat, value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = json.dumps(value) if isinstance(value, list) else value


class Signature(NamedTuple):
    """What the file system says about a run's files; `newest` is when one of them last changed, in seconds."""

    text: str
    newest: float


def signature(folder: str) -> Signature:
    """Name, size and time of the last change of every file in a run's folder.

    The time is the one that nobody can set: it is new whenever a file's contents, name or any other time is.
    """
    marks, newest, folders = [], 0, [folder]
    for path in folders:
        inside = path[len(folder) :]
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        marks.append(f"{inside}/{entry.name}/")
                        if path is folder:  # a run's folder has folders of files, and nothing deeper
                            folders.append(entry.path)
                        continue
                    status = entry.stat(follow_symlinks=False)
                    changed = status.st_ctime_ns
                    marks.append(f"{inside}/{entry.name} {status.st_size} {changed}")
                    if changed > newest:
                        newest = changed
        except OSError:
            marks.append(f"{inside}/ unreadable")
    marks.sort()
    text = "\0".join(marks).encode(errors="surrogateescape")
    return Signature(hashlib.blake2b(text, digest_size=16).hexdigest(), newest / 1e9)
