"""What an executor adds to a run, and what a second worker saves: tiny runs, in tables of 100 and 1,000.

    python benchmarks/scale.py [RUNS ...]

Times are CPU times of this process and its workers, which hardly depend on what else the machine does; wall times are
printed too, and mean something on an idle machine only.
"""

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from timing import machine

import composcope as cs
from composcope.runs.spec import Spec
from composcope.workers.executor import run_all

TABLES = (100, 1000)
# One that takes a fraction of a second, for the comparison of one worker with two.
STEPS = 1600


@dataclass(frozen=True)
class Cost:
    """Seconds: of this process, of its workers, and by the clock on the wall."""

    driver: float
    workers: float
    wall: float

    @property
    def cpu(self) -> float:
        return self.driver + self.workers


def tiny(count: int, steps: int = 6) -> list[Spec]:
    """Runs that take milliseconds."""
    base = Spec(
        task=cs.BumpTask(8),
        holdout=cs.Square(2, 5),
        encoding=cs.Bump(),
        decoder=cs.MLP(depth=1, width=8),
        sampling=cs.Everything(),
        training=cs.Training(steps=steps, batch=16),
    )
    return cs.Sweep(base.to_dict(), {"seed": list(range(count))}).specs()


def cost(work: Callable[[], object]) -> Cost:
    """What the work costs; workers are counted once they have ended."""

    def now() -> tuple[float, float, float]:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time(), children.ru_utime + children.ru_stime, time.perf_counter()

    before = now()
    work()
    return Cost(*(after - start for after, start in zip(now(), before, strict=True)))


def by_itself(specs: Sequence[Spec], folder: Path) -> None:
    store = cs.Store(folder)
    for spec in specs:
        cs.run(spec, store)


def overhead(counts: Sequence[int]) -> None:
    """CPU time per run in a sweep with one worker, less that of the same runs one after the other in one process."""
    print("tiny runs, one worker: CPU time in milliseconds per run, without the worker's start")
    print("   runs   by itself   in a sweep   of it the driver   overhead")
    with tempfile.TemporaryDirectory() as scratch:
        start = cost(lambda: run_all(tiny(1), cs.Store(Path(scratch) / "start"), workers=1))
        by_itself(tiny(3), Path(scratch) / "warm")
        for count in counts:
            specs = tiny(count)
            plain = cost(lambda: by_itself(specs, Path(scratch) / f"plain{count}"))  # noqa: B023
            swept = cost(lambda: run_all(specs, cs.Store(Path(scratch) / f"swept{count}"), workers=1))  # noqa: B023
            own, both = plain.cpu / count, (swept.cpu - start.cpu) / (count - 1)
            driver = (swept.driver - start.driver) / (count - 1)
            print(f"{count:7} {own * 1e3:11.1f} {both * 1e3:12.1f} {driver * 1e3:18.1f} {(both - own) * 1e3:10.1f}")
    print(f"the start of a worker: {start.cpu:.1f} s of CPU, most of it importing torch")


def scaling(runs: int = 24) -> None:
    """One worker against two, taking turns; by the clock this needs two free cores."""
    specs = tiny(runs, STEPS)
    print(f"\n{runs} runs of {STEPS} steps with one worker and with two, two turns each")
    print("workers   CPU s   wall s   wall s without the start   load at the end")
    with tempfile.TemporaryDirectory() as scratch:
        walls: dict[int, list[float]] = {1: [], 2: []}
        for turn in range(2):
            for workers in (1, 2):
                begun: list[float] = []

                def note(work: float, outcomes: Sequence[object], begun: list[float] = begun) -> None:
                    if work > 0 and not begun:
                        begun.append(time.perf_counter())

                store = cs.Store(Path(scratch) / f"{turn}-{workers}")
                spent = cost(lambda: run_all(specs, store, workers=workers, on_progress=note))  # noqa: B023
                walls[workers].append(time.perf_counter() - begun[0])
                load = os.getloadavg()[0]
                print(f"{workers:7} {spent.cpu:7.1f} {spent.wall:8.1f} {walls[workers][-1]:26.1f} {load:17.1f}")
    print(f"by the clock two workers are {min(walls[1]) / min(walls[2]):.2f} times one (on an idle machine)")
    print(f"two processes that share nothing are {unrelated(runs, 1) / unrelated(runs, 2):.2f} times one")


def unrelated(runs: int, processes: int) -> float:
    """Seconds for the same runs by processes that know nothing of each other: what the machine itself allows."""
    context = get_context("spawn")
    ready, seconds = context.Barrier(processes), context.SimpleQueue()
    started = [
        context.Process(target=_part, args=(runs // processes, number, ready, seconds)) for number in range(processes)
    ]
    for process in started:
        process.start()
    longest = max(seconds.get() for _ in started)
    for process in started:
        process.join()
    return float(longest)


def _part(runs: int, number: int, ready: Any, seconds: Any) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        by_itself(tiny(1, STEPS), Path(scratch) / "warm")
        ready.wait()
        start = time.perf_counter()
        by_itself(tiny(runs, STEPS), Path(scratch) / str(number))
        seconds.put(time.perf_counter() - start)


def main() -> None:
    print(machine())
    overhead([int(argument) for argument in sys.argv[1:]] or TABLES)
    scaling()


if __name__ == "__main__":
    main()
