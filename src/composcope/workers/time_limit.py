"""A limit on the time of a run, enforced in the worker itself: an executor cannot end a task that has begun."""

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from composcope.errors import RunFailed
from composcope.terminal import duration

# A run that does not notice that its time is up is given these seconds more; after that its process is ended.
GRACE = 2.0
EXIT_CODE = 70


class OutOfTime(RunFailed):
    """A run took longer than its limit."""


class TimeLimit:
    """Within: `check()` raises OutOfTime once the seconds are over; a process that never asks is ended.

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
