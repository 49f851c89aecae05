"""Files on disk: written so that a reader never sees half of one and a power failure loses nothing that was reported
as written; read only if they are regular files of a sane size, whoever made them.

All changes to a store go through these functions.
"""

import errno
import hashlib
import os
import stat
import uuid
from pathlib import Path

# More than any file of a store or table that fits into memory.
MAX_BYTES = 2**32


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Replace the file's contents in one step: write a temporary file beside it, sync, rename, sync the folder.

    The folder must exist. Whatever happens on the way, the path holds either its old contents or all of the new.
    """
    target = Path(path)
    # The temporary file is in the same folder, since a rename is atomic only within one file system.
    temporary = target.with_name(f".{uuid.uuid4().hex}")
    try:
        write_synced(temporary, content)  # otherwise the rename may reach the disk before the contents do
        os.replace(temporary, target)
        sync_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_synced(path: Path, content: bytes) -> None:
    """Write a new file whose contents survive a power failure; its name does after `sync_folder`."""
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make renames within a folder survive a power failure; nothing where folders cannot be opened (Windows)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create(path: Path, content: bytes) -> bool:
    """Create a file; False if there is one already. Of several processes exactly one succeeds, also over a network."""
    try:
        with open(path, "xb") as file:
            file.write(content)
    except FileExistsError:
        return False
    return True


def make_folder(folder: Path, parents: bool = False) -> None:
    """Create a folder that survives a power failure, unless there is one; OSError if there is a link or a file.

    - `parents`: create the folders around it too, which may be links.
    """
    if parents and not folder.parent.is_dir():
        make_folder(folder.parent, parents)
    try:
        os.mkdir(folder)
        sync_folder(folder.parent)
    except FileExistsError:
        if (folder.is_symlink() and not parents) or not folder.is_dir():
            raise


def read_regular(path: Path, limit: int = MAX_BYTES, folders: int = 0) -> bytes:
    """The contents of a regular file of at most `limit` bytes; OSError says what it is instead.

    Links, devices and pipes are refused, since reading one may block forever or show another file.

    - `folders`: how many of the folders around it must not be links either.
    """
    folder = str(path)
    for _ in range(folders):
        folder = os.path.dirname(folder)
        if os.path.islink(folder):
            raise OSError(errno.ELOOP, f"{os.path.basename(folder)} is a link; a folder is needed")
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a link; a regular file is needed") from None
        raise
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if status.st_size > limit:
            raise OSError(errno.EFBIG, f"it has {status.st_size} bytes; {limit} are allowed")
        return file.read(status.st_size)


def is_regular(path: Path | str) -> bool:
    """Whether there is a regular file, not reached through a link."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode) and not os.path.islink(os.path.dirname(path))
    except (OSError, ValueError):
        return False


def sha256(content: bytes) -> str:
    """The checksum under which stored contents are known."""
    return hashlib.sha256(content).hexdigest()
