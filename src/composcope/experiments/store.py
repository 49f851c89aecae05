"""Results on disk: nothing else reads or writes them.

    store/store.json                      the version of the format
    store/<run_id>/spec.json curve.csv weights.safetensors provenance.json [snapshots/<step>.safetensors] done.json
    store/<run_id>/measures/<name>.json   added later, each with its version and checksum
    store/<run_id>/measures/diagnosis.npz the maps of the diagnosis, whose numbers are in diagnosis.json
    store/<run_id>/spec.json failed.json  a run that diverged, with the reason

A run's folder is filled under a temporary name and renamed when complete, so it exists completely or not at all;
`done.json` holds the checksums of the other files. Nothing is ever loaded by running code.
"""

import io
import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from composcope.diagnosis import Diagnosis
from composcope.errors import BadInput
from composcope.experiments import measure_files
from composcope.experiments.checked_files import (
    Damaged,
    as_csv,
    as_json,
    not_as_written,
    parse_json,
    read_file,
    read_json,
)
from composcope.experiments.spec import Spec
from composcope.files import sha256, sync_folder, write_atomically
from composcope.training import Trained, Weights

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Damaged", "Record", "Store", "flatten"]

FORMAT = 1
# A half-written folder this old belongs to a process that was killed: writing one takes seconds.
STALE_SECONDS = 3600
RUN_ID = re.compile("[0-9a-f]{16}")
Status = Literal["done", "failed", "damaged", "missing"]


@dataclass(frozen=True)
class Record:
    """A run's row in a listing, whatever its state: everything but its weights.

    - `status`: "missing" for a run that is not in the store; the store itself gives none of these.
    - `problem`: why it failed, or what is damaged.
    """

    run_id: str
    status: Status
    spec: Mapping[str, Any]
    provenance: Mapping[str, Any]
    measures: Mapping[str, Mapping[str, Any]]
    problem: str = ""


