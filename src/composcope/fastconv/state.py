"""What the process uses: the switch, whether the kernels are available, what ran, and the memory that is kept."""

import ctypes
import logging
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, get_args

from composcope.fastconv.build import BuildError, load

TRIM, MMAP = -1, -3  # the GNU C library's M_TRIM_THRESHOLD and M_MMAP_THRESHOLD
MAX_KEPT, MAX_PIECE = 1 << 30, 32 << 20  # bytes: free memory kept, and the largest piece kept


def keep_memory() -> bool:
    """Let this process keep what it frees, up to a gigabyte, rather than have the same pages made again every step.

    A training step frees all its activations; returned to the system they come back page by page, which takes
    up to a third of a step. True where the C library can be told so; a switch for processes that train, not for those
    that import.
    """
    if os.name != "posix" or (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is None:
        return False
    return bool(mallopt(TRIM, MAX_KEPT)) and bool(mallopt(MMAP, MAX_PIECE))


logger = logging.getLogger("composcope.fastconv")

Mode = Literal["auto", "torch", "everywhere"]

_mode: ContextVar[Mode] = ContextVar("composcope_fastconv", default="auto")
_used: Counter[str] = Counter()
_lock = threading.Lock()
_loaded: tuple[ctypes.CDLL | None, str] | None = None


@dataclass(frozen=True)
class Status:
    """Whether the kernels are available here, with how many lanes to a vector, and if not, why."""

    available: bool
    reason: str = ""
    lanes: int = 0


@contextmanager
def using(mode: Mode) -> Iterator[None]:
    """Within: "auto" uses the kernels in training where they pay, "torch" only PyTorch's convolutions.

    "everywhere" uses them without gradients too, where "auto" agrees with PyTorch to the last bit.
    """
    if mode not in get_args(Mode):
        raise ValueError(f"the kernels know {', '.join(get_args(Mode))}, not {mode!r}")
    token = _mode.set(mode)
    try:
        yield
    finally:
        _mode.reset(token)


def mode() -> Mode:
    """The switch's position."""
    return _mode.get()


def status() -> Status:
    """Whether the kernels are available; compiles them if that has not been tried."""
    kernels, reason = _load()
    return Status(kernels is not None, reason, lanes())


def used() -> Counter[str]:
    """How many convolutions were chosen between since the process began, by kernel ("torch" is PyTorch's).

    Training steps in compiled code are counted as "compiled step", and their convolutions not apart.

    What one run took is a difference: ``used() - before``.
    """
    return Counter(_used)


def count(name: str) -> None:
    """Record one convolution, or one compiled step."""
    _used[name] += 1


def library() -> ctypes.CDLL | None:
    """The kernels, or None where they are not available (which is logged once)."""
    return _load()[0]


def lanes() -> int:
    """Floats in one of the kernels' vectors, 0 where they are not available."""
    kernels = library()
    return 0 if kernels is None else int(kernels.composcope_lanes())


def _load() -> tuple[ctypes.CDLL | None, str]:
    global _loaded
    if _loaded is not None:  # without the lock, since every layer of every step asks
        return _loaded
    with _lock:
        if _loaded is None:
            try:
                _loaded = load(), ""
            except BuildError as error:
                _loaded = None, str(error)
                logger.warning("training with PyTorch's convolutions, which is slower: %s", error)
        return _loaded
