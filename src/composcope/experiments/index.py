"""What large stores remember between commands: a row per run, so that a listing need not read every file again.

The folders of a store stay the truth. A row counts only while the signature of the run's files is the one that it was
made from, so an index that is lost, old or damaged costs time and nothing else. It is kept in the user's cache folder
rather than in the store: there it works for stores that cannot be written, needs no locks across a network, and never
comes from a stranger.
"""

import contextlib
import gc
import hashlib
import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Self

from composcope.experiments.records import Record, Signature

# Reading fewer runs takes a fraction of a second.
FEWEST_RUNS = 200
# A file that changed this recently may change again without a new time: clocks of file systems tick slowly.
SETTLED_SECONDS = 2.0
UNUSED_DAYS = 90


@dataclass(frozen=True)
class Entry:
    """A run's row. `verified`: the checksums of all files were compared."""

    signature: str
    verified: bool
    record: Record


class Index:
    """The rows of one store."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, store: Path, runs: int) -> Self | None:
        """The index of a store; None for a store with few runs, or if the user has no folder for caches."""
        folder = cache_folder()
        if runs < FEWEST_RUNS or folder is None:
            return None
        name = hashlib.sha256(f"{os.path.realpath(store)}\n{_code()}".encode()).hexdigest()[:24]
        return cls(folder / f"{name}.sqlite")

    def read(self) -> dict[str, Entry]:
        """The rows by run; none of an index that cannot be read."""
        entries = {}
        try:
            with self._open() as database:
                for run_id, signature, verified, record in database.execute("select * from runs"):
                    entries[run_id] = Entry(signature, bool(verified), Record(**json.loads(record)))
        except (sqlite3.Error, OSError):
            return {}
        except (ValueError, TypeError):
            self._remove()
            return {}
        return entries

    def write(self, entries: Mapping[str, Entry]) -> None:
        """Add rows, or replace them; what cannot be written is forgotten."""
        rows = [
            (run_id, entry.signature, entry.verified, json.dumps(asdict(entry.record)))
            for run_id, entry in entries.items()
        ]
        with contextlib.suppress(sqlite3.Error, OSError), self._open() as database:
            database.executemany("insert or replace into runs values (?, ?, ?, ?)", rows)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """The database in a transaction; one that is damaged is removed, to be made anew the next time."""
        if not self.path.exists():
            _remove_unused(self.path.parent)
        try:
            with closing(sqlite3.connect(self.path, timeout=10)) as database:
                database.execute("pragma synchronous = off")  # it can be made again
                database.execute(
                    "create table if not exists runs (run_id text primary key, signature text, verified integer, "
                    "record text)"
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


def settled(signature: Signature) -> bool:
    """Whether a later change of the files is sure to change the signature."""
    return signature.newest < time.time() - SETTLED_SECONDS


def cache_folder() -> Path | None:
    """The user's own folder for indexes; None if there is none that only the user can write to."""
    try:
        home = Path.home()
        around = home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"
        folder = Path(os.environ.get("XDG_CACHE_HOME") or around) / "composcope" / "stores"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.lstat()
    except (OSError, RuntimeError):
        return None
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        return None
    return folder


def _remove_unused(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for path in folder.glob("*.sqlite"):
            if path.stat().st_mtime < time.time() - UNUSED_DAYS * 86400:
                path.unlink(missing_ok=True)


@cache
def _code() -> str:
    """The code that makes rows, as the file system sees it: rows of other code are not used."""
    package = Path(__file__).parent.parent
    files = [*(package / "experiments").glob("*.py"), *(package / "diagnosis").glob("*.py")]
    return "\n".join(f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in sorted(files))
