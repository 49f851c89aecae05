"""Worker processes on this machine: Python's process pool, made anew when a worker dies, and never left behind."""

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import wait as wait_for_end
from typing import Any, TypeVar

from composcope.workers.jobs import report_to

T = TypeVar("T")

# Workers that are asked to end are killed after this many seconds; a stopped process does not react at all.
PATIENCE = 2.0


class LocalPool(Executor):
    """Processes of one thread each. After a worker has died, `submit` starts new ones.

    - `slots`: how many jobs report their progress. Each has a number of its own in shared memory that only its worker
      writes, so no lock can be left behind by a worker that is killed.
    """

    def __init__(self, workers: int, slots: int = 0) -> None:
        self.workers = workers
        self._context = multiprocessing.get_context("spawn")
        self._steps = self._context.RawArray("d", max(slots, 1))
        self._pool: ProcessPoolExecutor | None = None

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        with signals_held():
            try:
                return self._open().submit(fn, *args, **kwargs)
            except BrokenProcessPool:
                self._close()
                return self._open().submit(fn, *args, **kwargs)

    def steps(self) -> list[float]:
        """The progress of every slot."""
        return list(self._steps)

    def forget(self, slot: int) -> None:
        """Reset the progress of a job that is to be done again."""
        self._steps[slot] = 0.0

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End every worker, even one in the middle of a run."""
        with signals_held():
            self._close()

    def _open(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.workers, self._context, _start_worker, (self._steps,))
        return self._pool

    def _close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is None:
            return
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for end in ("terminate", "kill"):
            for process in processes:
                getattr(process, end)()
            deadline = time.monotonic() + PATIENCE
            for process in processes:
                process.join(max(deadline - time.monotonic(), 0))
            processes = [process for process in processes if process.is_alive()]


@contextmanager
def signals_held() -> Iterator[None]:
    """Keep an interrupt for later; processes and threads that are started within never see one.

    Otherwise Ctrl-C, which the terminal sends to all processes, would hit workers while they start.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # which unblocks interrupts when it has to start its process
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker(steps: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    end_with_parent()
    logging.getLogger("composcope.fastconv").setLevel(logging.ERROR)  # the parent has logged this

    def report(slot: int, done: float) -> None:
        steps[slot] = done

    report_to(report)


def end_with_parent() -> None:
    """From now on, end this process when its parent ends; otherwise it would wait for work forever."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for_end([parent.sentinel])
        os._exit(1)
