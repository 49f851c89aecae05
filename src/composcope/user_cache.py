"""The user's cache folder: what is kept between commands only to save time.

It is kept there rather than in a store: there it works for stores that cannot be written, needs no locks across a
network, and never comes from a stranger.
"""

import contextlib
import os
import sys
import time
from functools import cache
from pathlib import Path

UNUSED_DAYS = 90


def cache_folder(name: str) -> Path:
    """The folder of this name in $COMPOSCOPE_CACHE or the system's place for caches; made if need be.

    OSError if there is none that only the user can write to: its files are believed, and some are executed.
    """
    folder = _caches() / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "getuid") and not is_private(folder.stat()):
        raise PermissionError(f"{folder} is not private to this user")
    return folder


def cache_folder_or_none(name: str) -> Path | None:
    """The user's own cache folder of this name; None if there is none that only the user can write to."""
    with contextlib.suppress(OSError):
        return cache_folder(name)
    return None


def _caches() -> Path:
    if named := os.environ.get("COMPOSCOPE_CACHE"):
        return Path(named)
    if named := os.environ.get("XDG_CACHE_HOME"):
        return Path(named) / "composcope"
    try:
        home = Path.home()
    except RuntimeError as error:
        raise FileNotFoundError(f"{error} Name a cache folder in COMPOSCOPE_CACHE.") from None
    return (home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache") / "composcope"


def is_private(status: os.stat_result) -> bool:
    """Whether it belongs to this user and nobody else may change it."""
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def remove_unused(folder: Path) -> None:
    """Remove files that nothing was written to for months."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.stat().st_mtime < time.time() - UNUSED_DAYS * 86400:
                path.unlink(missing_ok=True)


@cache
def package_code() -> str:
    """The package's code as the file system sees it: what other code has made is not used."""
    marks = []
    for folder, _, names in os.walk(Path(__file__).parent):
        for path in [f"{folder}/{name}" for name in names if name.endswith(".py")]:
            status = os.stat(path)
            marks.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(sorted(marks))
