"""What a run needs of a machine: wishes that the engine is told of."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from composcope.components import nearest
from composcope.errors import BadInput

UNITS = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


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
    def parse(cls, wishes: Sequence[str]) -> Self:
        """From texts such as "memory=4GB"."""
        values = {}
        for wish in wishes:
            name, _, text = wish.partition("=")
            amount = re.fullmatch(r"(\d+)\s*(kB|MB|GB|TB|)", text.strip())
            if name not in ("threads", "memory", "gpus") or amount is None or (amount[2] and name != "memory"):
                raise BadInput(
                    f"--resource {wish!r}{nearest(name, ['threads', 'memory', 'gpus'])}:"
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
        wishes = {"threads": self.threads if self.threads > 1 else 0, "MEMORY": self.memory, "GPU": self.gpus}
        return {name: float(amount) for name, amount in wishes.items() if amount}


def local_workers(workers: int | None, resources: Resources, runs: int) -> int:
    """How many worker processes this machine has room for, at most one per run and at least one."""
    if workers is None:
        workers = (os.cpu_count() or 1) // resources.threads
        with suppress(AttributeError, ValueError, OSError):  # not known everywhere
            if resources.memory:
                total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
                workers = min(workers, total // resources.memory)
    return max(min(workers, runs), 1)
