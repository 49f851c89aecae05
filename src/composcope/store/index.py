"""What large stores remember between commands: a row per run, so that a listing need not read every file again.

The folders of a store stay the truth. A row counts only while the signature of the run's files is the one that it was
made from, so an index that is lost, old or damaged costs time and nothing else.
"""

import contextlib
import gc
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, Self, TypeVar

from composcope.store.records import Record
from composcope.user_cache import cache_folder_or_none, package_code, remove_unused

# Reading fewer runs takes a fraction of a second.
MIN_RUNS = 200
# A file that changed this recently may change again without a new time: clocks of file systems tick slowly.
SETTLED_SECONDS = 2.0

T = TypeVar("T")


@dataclass(frozen=True)
class Entry(Generic[T]):
    """What is remembered of a run. `verified`: the checksums of all files were compared."""

    signature: str
    verified: bool
    content: T


class Index:
    """What is remembered of one store."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, store: Path, runs: int) -> Self | None:
        """The index of a store; None for a store with few runs, or if the user has no folder for caches."""
        folder = cache_folder_or_none("stores")
        if runs < MIN_RUNS or folder is None:
            return None
        name = hashlib.sha256(f"{os.path.realpath(store)}\n{package_code()}".encode()).hexdigest()[:24]
        return cls(folder / f"{name}.sqlite")

    def records(self) -> dict[str, Entry[Record]]:
        """The records by run; none of an index that cannot be read."""
        return self._read("record", lambda fields: Record(**fields))

    def rows(self) -> dict[str, Entry[dict[str, Any]]]:
        """The same as rows of a table, which are kept flat because flattening thousands takes longer than reading."""
        return self._read("row", lambda row: row)

    def _read(self, column: str, made: Callable[[dict[str, Any]], T]) -> dict[str, Entry[T]]:
        try:
            with self._open() as database:
                lines = database.execute(f"select run_id, signature, verified, {column} from runs").fetchall()
        except (sqlite3.Error, OSError):
            return {}
        try:
            # Read as one text, which is faster: keys that recur are made once.
            contents = json.loads(f"[{','.join([text for *_, text in lines])}]")
            return {
                run_id: Entry(signature, bool(verified), made(content))
                for (run_id, signature, verified, _), content in zip(lines, contents, strict=True)
            }
        except (ValueError, TypeError):
            self._remove()
            return {}

    def write(self, entries: Mapping[str, Entry[Record]]) -> None:
        """Add runs, or replace them; what cannot be written is forgotten."""
        lines = [
            (run_id, entry.signature, entry.verified, json.dumps(vars(entry.content)), json.dumps(entry.content.row()))
            for run_id, entry in entries.items()
        ]
        with contextlib.suppress(sqlite3.Error, OSError), self._open() as database:
            database.executemany("insert or replace into runs values (?, ?, ?, ?, ?)", lines)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """The database in a transaction; one that is damaged is removed, to be made anew the next time."""
        if not self.path.exists():
            remove_unused(self.path.parent)
        try:
            with closing(sqlite3.connect(self.path, timeout=10)) as database:
                database.execute("pragma synchronous = off")  # it can be made again
                database.execute(
                    "create table if not exists runs (run_id text primary key, signature text, verified integer, "
                    "record text, row text)"
                )
                with database:
                    yield database
        except sqlite3.OperationalError:
            raise  # busy, or the disk is full
        except sqlite3.DatabaseError:
            self._remove()
            raise

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink()


@contextmanager
def without_collections() -> Iterator[None]:
    """Without searches for cycles of garbage: rows have none, and each search would visit all rows made so far."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


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


def settled(signature: Signature) -> bool:
    """Whether a later change of the files is sure to change the signature."""
    return signature.newest < time.time() - SETTLED_SECONDS
