"""One run's folder in a store: what training left, sealed by checksums, and what was measured since.

A set of measures is `measures/<name>.json`, with its version and checksum. A diagnosis is one of them: its numbers are
in `diagnosis.json`, its maps in `diagnosis.npz`, and the first holds the checksum of the second, so that a pair from
two different diagnoses is noticed.
"""

import csv
import errno
import io
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composcope.errors import BadInput, CannotStore, Damaged, DiskFull
from composcope.files import MAX_BYTES, is_regular, make_folder, sha256, write_atomically
from composcope.runs import DIAGNOSIS_VERSION
from composcope.store.checked_files import (
    MAX_TEXT,
    as_json,
    check_format,
    not_as_written,
    parse_json,
    read_file,
    read_json,
)
from composcope.store.records import Record
from composcope.store.staging import is_sealed

# PyTorch takes seconds to import, and a listing does not need it.
if TYPE_CHECKING:
    import pandas as pd

    from composcope.diagnosis import Diagnosis
    from composcope.runs.spec import Spec
    from composcope.training import Weights

# Of `done.json` and `failed.json`, and of the store as a whole.
FORMAT = 1
# The names of the files that a run is sealed with.
SEALED = re.compile(r"(spec\.json|curve\.csv|provenance\.json|weights\.safetensors|snapshots/[0-9]{8,}\.safetensors)")
DIAGNOSIS = "diagnosis"


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Errors of the file system as one line that names the run whose folder this is."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
        reason = error.strerror or type(error).__name__
        message = f"run {path.name}: cannot be stored in {str(path.parent)!r}: {reason}"
        raise (DiskFull if full else CannotStore)(message) from None


