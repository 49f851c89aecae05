"""What the runs of a store and the ids of a sweep are remembered by, in the user's cache folder."""

import contextlib
import os
from functools import cache
from pathlib import Path

from composcope.user_cache import cache_folder


def folder_or_none(name: str) -> Path | None:
    """The user's own cache folder of this name; None if there is none that only the user can write to."""
    with contextlib.suppress(OSError):
        return cache_folder(name)
    return None


@cache
def package_code() -> str:
    """The package's code as the file system sees it: what other code has made is not used."""
    marks = []
    for folder, _, names in os.walk(Path(__file__).parent.parent):
        for path in [f"{folder}/{name}" for name in names if name.endswith(".py")]:
            status = os.stat(path)
            marks.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(sorted(marks))
