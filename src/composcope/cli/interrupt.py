"""Ctrl-C: the first ends the command in order, later ones change nothing, and the end never takes long."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

# Ending workers takes two seconds at most; whatever hangs is left behind after this many.
MAX_SECONDS = 8.0
EXIT_CODE = 130


@contextmanager
def interruptible() -> Iterator[None]:
    """Within: KeyboardInterrupt is raised once, by the first Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # not if the shell ignores interrupts, as for a job in the background
        signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is _interrupt:
            signal.signal(signal.SIGINT, before)


def check() -> None:
    """Raise KeyboardInterrupt again if Python swallowed it, as it does in destructors and in garbage collection."""
    if _requested.is_set():
        _requested.clear()
        raise KeyboardInterrupt


_requested = threading.Event()


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _requested.set()
    sys.unraisablehook = _ignore_interrupts
    timer = threading.Timer(MAX_SECONDS, _leave)
    timer.daemon = True
    timer.start()
    raise KeyboardInterrupt


def _ignore_interrupts(unraisable: "sys.UnraisableHookArgs") -> None:
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)


def _leave(*_: Any) -> None:
    sys.stderr.write("interrupted; some of the work did not end in time and was left\n")
    sys.stderr.flush()
    os._exit(EXIT_CODE)
