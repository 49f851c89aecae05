"""Processes that a test has started, and threads in their place."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest


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

    class Threads(ThreadPoolExecutor):
        def __init__(self, workers: int, slots: int) -> None:
            super().__init__(1)
            self.slots = slots

        def steps(self) -> list[float]:
            return [0.0] * self.slots

        def forget(self, slot: int) -> None:
            pass

    monkeypatch.setattr("composcope.experiments.executor.LocalPool", Threads)
