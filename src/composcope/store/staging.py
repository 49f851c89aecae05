"""Folders that appear in a store in one step: filled under a temporary name and renamed."""

import errno
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from composcope.files import is_regular, make_folder, sync_folder, write_synced

STAGING = ".staging-"
# A half-written folder this old belongs to a process that was killed: writing one takes seconds.
STALE_SECONDS = 24 * 3600
# Moving a folder into its place fails while another process does the same; more often than this is not chance.
MAX_TRIES = 20
EXISTS = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)


def is_sealed(folder: Path | str) -> bool:
    """Whether the folder has a run that is trained, its files complete."""
    return is_regular(f"{folder}/done.json")


def add_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Add a run's folder in one step; a finished run stays as it is. OSError says why it is not possible.

    The rename fails if a folder of that name exists, from a failed run or another process: a finished run is left
    alone, any other is moved away, and we try again.
    """
    make_folder(path.parent, parents=True)
    with temporary_folder(path) as staging:
        for name, content in files.items():
            if (staging / name).parent != staging:
                make_folder((staging / name).parent)
            write_synced(staging / name, content)
            sync_folder((staging / name).parent)
        for _ in range(MAX_TRIES):
            if is_sealed(path) or _moved(staging, path):
                return
            remove_unfinished(path)
    raise OSError(errno.EEXIST, f"{path} exists, is not a finished run and cannot be moved away")


def _moved(staging: Path, path: Path) -> bool:
    try:
        os.rename(staging, path)
    except OSError as error:
        if error.errno in EXISTS:
            return False
        raise
    sync_folder(path.parent)  # otherwise a power failure may forget the new name
    return True


def remove_unfinished(path: Path) -> None:
    """Move an unfinished run away, but put it back if another process has finished it meanwhile.

    Renaming before looking is what makes this safe: once the folder has our name nobody else can change it, so what
    `done.json` says cannot become wrong between the look and the removal.
    """
    with temporary_folder(path) as away:
        try:
            if not is_sealed(path):
                os.rename(path, away / "replaced")
                if is_sealed(away / "replaced"):
                    os.rename(away / "replaced", path)
        except OSError as error:
            if error.errno not in (errno.ENOENT, *EXISTS):  # another process was faster
                raise


@contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside the path: a rename is atomic only within one file system."""
    staging = path.with_name(f"{STAGING}{path.name}-{uuid.uuid4().hex}")
    staging.mkdir()
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def remove_leftovers(folder: Path, now: float) -> None:
    """Remove half-written folders of processes that died. `now`: the time by the clock of the file system."""
    for path in folder.glob(f"{STAGING}*"):
        with suppress(FileNotFoundError):  # another process's, finished meanwhile
            if now - path.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(path, ignore_errors=True)
