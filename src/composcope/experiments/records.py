"""A stored run as a row of a listing, and how to tell that its files have not changed since the row was made."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["done", "failed", "damaged", "missing"]


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
        row = {"run_id": self.run_id, "status": self.status, **flatten(self.spec), **flatten(self.measures)}
        times = {name: self.provenance.get(name) for name in ("seconds", "cpu_seconds")}
        return {**row, **times, "problem": self.problem}


def flatten(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, with dotted names.

    >>> flatten({"decoder": {"kind": "cnn", "depth": 4}, "seed": 0})
    {'decoder.kind': 'cnn', 'decoder.depth': 4, 'seed': 0}
    """
    flat: dict[str, Any] = {}
    for key, value in data.items():
        if value is None or isinstance(value, str | int | float):  # first, since most values are: a store has thousands
            flat[prefix + key] = value
        elif isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = json.dumps(value) if isinstance(value, list) else value
    return flat


@dataclass(frozen=True)
class Signature:
    """What the file system says about a run's files; `newest` is when one of them last changed, in seconds."""

    text: str
    newest: float


def signature(folder: str) -> Signature:
    """Name, size and time of the last change of every file in a run's folder.

    The time is the one that nobody can set: it is new whenever a file's contents, name or any other time is.
    """
    marks, newest, folders = _marks(folder)
    for inner in folders:  # a run's folder has folders of files, and nothing deeper
        more, latest, _ = _marks(inner)
        marks += more
        newest = max(newest, latest)
    text = hashlib.blake2b(repr(marks).encode(errors="surrogateescape"), digest_size=16).hexdigest()
    return Signature(text, newest / 1e9)


def _marks(folder: str) -> tuple[list[tuple[str, int, int]], int, list[str]]:
    marks, newest, folders = [], 0, []
    try:
        for entry in os.scandir(folder):
            status = entry.stat(follow_symlinks=False)
            marks.append((entry.name, status.st_size, status.st_ctime_ns))
            newest = max(newest, status.st_ctime_ns)
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
    except OSError:
        marks.append(("unreadable", 0, 0))
    return sorted(marks), newest, sorted(folders)
