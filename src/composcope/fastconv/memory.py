"""Freed memory kept for the next training step."""

import ctypes
import os

TRIM, MMAP = -1, -3  # the GNU C library's M_TRIM_THRESHOLD and M_MMAP_THRESHOLD
KEPT, LARGEST = 1 << 30, 32 << 20  # bytes: free memory kept, and the largest piece kept


def keep_memory() -> bool:
    """Let this process keep what it frees, up to a gigabyte, rather than have the same pages made again every step.

    A training step frees all its activations; returned to the system they come back page by page, which takes
    up to a third of a step. True where the C library can be told so; a switch for processes that train, not for those
    that import.
    """
    if os.name != "posix" or (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is None:
        return False
    return bool(mallopt(TRIM, KEPT)) and bool(mallopt(MMAP, LARGEST))
