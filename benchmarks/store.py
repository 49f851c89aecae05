"""What a store of many runs costs: the seconds of CPU that each command takes, start of Python included.

    python benchmarks/store.py [--runs 100 1000 10000] [--reports 100 1000 10000]

The runs are copies of one tiny run under many seeds, written without syncing. `list` is run twice: the first reads
every file and makes the index, the second uses it. So is a sweep whose runs are all done: the first makes every spec
and writes the summary, the second remembers the ids. Reports are of stores whose runs are all diagnosed, or, above
1,000, none.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import tomli_w
from timing import machine

import composcope as cs
from composcope.user_cache import cache_folder

COMMAND = "import sys; from composcope.cli import main; main(sys.argv[1:])"
FRAME = "import sys; from composcope import Store; print(len(Store(sys.argv[1]).frame()))"
MOST_DIAGNOSED = 1000


def tiny() -> cs.Spec:
    return cs.Spec(
        cs.BumpTask(8),
        cs.Square(2, 5),
        cs.Bump(),
        cs.MLP(depth=1, width=8),
        sampling=cs.Everything(),
        training=cs.Training(steps=6, batch=16),
    )


def fill(folder: Path, runs: int, diagnosed: bool) -> cs.Store:
    """A store of this many runs, all with the weights of the first."""
    store = cs.Store(folder)
    spec = tiny()
    first = cs.run(spec, store)
    trained = cs.Trained(dict(first.weights), first.curve.to_dict("records"), first.seconds)  # type: ignore[arg-type]
    diagnosis = first.diagnose() if diagnosed else None
    for seed in range(runs):
        copy = replace(spec, seed=seed).run_id
        store.save(replace(spec, seed=seed), trained, first.provenance)
        store.run_folder(copy).save_measures("error", 2, first.error)
        if diagnosis is not None:
            store.run_folder(copy).save_diagnosis(diagnosis)
    return store


def write_sweep(path: Path, runs: int) -> Path:
    path.write_bytes(tomli_w.dumps({"base": tiny().to_dict(), "vary": {"seed": list(range(runs))}}).encode())
    return path


def cpu_seconds(code: str, *arguments: object) -> float:
    """The CPU time of a Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(folder: Path, runs: int) -> dict[str, float]:
    """Seconds by command, on a store whose runs are not diagnosed."""
    store = fill(folder / "runs", runs, diagnosed=False)
    time.sleep(2.5)  # files that changed a moment ago are not indexed
    some = store.run_ids()[runs // 2]
    sweep = write_sweep(folder / "sweep.toml", runs)
    to_store: Sequence[Any] = ("--store", store.folder)
    return {
        "list, first time": cpu_seconds(COMMAND, "list", *to_store),
        "list": cpu_seconds(COMMAND, "list", *to_store),
        "show": cpu_seconds(COMMAND, "show", some, *to_store),
        "frame()": cpu_seconds(FRAME, store.folder),
        "sweep, first time": cpu_seconds(COMMAND, "sweep", sweep, *to_store),
        "sweep, all done": cpu_seconds(COMMAND, "sweep", sweep, *to_store),
    }


def report(folder: Path, runs: int, diagnosed: bool) -> tuple[float, float]:
    """Seconds and megabytes of a report."""
    store = fill(folder / "runs", runs, diagnosed)
    time.sleep(2.5)
    page = folder / "report.html"
    taken = cpu_seconds(COMMAND, "report", "--preset", "tiny", "--store", store.folder, "--out", page)
    return taken, page.stat().st_size / 2**20


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    print(f"\n{title}\n")
    for row in [columns, *rows]:
        cells = [f"{value:.2f}" if isinstance(value, float) else str(value) for value in row]
        print("  " + "".join(cell.rjust(18) for cell in cells))


def in_folder(work: Callable[[Path], Any]) -> Any:
    """Work in a temporary folder; what is remembered of it is forgotten afterwards."""
    before = set(remembered())
    with tempfile.TemporaryDirectory() as name:
        result = work(Path(name))
    for path in set(remembered()) - before:
        path.unlink()
    return result


def remembered() -> list[Path]:
    return [path for name in ("stores", "sweeps") for path in cache_folder(name).iterdir()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, nargs="*", default=[100, 1000, 10_000])
    parser.add_argument("--reports", type=int, nargs="*", default=[100, 1000, 10_000])
    options = parser.parse_args()
    os.fsync = lambda descriptor: None  # type: ignore[assignment]  # a hundred times faster, and nothing here is kept
    print(machine())
    start = cpu_seconds("import torch, pandas")
    print(f"seconds of CPU; importing PyTorch and pandas alone takes {start:.2f}")
    by_runs = {runs: in_folder(partial(commands, runs=runs)) for runs in options.runs}
    if by_runs:
        names = list(next(iter(by_runs.values())))
        table("Commands", ["runs", *names], [[runs, *taken.values()] for runs, taken in by_runs.items()])
    rows = []
    for runs in options.reports:
        diagnosed = runs <= MOST_DIAGNOSED
        seconds, size = in_folder(partial(report, runs=runs, diagnosed=diagnosed))
        rows.append([runs, "all" if diagnosed else "none", seconds, size])
    table("Reports", ["runs", "diagnosed", "seconds", "MB"], rows)


if __name__ == "__main__":
    main()
