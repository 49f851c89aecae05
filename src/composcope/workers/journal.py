"""What a sweep is doing, for other terminals and for later: a state that is replaced every few seconds, and a log.

store/logs/<name>.json    the state: runs done and failed, rate, time left
store/logs/<name>.log     a line now and then, and one for every run that failed
"""

import itertools
import logging
import os
import platform
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from pydantic import FiniteFloat, TypeAdapter

from composcope.files import read_regular, write_atomically
from composcope.store.store import Store
from composcope.terminal import duration
from composcope.workers.executor import Outcome

FOLDER = "logs"
STATE_SECONDS = 2.0
LINE_SECONDS = 30.0
# A sweep whose state is older than this has been killed, or its machine is gone.
SILENT_SECONDS = 60.0
# The rate is that of the last minutes, since the first runs wait for workers to start.
RATE_SECONDS = 300.0
MAX_BYTES = 1_000_000  # of a state file; a larger one is not ours

_count = itertools.count(1)  # of the sweeps of this process

State = Literal["running", "finished", "interrupted", "stopped"]


@dataclass(frozen=True)
class Status:
    """The state of a sweep. `updated`: seconds since 1970. `left`: seconds, None while nothing is known."""

    title: str
    host: str
    pid: int
    started: FiniteFloat
    updated: FiniteFloat
    state: State
    runs: int
    done: int
    failed: int
    per_minute: FiniteFloat
    left: FiniteFloat | None
    last_failure: str = ""

    @property
    def silent(self) -> bool:
        return self.state == "running" and time.time() - self.updated > SILENT_SECONDS

    @property
    def row(self) -> dict[str, object]:
        """For a table in a terminal."""
        ago = f" for {duration(time.time() - self.updated)}" if self.silent else ""
        return {
            "sweep": self.title,
            "state": "silent" + ago if self.silent else self.state,
            "done": f"{self.done + self.failed} of {self.runs}",
            "failed": self.failed,
            "runs per minute": round(self.per_minute, 1),
            "left": "-" if self.left is None or self.state != "running" else duration(self.left),
            "started": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.started)),
            "host": f"{self.host} ({self.pid})",
        }


STATUS = TypeAdapter(Status)


class Journal:
    """Keeps the state and the log of one sweep; `update` may be called as often as one likes."""

    def __init__(self, store: Store, title: str, runs: int, total: float) -> None:
        self.title, self.runs, self.total = title, runs, total
        self.started = time.time()
        self.ended: Sequence[Outcome] = ()
        self._logged = 0
        self._marks: deque[tuple[float, float, int]] = deque([(time.monotonic(), 0.0, 0)])
        self._next_state = self._next_line = 0.0
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(self.started))
        base = store.folder / FOLDER / f"{stamp}-{platform.node()}-{os.getpid()}-{next(_count)}"
        base.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.log = base.with_name(base.name + ".json"), base.with_name(base.name + ".log")
        self._handler = logging.FileHandler(self.log, encoding="utf-8", errors="backslashreplace")
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._logger = logging.Logger("composcope.sweep", logging.INFO)
        self._logger.addHandler(self._handler)
        self._logger.info("%s: %d runs to do", one_line(title), runs)

    def update(self, work: float, ended: Sequence[Outcome]) -> None:
        """Take in the work done and the runs that ended."""
        now, self.ended = time.monotonic(), ended
        for outcome in ended[self._logged :]:
            if outcome.failure:
                self._logger.info("failed: %s", one_line(outcome.failure))
        self._logged = len(ended)
        if now >= self._next_state:
            self._marks.append((now, work, len(ended)))
            while now - self._marks[0][0] > RATE_SECONDS and len(self._marks) > 2:
                self._marks.popleft()
            self._next_state = now + STATE_SECONDS
            self._write("running")
            if now >= self._next_line:
                self._next_line = now + LINE_SECONDS
                self._logger.info("%s", self._line())

    def finish(self, state: State, why: str = "") -> None:
        """Write the last state and line."""
        now = time.monotonic()
        if now - self._marks[0][0] > 0:
            self._marks.append((now, self._marks[-1][1], len(self.ended)))
        self._write(state)
        self._logger.info("%s%s: %s", state, f" ({one_line(why)})" if why else "", self._line(state))
        self._handler.close()

    def _status(self, state: State) -> Status:
        (start, work_before, ended_before), (now, work, ended) = self._marks[0], self._marks[-1]
        seconds, failures = now - start, [outcome for outcome in self.ended if outcome.failure]
        speed = (work - work_before) / seconds if seconds > 0 else 0.0
        return Status(
            title=self.title,
            host=platform.node(),
            pid=os.getpid(),
            started=self.started,
            updated=time.time(),
            state=state,
            runs=self.runs,
            done=len(self.ended) - len(failures),
            failed=len(failures),
            per_minute=60 * (ended - ended_before) / seconds if seconds > 0 else 0.0,
            left=max(self.total - work, 0.0) / speed if speed > 0 else None,
            last_failure=one_line(failures[-1].failure) if failures else "",
        )

    def _line(self, state: State = "running") -> str:
        status = self._status(state)
        left = "" if status.left is None or state == "finished" else f", about {duration(status.left)} left"
        return f"{status.done} done, {status.failed} failed, {status.per_minute:.1f} runs per minute{left}"

    def _write(self, state: State) -> None:
        with suppress(OSError):  # a full disk stops the runs themselves; their error is the one to show
            write_atomically(self.path, STATUS.dump_json(self._status(state)) + b"\n")


def read_statuses(store: Store) -> list[Status]:
    """The sweeps that have run on a store, the latest last."""
    statuses = []
    for path in sorted((store.folder / FOLDER).glob("*.json")):
        with suppress(OSError, ValueError):  # another program's file
            statuses.append(STATUS.validate_json(read_regular(path, MAX_BYTES)))
    return statuses


def one_line(text: object) -> str:
    """The text without line breaks and control characters."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text))
