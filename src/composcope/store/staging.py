"""Folders that appear in a store in one step: filled under a temporary name and renamed."""

import errno
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, runtime_checkable

from composcope.files import is_regular, make_folder, sync_folder, write_synced
from composcope.store.leases import Leases

STAGING = ".staging-"
# A half-written folder without a lease this old belongs to a process that was killed: writing one takes seconds.
STALE_SECONDS = 3600
# Moving a folder into its place fails while another process does the same; more often than this is not chance.
MOST_TRIES = 20
EXISTS = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)


@runtime_checkable
class Runs(Protocol):
    """What knows which runs are finished: the store."""

    def has(self, run_id: str) -> bool: ...


class Staging:
    """Adds the folders of runs to a store's folder."""

    def __init__(self, folder: Path, leases: Leases, runs: Runs) -> None:
        self.folder, self.leases, self.runs = folder, leases, runs

    def add(self, run_id: str, files: Mapping[str, bytes]) -> None:
        """Add a run's folder in one step; a finished run stays as it is. OSError says why it is not possible.

        The rename fails if a folder of that name exists, from a failed run or another process: a finished run is left
        alone, any other is moved away, and we try again.
        """
        make_folder(self.folder, parents=True)
        with self.temporary(run_id) as staging:
            for name, content in files.items():
                if (staging / name).parent != staging:
                    make_folder((staging / name).parent)
                write_synced(staging / name, content)
                sync_folder((staging / name).parent)
            for _ in range(MOST_TRIES):
                if self.runs.has(run_id) or self._moved(staging, run_id):
                    return
                self.remove_unfinished(run_id)
        raise OSError(errno.EEXIST, f"{self.folder / run_id} exists, is not a finished run and cannot be moved away")

    def _moved(self, staging: Path, run_id: str) -> bool:
        try:
            os.rename(staging, self.folder / run_id)
        except OSError as error:
            if error.errno in EXISTS:
                return False
            raise
        sync_folder(self.folder)  # otherwise a power failure may forget the new name
        return True

    def remove_unfinished(self, run_id: str) -> None:
        """Move an unfinished run away, but put it back if another process has finished it meanwhile.

        Renaming before looking is what makes this safe: once the folder has our name nobody else can change it, so what
        `done.json` says cannot become wrong between the look and the removal.
        """
        with self.temporary(run_id) as away:
            try:
                if not self.runs.has(run_id):
                    os.rename(self.folder / run_id, away / "replaced")
                    if is_regular(away / "replaced" / "done.json"):
                        os.rename(away / "replaced", self.folder / run_id)
            except OSError as error:
                if error.errno not in (errno.ENOENT, *EXISTS):  # another process was faster
                    raise

    @contextmanager
    def temporary(self, name: str) -> Iterator[Path]:
        """A temporary folder in the store: a rename is atomic only within one file system."""
        staging = self.folder / f"{STAGING}{name}-{uuid.uuid4().hex}"
        with self.leases.take(staging.name):  # nobody else removes it while we live
            staging.mkdir()
            try:
                yield staging
            finally:
                shutil.rmtree(staging, ignore_errors=True)

    def remove_leftovers(self, now: float) -> None:
        """Remove half-written folders of processes that died. `now`: the time by the clock of the file system."""
        leftovers = [entry.name for entry in os.scandir(self.folder) if entry.name.startswith(STAGING)]
        for name in self.leases.dead(leftovers):
            with suppress(FileNotFoundError):  # another process's, finished meanwhile
                # Earlier versions took no lease for them.
                if self.leases.known(name) or now - (self.folder / name).stat().st_mtime > STALE_SECONDS:
                    shutil.rmtree(self.folder / name, ignore_errors=True)
                    self.leases.forget(name)
