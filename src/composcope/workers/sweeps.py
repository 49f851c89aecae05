"""A sweep: which of its runs are to be done, what they cost, its results as tables, its ids between commands.

The results are one row per run, as CSV and Parquet, and a short table with means over seeds.

To make the ids takes PyTorch, which takes seconds to import; with them it is soon clear that nothing is to be done.
They are known by the contents of the sweep's file and the package's code. Specs may name other files, and installed
packages may add components: such sweeps are not remembered, since their ids depend on more than that.
"""

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from composcope.errors import BadInput
from composcope.files import write_atomically
from composcope.runs.plugins import GROUP
from composcope.store.records import flatten
from composcope.store.store import Store
from composcope.terminal import duration
from composcope.user_cache import cache_folder_or_none, package_code, remove_unused
from composcope.workers.limits import Shard

if TYPE_CHECKING:
    import pandas as pd

    from composcope.runs.spec import Spec

MEAN_COLUMNS = ("error.seen_mse", "error.heldout_mse", "error.accuracy", "seconds", "cpu_seconds")
PARQUET = "pyarrow"
# Rows of a table that are printed; files have all of them.
MAX_ROWS = 30


@dataclass(frozen=True)
class Selection:
    """The runs of a sweep that were asked for: how many are done, which failed before, and which are to be done now."""

    run_ids: list[str]
    done: int
    failed: list[str]
    todo: list[str]


def select_runs(
    run_ids: Sequence[str],
    store: Store,
    shard: Shard | None = None,
    only: Sequence[str] = (),
    limit: int | None = None,
    retry_failed: bool = False,
) -> Selection:
    """Which runs of a sweep are to be done.

    - `only`: the first digits of ids. Settings such as "decoder.depth=4" are not looked at: `run_ids` has them applied.
    """
    prefixes = tuple(text for text in only if "=" not in text)
    selected = [run_id for run_id in run_ids if not prefixes or run_id.startswith(prefixes)]
    if only and not selected:
        raise BadInput(f"--only {' '.join(only)}: matches no run of the sweep")
    missing = [run_id for run_id in selected if not store.complete(run_id)]
    failed = [run_id for run_id in missing if store.failed(run_id)]
    skipped = set() if retry_failed else set(failed)
    todo = [run_id for run_id in missing if (shard or Shard()).has(run_id) and run_id not in skipped]
    return Selection(selected, len(selected) - len(missing), failed, todo[:limit])


def cost_rows(specs: "Sequence[Spec]", varied: Sequence[str], costs: Mapping[str, float]) -> list[dict[str, object]]:
    """What the runs cost in CPU time, for each value of the lists and in all."""
    rows: list[dict[str, object]] = []
    for name in [name for name in varied if name != "seed"]:
        parts: dict[str, list[float]] = {}
        for spec in specs:
            fields = flatten(spec.to_dict())
            own = {key: value for key, value in fields.items() if key == name or key.startswith(f"{name}.")}
            label = str(own[name]) if name in own else ", ".join(map(str, own.values()))
            parts.setdefault(label or "-", []).append(costs[spec.run_id])
        for label, seconds in list(parts.items())[:MAX_ROWS]:
            rows.append({"part": f"{name} = {label}", "runs": len(seconds), "CPU time": duration(sum(seconds))})
    return [*rows, {"part": "all", "runs": len(specs), "CPU time": duration(sum(costs.values()))}]


def check_writable(folder: Path) -> None:
    """Create a folder for results, or raise BadInput that says why files cannot be written there; before any work."""
    probe = folder / ".check"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(probe, b"")
        probe.unlink()
    except OSError as error:
        raise BadInput(f"--out {str(folder)!r} cannot be written: {error.strerror}") from None


def write_summary(frame: "pd.DataFrame", folder: Path, name: str) -> list[Path]:
    """Write one row per run as `name.csv` and, where pyarrow is installed, `name.parquet`; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.csv"]
    text: str = frame.to_csv(index=False, lineterminator="\n")
    write_atomically(paths[0], text.encode(errors="backslashreplace"))
    if find_spec(PARQUET):
        content = io.BytesIO()
        # A column that holds numbers in one run and words in another has no type in Parquet.
        mixed = {str(column): _as_text(frame[column]) for column in frame if frame[column].dtype == object}
        frame.assign(**mixed).to_parquet(content, index=False)
        paths.append(folder / f"{name}.parquet")
        write_atomically(paths[1], content.getvalue())
    return paths


def is_summary_of(path: Path, runs: int) -> bool:
    """Whether there is a summary of this many runs, so that nothing needs to be read when nothing was done."""
    try:
        return path.read_bytes().count(b"\n") == runs + 1
    except OSError:
        return False


def _as_text(column: "pd.Series") -> "pd.Series":
    kinds = {type(value) for value in column.dropna()}
    return column if len(kinds) <= 1 else column.map(lambda value: None if value is None else str(value))


def summary_rows(frame: "pd.DataFrame", varied: Sequence[str]) -> list[dict[str, object]]:
    """One row per combination of the varied settings other than the seed: how many runs, and their mean results."""
    # A component that varies as a whole differs in its fields.
    names = [
        column
        for column in map(str, frame)
        if column != "seed" and any(column == name or column.startswith(f"{name}.") for name in varied)
    ]
    names = [name for name in names if frame[name].nunique(dropna=False) > 1]
    means = [name for name in MEAN_COLUMNS if name in frame]
    groups = frame.groupby(names, dropna=False, sort=False) if names else [((), frame)]
    rows = []
    for values, runs in groups:
        done = runs[runs["status"] == "done"]
        row: dict[str, object] = dict(zip(names, values if isinstance(values, tuple) else (values,), strict=True))
        row |= {"runs": len(done), "failed": int((runs["status"] == "failed").sum())}
        rows.append(row | {name.removeprefix("error."): done[name].mean() for name in means})
    return rows


def sweep_frame(store: Store, run_ids: Sequence[str]) -> "pd.DataFrame":
    """One row per run of a sweep that the store has, done or failed."""
    return store.frame([run_id for run_id in run_ids if os.path.isdir(f"{store.folder}/{run_id}")])


@dataclass(frozen=True)
class SweepIds:
    """The ids of a sweep's runs in order, and the names of its lists."""

    run_ids: list[str]
    varied: list[str]


class SweepMemory:
    """What is remembered of a sweep's file as it is now.

    - `only`: settings such as "decoder.depth=4", which leave runs out.
    """

    def __init__(self, sweep: Path, only: Sequence[str] = ()) -> None:
        self.sweep, self.only = sweep, only
        self.path = self._path()

    def read(self) -> SweepIds | None:
        """None if nothing is remembered."""
        if self.path is None:
            return None
        try:
            return SweepIds(**json.loads(self.path.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, ids: SweepIds) -> None:
        """Remember the ids, unless the file has changed meanwhile; what cannot be written is forgotten."""
        if self.path is None or self.path != self._path():
            return
        with contextlib.suppress(OSError):
            remove_unused(self.path.parent)
            write_atomically(self.path, json.dumps(asdict(ids)).encode())

    def _path(self) -> Path | None:
        try:
            content = self.sweep.read_bytes()
        except OSError:
            return None
        folder = cache_folder_or_none("sweeps")
        if folder is None or b"file" in content or entry_points(group=GROUP):
            return None
        identity = hashlib.sha256(content).hexdigest(), list(self.only), package_code()
        return folder / f"{hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:24]}.json"
