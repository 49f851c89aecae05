"""What a run may take of a machine: threads, memory, GPUs and time; and which of the runs are this process's."""

import faulthandler
import hashlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

from composcope.components import nearest
from composcope.errors import BadInput, RunFailed
from composcope.terminal import duration

if TYPE_CHECKING:
    from composcope.runs.spec import Spec

UNITS = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
# A run that does not notice that its time is up is given these seconds more; after that its process is ended.
GRACE = 2.0
EXIT_CODE = 70


@dataclass(frozen=True)
class Resources:
    """What each run needs: CPU threads, bytes of memory, GPUs. Zero memory means that nothing is known.

    >>> Resources.parse(["threads=2", "memory=4GB", "gpus=1"])
    Resources(threads=2, memory=4000000000, gpus=1)
    """

    threads: int = 1
    memory: int = 0
    gpus: int = 0

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Self:
        """From texts such as "memory=4GB"."""
        values = {}
        for text in texts:
            name, _, value = text.partition("=")
            amount = re.fullmatch(r"(\d+)\s*(kB|MB|GB|TB|)", value.strip())
            if name not in ("threads", "memory", "gpus") or amount is None or (amount[2] and name != "memory"):
                raise BadInput(
                    f"--resource {text!r}{nearest(name, ['threads', 'memory', 'gpus'])}:"
                    " write threads=2, memory=4GB or gpus=1"
                )
            values[name] = int(amount[1]) * UNITS[amount[2]]
        if values.get("threads", 1) < 1:
            raise BadInput("--resource threads=0: a run needs at least 1 thread")
        return cls(**values)

    @property
    def device(self) -> str:
        return "cuda" if self.gpus else "cpu"

    @property
    def named(self) -> Mapping[str, float]:
        """Under the names that workers of a cluster declare; a single thread, which each has, is left out."""
        amounts = {"threads": self.threads if self.threads > 1 else 0, "MEMORY": self.memory, "GPU": self.gpus}
        return {name: float(amount) for name, amount in amounts.items() if amount}


def local_workers(workers: int | None, resources: Resources, runs: int) -> int:
    """How many worker processes this machine has room for, at most one per run and at least one."""
    if workers is None:
        workers = (os.cpu_count() or 1) // resources.threads
        with suppress(AttributeError, ValueError, OSError):  # not known everywhere
            if resources.memory:
                total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
                workers = min(workers, total // resources.memory)
    return max(min(workers, runs), 1)


@dataclass(frozen=True)
class Shard:
    """Part `index` of `count`, counted from 1, for a task of a job array; a run belongs to a part by its id alone.

    >>> [Shard(i, 3).has("threshold of bumps, size 8") for i in (1, 2, 3)]
    [True, False, False]
    """

    index: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Self:
        """From "2/8"."""
        first, _, second = text.partition("/")
        if not (first.isascii() and first.isdecimal() and second.isascii() and second.isdecimal()):
            raise BadInput(f"--shard {text!r}: write I/N, as in --shard 1/8 (I from 1 to N)")
        index, count = int(first), int(second)
        if not 1 <= index <= count <= 1_000_000:
            raise BadInput(f"--shard {text!r}: I must be from 1 to N")
        return cls(index, count)

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def has(self, name: str) -> bool:
        """Whether what has this name belongs to this part."""
        digest = hashlib.sha256(name.encode()).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.index - 1

    def select(self, specs: "Iterable[Spec]", groups: Mapping[str, str] | None = None) -> "list[Spec]":
        """The specs of this part. Runs with the same name in `groups`, by run id, belong to the same part."""
        names = groups or {}
        return [spec for spec in specs if self.has(names.get(spec.run_id, spec.run_id))]


class OutOfTime(RunFailed):
    """A run took longer than its limit."""


class TimeLimit:
    """A limit enforced in the worker itself, since an executor cannot end a task that has begun.

    Within: `check()` raises OutOfTime once the seconds are over; a process that never asks is ended.

    - `on_hang(reason)`: called in another thread before the process is ended, to record why.

    A thread ends the process if the run merely never returns; one that does not let threads run either is ended by
    Python's fault handler, which needs no thread of Python's.
    """

    def __init__(self, seconds: float | None, on_hang: Callable[[str], None]) -> None:
        self.seconds, self.on_hang = seconds, on_hang
        self._over = threading.Event()

    def __enter__(self) -> Self:
        if self.seconds is not None:
            self.end = time.monotonic() + self.seconds
            threading.Thread(target=self._watch, daemon=True).start()
            if sys.__stderr__ is not None:
                faulthandler.dump_traceback_later(self.seconds + 2 * GRACE, exit=True, file=sys.__stderr__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self.seconds is not None:
            faulthandler.cancel_dump_traceback_later()

    def check(self) -> None:
        if self.seconds is not None and time.monotonic() > self.end:
            raise OutOfTime(f"stopped: it took longer than its time limit, {duration(self.seconds)}")

    def _watch(self) -> None:
        assert self.seconds is not None
        if self._over.wait(self.seconds + GRACE):
            return
        with suppress(Exception):  # it must end, recorded or not
            self.on_hang(f"hung: no step ended within its time limit, {duration(self.seconds)}")
        os._exit(EXIT_CODE)
