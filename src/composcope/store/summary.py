"""What came out of a sweep: one row per run as CSV and Parquet, and a short table with means over seeds."""

import io
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from composcope.errors import BadInput
from composcope.files import write_atomically
from composcope.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

MEANS = ("error.seen_mse", "error.heldout_mse", "error.accuracy", "seconds", "cpu_seconds")
PARQUET = "pyarrow"


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
    means = [name for name in MEANS if name in frame]
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