@dataclass(frozen=True, repr=False)
class RunFolder:
    """The folder of a run, which is named after the run's id. What it holds may be missing, damaged or a stranger's."""

    path: Path

    def __repr__(self) -> str:
        return f"stored in {str(self.path.parent)!r}"

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def read_only(self) -> bool:
        """Whether this process may only read the store."""
        return self.path.parent.exists() and not os.access(self.path.parent, os.W_OK)

    # What training left

    def spec(self) -> "Spec":
        """The run's spec; Damaged if it is the spec of another run."""
        from composcope.runs.spec import Spec

        spec = Spec.from_dict(self._checked_json("spec.json"))
        if spec.run_id != self.run_id:
            raise not_as_written(self.path / "spec.json", f"is the spec of run {spec.run_id}")
        return spec

    def provenance(self) -> dict[str, Any]:
        return self._checked_json("provenance.json")

    def weights(self, step: int | None = None) -> "Weights":
        """The final weights, or the snapshot after a step."""
        import safetensors.torch
        from safetensors import SafetensorError

        name = "weights.safetensors" if step is None else f"snapshots/{step:08d}.safetensors"
        if step is not None and name not in self._checksums():
            raise BadInput(f"run {self.run_id} has no snapshot after step {step}; name it in training.snapshots")
        try:
            return safetensors.torch.load(self._checked(name))
        except (SafetensorError, ValueError, KeyError, RuntimeError) as error:
            raise not_as_written(self.path / name, f"cannot be read: {error}") from None

    def curve(self) -> "pd.DataFrame":
        """The loss by epoch."""
        import pandas as pd

        try:
            return pd.read_csv(io.BytesIO(self._checked("curve.csv")))
        except ValueError as error:
            raise not_as_written(self.path / "curve.csv", f"cannot be read: {error}") from None

    def losses(self) -> list[float]:
        """The loss after each epoch: a column of the curve, without pandas."""
        text = self._checked("curve.csv").decode(errors="replace")
        try:
            losses = [float(row["loss"]) for row in csv.DictReader(io.StringIO(text))]
            if not losses:
                raise ValueError("it has no rows")
            return losses
        except (KeyError, ValueError, TypeError, csv.Error) as error:
            raise not_as_written(self.path / "curve.csv", f"cannot be read: {error}") from None

    def verify(self) -> None:
        """Compare the checksum of every file of a finished run; Damaged names one that does not match."""
        checksums = self._checksums()
        for name in checksums:
            self._checked(name, checksums)
        self.measures()

    def record(self, verify: bool = False) -> Record:
        """The run's row in a listing, whatever its state; `verify` compares the checksum of every file."""
        spec: Mapping[str, Any] = {}
        try:
            spec = read_json(self.path / "spec.json")
            if not is_sealed(self.path) and is_regular(self.path / "failed.json"):
                return self._failure(spec)
            checksums = self._checksums()
            for name in checksums if verify else ():
                self._checked(name, checksums)
            spec = self._checked_json("spec.json", checksums)
            provenance = self._checked_json("provenance.json", checksums)
            return Record(self.run_id, "done", spec, provenance, self.measures())
        except Damaged as damage:
            return Record(self.run_id, "damaged", spec, {}, {}, str(damage))

    def _failure(self, spec: Mapping[str, Any]) -> Record:
        path = self.path / "failed.json"
        failure = read_json(path)
        check_format(path, failure, FORMAT)
        if not isinstance(failure.get("provenance"), dict) or not isinstance(failure.get("reason"), str):
            raise not_as_written(path)
        return Record(self.run_id, "failed", spec, failure["provenance"], {}, failure["reason"])

    def _checksums(self) -> dict[str, dict[str, Any]]:
        """The sealed files with their checksums, from a seal that is of this run and of a format that is known."""
        path = self.path / "done.json"
        seal = read_json(path)
        check_format(path, seal, FORMAT)
        if seal.get("run_id") != self.run_id:
            raise not_as_written(path, f"is the seal of run {seal.get('run_id')}")
        files = seal.get("files")
        if not isinstance(files, dict) or not all(
            isinstance(file, dict) and "sha256" in file and SEALED.fullmatch(name) for name, file in files.items()
        ):
            raise not_as_written(path)
        return files

    def _checked(self, name: str, checksums: Mapping[str, Mapping[str, Any]] | None = None) -> bytes:
        """A file's contents, if they have the checksum that was written when the run finished."""
        path = self.path / name
        content = read_file(path, MAX_BYTES if name.endswith(".safetensors") else MAX_TEXT)
        expected = (checksums or self._checksums()).get(name)
        if expected is None:
            raise not_as_written(self.path / "done.json")
        if sha256(content) != expected["sha256"]:
            raise not_as_written(path, "its checksum does not match")
        return content

    def _checked_json(self, name: str, checksums: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Any]:
        return parse_json(self.path / name, self._checked(name, checksums))

    # What was measured since

    def has_measures(self, name: str) -> bool:
        """Whether there is a set of measures of this name, in any state."""
        return is_regular(f"{self.path}/measures/{name}.json")

    def measures(self, versions: Mapping[str, int] | None = None) -> dict[str, dict[str, Any]]:
        """All sets of measures by name; with `versions`, those that it names and that are of the version it gives.

        A diagnosis of an earlier version counts as none.
        """
        measures = {}
        for name in sorted(self._measured() if versions is None else self._measured() & versions.keys()):
            if name == DIAGNOSIS:
                numbers = self._diagnosis_body()
                if numbers is not None:
                    measures[name] = _unpacked(self._measure(name), numbers, None).numbers()
                continue
            body = _checked_body(self._measure(name))
            if versions is None or versions[name] == body["version"]:
                measures[name] = body["values"]
        return measures

    def _measured(self) -> set[str]:
        """The names of the sets of measures; names that begin with a dot are of files that are half-written."""
        return {path.stem for path in (self.path / "measures").glob("*.json") if not path.name.startswith(".")}

    def save_measures(self, name: str, version: int, values: Mapping[str, Any], **more: str) -> None:
        """Add a set of measures to a finished run, or replace it; a set that a later version measured is not replaced.

        - `more`: what joins the version and the checksum in the file.
        """
        _check_older(self._measure(name), version)
        with storing(self.path):
            body = {"version": version, "sha256": _checksum(values), **more, "values": values}
            write_atomically(self._measures_folder() / f"{name}.json", as_json(body))

    def has_diagnosis(self) -> bool:
        """Whether there is a diagnosis that is up to date, with its maps."""
        path = self._measure(DIAGNOSIS)
        return is_regular(path) and self._diagnosis_body() is not None and is_regular(path.with_suffix(".npz"))

    def diagnosis(self) -> "Diagnosis | None":
        """The diagnosis with its maps, None if there is none that is up to date; Damaged if it cannot be read."""
        if not self.has_diagnosis() or (body := self._diagnosis_body()) is None:
            return None
        path = self._measure(DIAGNOSIS)
        maps = read_file(path.with_suffix(".npz"))
        if sha256(maps) != body["arrays_sha256"]:
            raise _damaged(path.with_suffix(".npz"), "its checksum does not match")
        return _unpacked(path, body, maps)

    def save_diagnosis(self, diagnosis: "Diagnosis") -> None:
        """Add a diagnosis to a finished run, or replace it; its numbers are the measures named "diagnosis"."""
        from composcope.diagnosis.diagnosis import pack

        _check_older(self._measure(DIAGNOSIS), DIAGNOSIS_VERSION)
        numbers, maps = pack(diagnosis)
        # The numbers come last, since they say which maps belong to them: a crash in between leaves the pair
        # unmatched, which is noticed, and the diagnosis is made again.
        with storing(self.path):
            write_atomically(self._measures_folder() / f"{DIAGNOSIS}.npz", maps)
        self.save_measures(DIAGNOSIS, DIAGNOSIS_VERSION, numbers, arrays_sha256=sha256(maps))

    def _measure(self, name: str) -> Path:
        return self.path / "measures" / f"{name}.json"

    def _measures_folder(self) -> Path:
        """The folder of measures, created if necessary; OSError if a link would lead out of the store."""
        if self.path.is_symlink():
            raise OSError(errno.ELOOP, f"{self.path.name} is a link; a folder is needed")
        make_folder(self.path / "measures")
        return self.path / "measures"

    def _diagnosis_body(self) -> dict[str, Any] | None:
        """What the file of the diagnosis holds, None if it is of an earlier version."""
        path = self._measure(DIAGNOSIS)
        body = _checked_body(path)
        check_format(path, body, DIAGNOSIS_VERSION, "version")
        if body["version"] < DIAGNOSIS_VERSION:
            return None
        if "arrays_sha256" not in body:
            raise _damaged(path)
        return body

    def files(self) -> dict[str, bytes]:
        """Every file by its path within the folder, to be added to another store."""
        return {str(path.relative_to(self.path)): read_file(path) for path in self.path.rglob("*") if path.is_file()}


