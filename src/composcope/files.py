"""Writing a file so that a reader never sees half of it, and a crash never loses a name."""

import hashlib
import os
import uuid
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Replace the file's contents in one step: write a temporary file beside it, sync, rename, sync the folder.

    The folder must exist. Whatever happens on the way, the path holds either its old contents or all of the new.
    """
    target = Path(path)
    # The temporary file is in the same folder, since a rename is atomic only within one file system.
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # otherwise the rename may reach the disk before the contents do
        os.replace(temporary, target)
        sync_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make renames within a folder survive a power failure; nothing where folders cannot be opened (Windows)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256(content: bytes) -> str:
    """The checksum under which stored contents are known."""
    return hashlib.sha256(content).hexdigest()


def create(path: Path, content: bytes) -> bool:
    """Create a file; False if there is one already. Of several processes exactly one succeeds, also over a network."""
    try:
        with open(path, "xb") as file:
            file.write(content)
    except FileExistsError:
        return False
    return True


def make_folder(folder: Path) -> None:
    """Create a folder, unless there is one; OSError if there is something else, for example a link."""
    try:
        os.mkdir(folder)
    except FileExistsError:
        if folder.is_symlink() or not folder.is_dir():
            raise
