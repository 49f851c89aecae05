"""Processes that a test has started, and threads in their place."""

import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import composcope as cs
from composcope.workers.local_pool import LocalPool

COMMAND = [sys.executable, "-c", "from composcope.cli import main; main()"]


def output_of(*arguments: object) -> str:
    """What the command line prints in a process of its own."""
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def descendants(pid: int) -> list[int]:
    """The ids of the processes that a process has started, and of those that these have."""
    try:
        lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]  # by thread
    except (FileNotFoundError, ProcessLookupError):
        return []
    children = [int(child) for text in lists for child in text.split()]
    return [*children, *(below for child in children for below in descendants(child))]


def alive(pid: int) -> bool:
    """Whether the process exists and has not ended."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether the condition came true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def train_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a thread of this process do the runs; a process would first import torch."""

    class Threads(LocalPool):
        def __init__(self, workers: int, slots: int) -> None:
            super().__init__(1, slots)
            self.threads = ThreadPoolExecutor(1)

        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
            return self.threads.submit(fn, *args, **kwargs)

        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            self.threads.shutdown(wait, cancel_futures=cancel_futures)

    monkeypatch.setattr("composcope.workers.executor.LocalPool", Threads)


def same_everywhere(store: cs.Store, run_id: str) -> dict[str, bytes]:
    """The files of a run that are the same wherever it is done."""
    files = store.run_folder(run_id).files()
    return {name: data for name, data in files.items() if name not in ("provenance.json", "done.json")}