def _checked_body(path: Path) -> dict[str, Any]:
    """The contents of a file of measures."""
    try:
        body = read_json(path)
    except Damaged as damage:
        raise _damaged(path, str(damage).partition(": ")[2].partition(";")[0]) from None
    # The checksum covers the values; a changed key among the others would make it look like another kind of file.
    expected = set(body) <= {"version", "sha256", "arrays_sha256", "values"} and type(body.get("version")) is int
    if not expected or not isinstance(body.get("values"), dict) or _checksum(body["values"]) != body.get("sha256"):
        raise _damaged(path)
    return body


def _check_older(path: Path, version: int) -> None:
    """TooNew if there is a set of measures that a later version wrote."""
    stored: Mapping[str, Any] = {}
    if is_regular(path):
        with suppress(Damaged):  # which may be replaced
            stored = _checked_body(path)
    check_format(path, stored, version, "version")


def _checksum(values: Any) -> str:
    """Of the values whatever their order in the file, which is kept: a diagnosis has its layers in order."""
    return sha256(json.dumps(values, sort_keys=True).encode())


def _damaged(path: Path, problem: str = "is not what was written") -> Damaged:
    return Damaged(f"{path}: {problem}; delete the file to have it measured again")


def _unpacked(path: Path, body: Mapping[str, Any], maps: bytes | None) -> "Diagnosis":
    """The diagnosis of a checked file; without its maps it has its numbers only."""
    from composcope.diagnosis.diagnosis import unpack

    try:
        return unpack(body["values"], maps)
    except (ValueError, AttributeError, TypeError) as error:
        raise _damaged(path, f"cannot be read: {error}") from None