class Store:
    """A folder of runs, shared by any number of processes."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise BadInput(f"store {str(folder)!r} is a file; a folder is needed")
        version = self._read_format()
        if version > FORMAT:
            raise BadInput(f"store {str(folder)!r} has format {version}; this composcope knows {FORMAT}: upgrade it")

    def __repr__(self) -> str:
        return f"Store({str(self.folder)!r})"

    def prepare(self) -> None:
        """Create the folder, or raise BadInput if it cannot be written to; remove what a killed process left behind."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._staging("check"):
                pass
            if not (self.folder / "store.json").exists():
                write_atomically(self.folder / "store.json", as_json({"format": FORMAT}))
        except OSError as error:
            raise BadInput(f"store {str(self.folder)!r} cannot be written: {error.strerror}") from None
        for leftover in self.folder.glob(".staging-*"):
            with suppress(FileNotFoundError):  # another process's, finished meanwhile
                if time.time() - leftover.stat().st_mtime > STALE_SECONDS:
                    shutil.rmtree(leftover, ignore_errors=True)

    def has(self, run_id: str) -> bool:
        return (self.folder / run_id / "done.json").is_file()

    def failed(self, run_id: str) -> bool:
        """Whether the run failed the last time."""
        return not self.has(run_id) and (self.folder / run_id / "failed.json").is_file()

    def run_ids(self) -> list[str]:
        """Every run's id, done, failed or damaged, in alphabetical order."""
        if not self.folder.is_dir():
            return []
        return sorted(path.name for path in self.folder.iterdir() if path.is_dir() and RUN_ID.fullmatch(path.name))

    def find(self, prefix: str) -> str:
        """The id of the only run whose id begins with this."""
        matches = [run_id for run_id in self.run_ids() if run_id.startswith(prefix)] if prefix else []
        if len(matches) == 1:
            return matches[0]
        hint = f"it holds {len(self.run_ids())} runs; `composcope list` shows them"
        if not matches:
            raise BadInput(f"no run in store {str(self.folder)!r} has an id that begins with {prefix!r}; {hint}")
        raise BadInput(
            f"{len(matches)} runs have ids that begin with {prefix!r}: {', '.join(matches[:5])}; give more digits"
        )

    def save(self, spec: Spec, trained: Trained, provenance: Mapping[str, Any]) -> None:
        """Store a finished run, with the checksums of its files."""
        import safetensors.torch

        files = {
            "spec.json": as_json(spec.to_dict()),
            "curve.csv": as_csv(trained.curve),
            "weights.safetensors": safetensors.torch.save(trained.weights),
            "provenance.json": as_json({**provenance, "seconds": trained.seconds}),
        }
        for step, weights in trained.snapshots.items():
            files[f"snapshots/{step:08d}.safetensors"] = safetensors.torch.save(weights)
        checksums = {name: {"bytes": len(content), "sha256": sha256(content)} for name, content in files.items()}
        self._add_folder(spec.run_id, {**files, "done.json": as_json({"format": FORMAT, "files": checksums})})

    def save_failure(self, spec: Spec, reason: str, provenance: Mapping[str, Any]) -> None:
        """Record that a run failed; it is tried again the next time it is requested."""
        failure = {"reason": reason, "provenance": dict(provenance)}
        self._add_folder(spec.run_id, {"spec.json": as_json(spec.to_dict()), "failed.json": as_json(failure)})

    def files(self, run_id: str) -> dict[str, bytes]:
        """Every file of a run by its path within the run's folder, to be added to another store."""
        folder = self.folder / run_id
        return {str(path.relative_to(folder)): read_file(path) for path in folder.rglob("*") if path.is_file()}

    def add(self, run_id: str, files: Mapping[str, bytes]) -> None:
        """Add a run that was done elsewhere, from its files; of a run that is here already, only the measures."""
        if any(Path(name).is_absolute() or ".." in Path(name).parts for name in files):
            raise BadInput(f"run {run_id}: a file's name leads out of the run's folder")
        if not self.has(run_id):
            self._add_folder(run_id, files)
        for name in sorted(files, reverse=True):  # maps before the numbers that hold their checksum
            if name.startswith("measures/"):
                (self.folder / run_id / "measures").mkdir(exist_ok=True)
                write_atomically(self.folder / run_id / name, files[name])
        if "done.json" in files:
            self.verify(run_id)

    def save_measures(self, run_id: str, name: str, version: int, values: Mapping[str, Any]) -> None:
        """Add a set of measures to a finished run, or replace it."""
        measure_files.write_measures(self.folder / run_id, name, version, values)

    def measures(self, run_id: str, versions: Mapping[str, int] | None = None) -> dict[str, dict[str, Any]]:
        """All sets of measures of a run by name; with `versions`, only those that are up to date."""
        return measure_files.read_measures(self.folder / run_id, versions)

    def save_diagnosis(self, run_id: str, diagnosis: Diagnosis) -> None:
        """Add a diagnosis to a finished run, or replace it; its numbers are the measures named "diagnosis"."""
        measure_files.write_diagnosis(self.folder / run_id, diagnosis)

    def has_diagnosis(self, run_id: str) -> bool:
        """Whether the run has a diagnosis that is up to date."""
        return measure_files.has_diagnosis(self.folder / run_id)

    def diagnosis(self, run_id: str) -> Diagnosis:
        """The run's diagnosis with its maps; Damaged if there is none, or none that can be read."""
        return measure_files.read_diagnosis(self.folder / run_id)

    def spec(self, run_id: str) -> Spec:
        return Spec.from_dict(self._checked_json(run_id, "spec.json"))

    def provenance(self, run_id: str) -> dict[str, Any]:
        return self._checked_json(run_id, "provenance.json")

    def weights(self, run_id: str, step: int | None = None) -> Weights:
        """The final weights, or the snapshot after a step."""
        import safetensors.torch

        name = "weights.safetensors" if step is None else f"snapshots/{step:08d}.safetensors"
        if step is not None and name not in self._checksums(run_id):
            raise BadInput(f"run {run_id} has no snapshot after step {step}; name it in training.snapshots")
        return safetensors.torch.load(self._checked(run_id, name))

    def curve(self, run_id: str) -> "pd.DataFrame":
        import pandas as pd

        return pd.read_csv(io.BytesIO(self._checked(run_id, "curve.csv")))

    def verify(self, run_id: str) -> None:
        """Compare the checksum of every file of a finished run; Damaged names one that does not match."""
        for name in self._checksums(run_id):
            self._checked(run_id, name)

    def record(self, run_id: str, verify: bool = False) -> Record:
        """The run's row in a listing, whatever its state; `verify` compares the checksum of every file."""
        folder = self.folder / run_id
        spec: Mapping[str, Any] = {}
        try:
            spec = read_json(folder / "spec.json")
            if not self.has(run_id) and (folder / "failed.json").is_file():
                failure = read_json(folder / "failed.json")
                if not isinstance(failure.get("provenance"), dict) or not isinstance(failure.get("reason"), str):
                    raise not_as_written(folder / "failed.json")
                return Record(run_id, "failed", spec, failure["provenance"], {}, failure["reason"])
            if verify:
                self.verify(run_id)
            self._checked(run_id, "spec.json")
            return Record(run_id, "done", spec, self.provenance(run_id), self.measures(run_id))
        except Damaged as damage:
            return Record(run_id, "damaged", spec, {}, {}, str(damage))

    def frame(self, run_ids: Sequence[str] | None = None, verify: bool = False) -> "pd.DataFrame":
        """One row per run: id, status, spec fields (`decoder.depth`), measures (`error.heldout_mse`) and seconds."""
        import pandas as pd

        rows = []
        for run_id in self.run_ids() if run_ids is None else run_ids:
            record = self.record(run_id, verify)
            row = {"run_id": run_id, "status": record.status, **flatten(record.spec), **flatten(record.measures)}
            rows.append({**row, "seconds": record.provenance.get("seconds"), "problem": record.problem})
        return pd.DataFrame(rows, columns=None if rows else ["run_id", "status", "seconds", "problem"])

    def _add_folder(self, run_id: str, files: Mapping[str, bytes]) -> None:
        """Add a run's folder in one step; a finished run stays as it is.

        The folder is filled under a temporary name and renamed. The rename fails if a folder of that name exists, from
        a failed run or another process: a finished run is left alone, any other is moved away, and we try again.
        """
        self.prepare()
        with self._staging(run_id) as staging:
            for name, content in files.items():
                (staging / name).parent.mkdir(exist_ok=True)
                write_atomically(staging / name, content)
            while not self.has(run_id):
                try:
                    os.rename(staging, self.folder / run_id)
                    sync_folder(self.folder)  # otherwise a power failure may forget the new name
                    return
                except OSError:
                    self._remove_unfinished(run_id)

    def _remove_unfinished(self, run_id: str) -> None:
        """Move an unfinished run away, but put it back if another process has finished it meanwhile.

        Renaming before looking is what makes this safe: once the folder has our name nobody else can change it, so what
        `done.json` says cannot become wrong between the look and the removal.
        """
        with self._staging(run_id) as away, suppress(OSError):
            if not self.has(run_id):
                os.rename(self.folder / run_id, away / "replaced")
                if (away / "replaced" / "done.json").exists():
                    os.rename(away / "replaced", self.folder / run_id)

    @contextmanager
    def _staging(self, run_id: str) -> Iterator[Path]:
        """A temporary folder in the store: a rename is atomic only within one file system."""
        staging = self.folder / f".staging-{run_id}-{uuid.uuid4().hex}"
        staging.mkdir()
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _checksums(self, run_id: str) -> dict[str, dict[str, Any]]:
        path = self.folder / run_id / "done.json"
        files = read_json(path).get("files")
        if not isinstance(files, dict) or not all(
            isinstance(file, dict) and "sha256" in file for file in files.values()
        ):
            raise not_as_written(path)
        return files

    def _checked(self, run_id: str, name: str) -> bytes:
        """A file's contents, if they have the checksum that was written when the run finished."""
        path = self.folder / run_id / name
        content = read_file(path)
        expected = self._checksums(run_id).get(name)
        if expected is None:
            raise not_as_written(self.folder / run_id / "done.json")
        if sha256(content) != expected["sha256"]:
            raise not_as_written(path, "its checksum does not match")
        return content

    def _checked_json(self, run_id: str, name: str) -> dict[str, Any]:
        return parse_json(self.folder / run_id / name, self._checked(run_id, name))

    def _read_format(self) -> int:
        path = self.folder / "store.json"
        try:
            version = read_json(path).get("format") if path.is_file() else FORMAT
        except Damaged:
            return FORMAT  # the runs have checksums of their own
        if not isinstance(version, int):
            raise BadInput(f"store {str(self.folder)!r}: store.json has format {version!r}; a whole number is needed")
        return version


def flatten(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, with dotted names.

    >>> flatten({"decoder": {"kind": "cnn", "depth": 4}, "seed": 0})
    {'decoder.kind': 'cnn', 'decoder.depth': 4, 'seed': 0}
    """
    flat: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = json.dumps(value) if isinstance(value, list) else value
    return flat
