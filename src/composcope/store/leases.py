"""Who is doing which run: an exclusive file with a heartbeat, so that a run is rarely done twice.

    .leases/<name>    the holder; its modification time is the heartbeat

Creating the file succeeds for one process only, also on network file systems. That a run is stored once does not rest
on leases: adding it is atomic and keeps the first (`Staging.add`). So a lease may end early, and the work be done
twice, where a holder cannot renew it for more than a minute; docs/stores.md says what is promised.
"""

import json
import os
import platform
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from composcope.files import create, make_folder

HEARTBEAT_SECONDS = 5.0
# The lease of another machine whose heartbeat does not change while it is watched for this long belongs to a dead
# process. No clock is compared with another; network file systems may show a new time a minute late.
SILENT_SECONDS = 75.0


class _Lease(NamedTuple):
    """A lease file as it was read."""

    holder: str
    heartbeat: int


class Leases:
    """The leases of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / ".leases"

    @contextmanager
    def take(self, name: str) -> Iterator[bool]:
        """True while this process holds the lease of this name, False if another live process does.

        What the lease guards may have been finished by an earlier holder, so look again after taking it.
        """
        path, holder = self.folder / name, json.dumps(_this_process() | {"token": uuid.uuid4().hex})
        if not self._acquire(path, holder):
            yield False
            return
        released = threading.Event()
        beat = threading.Thread(target=_beat, args=(path, released), name=f"lease {name}", daemon=True)
        beat.start()
        try:
            yield True
        finally:
            released.set()
            beat.join()
            lease = _read(path)
            if lease is not None and lease.holder == holder:  # otherwise it was taken over
                path.unlink(missing_ok=True)

    def _acquire(self, path: Path, holder: str) -> bool:
        make_folder(self.folder)
        lease = _read(path)
        if lease is not None:
            if _lives(path, lease):
                return False
            self._remove(path, lease)
        return create(path, holder.encode())

    def _remove(self, path: Path, dead: _Lease) -> None:
        """Remove the lease of a dead process; one that another process took over meanwhile is put back."""
        away = self.folder / f".{uuid.uuid4().hex}"
        with suppress(FileNotFoundError):  # another process was faster
            os.rename(path, away)
            moved = _read(away)
            if moved is not None and moved.holder != dead.holder:
                with suppress(FileExistsError):
                    os.link(away, path)
            away.unlink()


def _read(path: Path) -> _Lease | None:
    """The lease, None if there is none; opened, so that a network file system asks its server."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    try:
        return _Lease(os.read(descriptor, 4096).decode(errors="replace"), os.fstat(descriptor).st_mtime_ns)
    finally:
        os.close(descriptor)


def _lives(path: Path, lease: _Lease) -> bool:
    """Whether the holder lives: by the process table on this machine, otherwise by its heartbeat."""
    here = _lives_here(lease.holder)
    if here is not None:
        return here
    end = time.monotonic() + SILENT_SECONDS
    while time.monotonic() < end:
        time.sleep(min(0.2, SILENT_SECONDS / 5))
        if _read(path) != lease:
            return True
    return False


def _beat(path: Path, released: threading.Event) -> None:
    """Renew the heartbeat until the lease is released."""
    while not released.wait(HEARTBEAT_SECONDS):
        with suppress(OSError):  # a network that fails for a moment; if it lasts, the lease ends by itself
            os.utime(path)


@cache
def _machine() -> str:
    """A name for the process table: containers on one host have different ones."""
    parts = [platform.node()]
    with suppress(OSError):  # not Linux
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def _this_process() -> dict[str, object]:
    return {"machine": _machine(), "pid": os.getpid(), "started": _started(os.getpid())}


def _started(pid: int) -> str | None:
    """When the process of this id started, in ticks since the machine did; None if there is none."""
    try:
        # The name of the program, in brackets, may contain spaces.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] in "ZX" else fields[19]  # a zombie has ended
    except (OSError, IndexError):
        return None


def _lives_here(holder: str) -> bool | None:
    """Whether the holder is a live process of this machine; None if it is not known to be of this machine."""
    try:
        data = json.loads(holder)
        pid, started = int(data["pid"]), data["started"]
        if data["machine"] != _machine() or started is None:
            return None
    except (ValueError, TypeError, KeyError):
        return None  # not written completely yet, or by something else: the heartbeat decides
    return _started(pid) == started
