"""What is remembered between commands only to save time, in the user's cache folder.

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


def cache_folder(name: str) -> Path | None:
    """The user's own folder of this name; None if there is none that only the user can write to."""
    try:
        home = Path.home()
        around = home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"
        folder = Path(os.environ.get("XDG_CACHE_HOME") or around) / "composcope" / name
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.lstat()
    except (OSError, RuntimeError):
        return None
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        return None
    return folder


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
    for folder, _, names in os.walk(Path(__file__).parent.parent):
        for path in [f"{folder}/{name}" for name in names if name.endswith(".py")]:
            status = os.stat(path)
            marks.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(sorted(marks))
