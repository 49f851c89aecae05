"""Who is at work on what in a shared folder: leases with a heartbeat, safe between hosts.

    .leases/<name>.<n>    one small file per lease; its modification time is the heartbeat

A lease is taken by creating its file, which succeeds for one process only, also on network file systems. A lease whose
holder died is taken over by creating the file of the next number; the highest number is the holder's. No clock of
another host is believed: a holder on this machine is looked up in the process table, and a heartbeat of any other is
compared with the time that the file system gives a file touched just now. One that looks silent is watched first.
"""

import json
import os
import platform
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from composcope.files import create, make_folder

HEARTBEAT_SECONDS = 5.0
# A heartbeat this old, or this far in the future, is doubtful. Network file systems may show it a minute late.
DOUBTFUL_SECONDS = 75.0
# A doubtful heartbeat that does not change while it is watched for this long belongs to a dead process.
WATCH_SECONDS = 3 * HEARTBEAT_SECONDS


@dataclass(frozen=True)
class _Sight:
    """A lease file as it was seen: its number, its holder and its last heartbeat."""

    number: int
    holder: str
    heartbeat: int

    @property
    def identity(self) -> tuple[int, str]:
        return self.number, self.holder


class Leases:
    """The leases of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / ".leases"

    @contextmanager
    def take(self, name: str) -> Iterator[bool]:
        """True while this process holds the lease of this name, False if another live process does.

        What the lease guards may have been finished by an earlier holder, so look again after taking it.
        """
        number = self.acquire(name)
        if number is None:
            yield False
            return
        with self.holding(name, number):
            yield True

    @contextmanager
    def holding(self, name: str, number: int) -> Iterator[None]:
        """The heartbeat of a lease that was acquired; the lease is released at the end."""
        released = threading.Event()
        path = self._path(name, number)
        beat = threading.Thread(target=_beat, args=(path, released), name=f"lease {name}", daemon=True)
        beat.start()
        try:
            yield
        finally:
            released.set()
            beat.join()
            # Upwards, so that at every moment the highest file that is left is the holder's.
            for old in range(1, number + 1):
                with suppress(OSError):  # what cannot be removed ends by itself
                    self._path(name, old).unlink(missing_ok=True)

    def dead(self, names: Sequence[str]) -> list[str]:
        """Those of the names that no live process holds; doubtful holders are watched, all at the same time."""
        sights = {name: self._look(name) for name in names}
        held = {name: sight for name, sight in sights.items() if sight is not None}
        lively = self._lively(held)
        return [name for name in names if name not in lively]

    def known(self, name: str) -> bool:
        """Whether there is a lease of this name, of a live process or a dead one."""
        return bool(self._numbers(name))

    def forget(self, name: str) -> None:
        """Remove the lease of a dead process whose name nobody takes again."""
        for number in self._numbers(name):
            self._path(name, number).unlink(missing_ok=True)

    def acquire(self, name: str) -> int | None:
        """The number under which this process now holds the lease, or None."""
        make_folder(self.folder)
        before = self._look(name)
        if before is not None and self._lively({name: before}):
            return None
        number = 1 if before is None else before.number + 1
        path = self._path(name, number)
        if not create(path, json.dumps(_me() | {"token": uuid.uuid4().hex}).encode()):
            return None  # another process was faster
        # Meanwhile the lease may have been taken over, released and taken again: then ours is not the next one.
        follows = number == 1 or (
            (earlier := _read(path, number - 1)) and before and earlier.identity == before.identity
        )
        if max(self._numbers(name), default=0) == number and follows:
            return number
        path.unlink(missing_ok=True)
        return None

    def _lively(self, held: dict[str, _Sight]) -> set[str]:
        """The names of the leases whose holder lives."""
        if not held:
            return set()
        alive, doubtful, now = set(), {}, self._now()
        for name, sight in held.items():
            here = _runs_here(sight.holder)
            if here or (here is None and abs(now - sight.heartbeat) < DOUBTFUL_SECONDS * 1e9):
                alive.add(name)
            elif here is None:
                doubtful[name] = sight
        end = time.monotonic() + WATCH_SECONDS
        while doubtful and time.monotonic() < end:
            time.sleep(min(0.2, WATCH_SECONDS / 5))
            changed = {name for name, sight in doubtful.items() if self._look(name) != sight}
            alive |= {name for name in changed if self._look(name) is not None}
            doubtful = {name: sight for name, sight in doubtful.items() if name not in changed}
        return alive

    def _now(self) -> int:
        """The time by the clock that gives the files of this folder their times, in nanoseconds."""
        path = self.folder / f".clock-{uuid.uuid4().hex}"
        make_folder(self.folder)
        create(path, b"")
        try:
            return path.stat().st_mtime_ns
        finally:
            path.unlink(missing_ok=True)

    def _look(self, name: str) -> _Sight | None:
        """The lease file of the highest number."""
        for number in sorted(self._numbers(name), reverse=True):
            if sight := _read(self._path(name, number), number):
                return sight
        return None

    def _numbers(self, name: str) -> list[int]:
        with suppress(OSError):
            files = [entry.name.rpartition(".") for entry in os.scandir(self.folder)]
            return [int(number) for own, _, number in files if own == name and number.isdecimal()]
        return []

    def _path(self, name: str, number: int) -> Path:
        return self.folder / f"{name}.{number}"


def _read(path: Path, number: int) -> _Sight | None:
    """The lease file of this number beside the path; opened, so that a network file system asks its server."""
    try:
        descriptor = os.open(path.with_suffix(f".{number}"), os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    try:
        return _Sight(number, os.read(descriptor, 4096).decode(errors="replace"), os.fstat(descriptor).st_mtime_ns)
    finally:
        os.close(descriptor)


def _beat(path: Path, released: threading.Event) -> None:
    """Renew the heartbeat until the lease is released; the time is the file system's, not ours."""
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


def _me() -> dict[str, object]:
    return {"machine": _machine(), "pid": os.getpid(), "started": _started(os.getpid())}


def _started(pid: int) -> str | None:
    """When the process of this id started, in ticks since the machine did; None if there is none."""
    try:
        # The name of the program, in brackets, may contain spaces.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] in "ZX" else fields[19]  # a zombie has ended
    except (OSError, IndexError):
        return None


def _runs_here(holder: str) -> bool | None:
    """Whether the holder is a live process of this machine; None if it is not known to be of this machine."""
    try:
        data = json.loads(holder)
        pid, started = int(data["pid"]), data["started"]
        if data["machine"] != _machine() or started is None:
            return None
    except (ValueError, TypeError, KeyError):
        return None  # not written completely yet, or by something else: the heartbeat decides
    return _started(pid) == started
