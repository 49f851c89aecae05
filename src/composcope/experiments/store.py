"""Results on disk: the only room that touches them.

    store/store.json                      the format's version
    store/<run_id>/spec.json curve.csv weights.safetensors provenance.json [snapshots/<step>.safetensors] done.json
    store/<run_id>/measures/<name>.json   added later, each with its version and checksum
    store/<run_id>/diagnosis/             added later: the maps behind the measures named "diagnosis"
    store/<run_id>/spec.json failed.json  a run that diverged, with the reason

A run's folder is filled under a temporary name and renamed when complete, so it is there whole or not at all;
`done.json` holds the checksums of the others. Nothing is ever loaded by running code.
"""

import csv
import hashlib
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

from composcope.errors import BadInput, RunFailed
from composcope.experiments.spec import Spec
from composcope.training import Trained, Weights

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1
STALE_SECONDS = 3600
RUN_ID = re.compile("[0-9a-f]{16}")
Status = Literal["done", "failed", "damaged"]


class Damaged(RunFailed):
    """A stored file is missing, unreadable or not the one that was written."""


@dataclass(frozen=True)
class Record:
    """A stored run without its weights: enough for a table."""

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
        found = self._read_format()
        if found > FORMAT:
            raise BadInput(f"store {str(folder)!r} has format {found}; this composcope knows {FORMAT}: upgrade it")

    def __repr__(self) -> str:
        return f"Store({str(self.folder)!r})"

    def prepare(self) -> None:
        """Make the folder, or say that nothing can be written there; clear what a killed process left half-written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._staging("check"):
                pass
            if not (self.folder / "store.json").exists():
                self._write(self.folder / "store.json", _json({"format": FORMAT}))
        except OSError as error:
            raise BadInput(f"store {str(self.folder)!r} cannot be written: {error.strerror}") from None
        for leftover in self.folder.glob(".staging-*"):
            with suppress(FileNotFoundError):  # a rival's, finished meanwhile
                if time.time() - leftover.stat().st_mtime > STALE_SECONDS:
                    shutil.rmtree(leftover, ignore_errors=True)

    def has(self, run_id: str) -> bool:
        return (self.folder / run_id / "done.json").is_file()

    def run_ids(self) -> list[str]:
        """Every run's id, done, failed or damaged, in alphabetical order."""
        if not self.folder.is_dir():
            return []
        return sorted(path.name for path in self.folder.iterdir() if path.is_dir() and RUN_ID.fullmatch(path.name))

    def find(self, prefix: str) -> str:
        """The one run whose id begins with this."""
        matches = [run_id for run_id in self.run_ids() if run_id.startswith(prefix)] if prefix else []
        if len(matches) == 1:
            return matches[0]
        known = f"it holds {len(self.run_ids())} runs; `composcope list` shows them"
        if not matches:
            raise BadInput(f"no run in store {str(self.folder)!r} has an id that begins with {prefix!r}; {known}")
        raise BadInput(
            f"{len(matches)} runs have ids that begin with {prefix!r}: {', '.join(matches[:5])}; give more digits"
        )

    def save(self, spec: Spec, trained: Trained, provenance: Mapping[str, Any]) -> None:
        """Seal a finished run."""
        import safetensors.torch

        files = {
            "spec.json": _json(spec.to_dict()),
            "curve.csv": _csv(trained.curve),
            "weights.safetensors": safetensors.torch.save(trained.weights),
            "provenance.json": _json({**provenance, "seconds": trained.seconds}),
        }
        for step, weights in trained.snapshots.items():
            files[f"snapshots/{step:08d}.safetensors"] = safetensors.torch.save(weights)
        seal = {name: {"bytes": len(content), "sha256": _sha256(content)} for name, content in files.items()}
        self._place(spec.run_id, {**files, "done.json": _json({"format": FORMAT, "files": seal})})

    def save_failure(self, spec: Spec, reason: str, provenance: Mapping[str, Any]) -> None:
        """Record that a run was tried and did not end well; it is tried again when asked for again."""
        failure = {"reason": reason, "provenance": dict(provenance)}
        self._place(spec.run_id, {"spec.json": _json(spec.to_dict()), "failed.json": _json(failure)})

    def save_measures(self, run_id: str, name: str, version: int, values: Mapping[str, Any]) -> None:
        """Add a set of measures to a sealed run, or renew it."""
        content = json.dumps(values, sort_keys=True, allow_nan=False)
        body = {"version": version, "sha256": _sha256(content.encode()), "values": json.loads(content)}
        path = self.folder / run_id / "measures" / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        self._write(path, _json(body))

    def measures(self, run_id: str, versions: Mapping[str, int] | None = None) -> dict[str, dict[str, Any]]:
        """All sets of measures of a run by name; with `versions`, only those that are up to date."""
        found = {}
        for path in sorted((self.folder / run_id / "measures").glob("*.json")):
            try:
                body = _parse(path, _read(path))
            except Damaged:
                body = {}
            values = body.get("values", {})
            if _sha256(json.dumps(values, sort_keys=True).encode()) != body.get("sha256"):
                raise Damaged(f"{path}: is not what was written; delete the file to have it measured again")
            if versions is None or versions.get(path.stem) == body["version"]:
                found[path.stem] = values
        return found

    def diagnosis_folder(self, run_id: str) -> Path:
        """Where a run's diagnosis is kept, with its maps."""
        return self.folder / run_id / "diagnosis"

    def spec(self, run_id: str) -> Spec:
        return Spec.from_dict(_parse(self.folder / run_id / "spec.json", self._sealed(run_id, "spec.json")))

    def provenance(self, run_id: str) -> dict[str, Any]:
        return _parse(self.folder / run_id / "provenance.json", self._sealed(run_id, "provenance.json"))

    def weights(self, run_id: str, step: int | None = None) -> Weights:
        """The final weights, or the snapshot after a step."""
        import safetensors.torch

        name = "weights.safetensors" if step is None else f"snapshots/{step:08d}.safetensors"
        if step is not None and name not in self._seal(run_id):
            raise BadInput(f"run {run_id} has no snapshot after step {step}; name it in training.snapshots")
        return safetensors.torch.load(self._sealed(run_id, name))

    def curve(self, run_id: str) -> "pd.DataFrame":
        import pandas as pd

        return pd.read_csv(io.BytesIO(self._sealed(run_id, "curve.csv")))

    def record(self, run_id: str, verify: bool = False) -> Record:
        """What a table shows of a run, whatever its state; `verify` compares the checksum of every file."""
        folder = self.folder / run_id
        spec: Mapping[str, Any] = {}
        try:
            spec = _parse(folder / "spec.json", _read(folder / "spec.json"))
            if not self.has(run_id) and (folder / "failed.json").is_file():
                failure = _parse(folder / "failed.json", _read(folder / "failed.json"))
                if not isinstance(failure.get("provenance"), dict) or not isinstance(failure.get("reason"), str):
                    raise _not_as_written(folder / "failed.json")
                return Record(run_id, "failed", spec, failure["provenance"], {}, failure["reason"])
            for name in self._seal(run_id) if verify else ("spec.json",):
                self._sealed(run_id, name)
            return Record(run_id, "done", spec, self.provenance(run_id), self.measures(run_id))
        except Damaged as damage:
            return Record(run_id, "damaged", spec, {}, {}, str(damage))

    def frame(self, run_ids: Sequence[str] | None = None, verify: bool = False) -> "pd.DataFrame":
        """One row a run: its id, status, spec fields (`decoder.depth`), measures (`error.heldout_mse`) and seconds."""
        import pandas as pd

        rows = []
        for run_id in self.run_ids() if run_ids is None else run_ids:
            record = self.record(run_id, verify)
            row = {"run_id": run_id, "status": record.status, **flatten(record.spec), **flatten(record.measures)}
            rows.append({**row, "seconds": record.provenance.get("seconds"), "problem": record.problem})
        return pd.DataFrame(rows, columns=None if rows else ["run_id", "status", "seconds", "problem"])

    def _place(self, run_id: str, files: Mapping[str, bytes]) -> None:
        """Put a run's folder in place in one step; a run that is already sealed stays as it is."""
        self.prepare()
        with self._staging(run_id) as staging:
            for name, content in files.items():
                (staging / name).parent.mkdir(exist_ok=True)
                self._write(staging / name, content)
            while not self.has(run_id):
                try:
                    os.rename(staging, self.folder / run_id)
                    return
                except OSError:
                    self._clear(run_id)

    def _clear(self, run_id: str) -> None:
        """Take a failed run out of the way, but put it back if a rival has sealed it meanwhile."""
        with self._staging(run_id) as away, suppress(OSError):
            if not self.has(run_id):
                os.rename(self.folder / run_id, away / "replaced")
                if (away / "replaced" / "done.json").exists():
                    os.rename(away / "replaced", self.folder / run_id)

    @contextmanager
    def _staging(self, run_id: str) -> Iterator[Path]:
        staging = self.folder / f".staging-{run_id}-{uuid.uuid4().hex}"
        staging.mkdir()
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _seal(self, run_id: str) -> dict[str, dict[str, Any]]:
        path = self.folder / run_id / "done.json"
        files = _parse(path, _read(path)).get("files")
        if not isinstance(files, dict) or not all(
            isinstance(file, dict) and "sha256" in file for file in files.values()
        ):
            raise _not_as_written(path)
        return files

    def _sealed(self, run_id: str, name: str) -> bytes:
        """A file's contents, if they are what was sealed."""
        path = self.folder / run_id / name
        content = _read(path)
        sealed = self._seal(run_id).get(name)
        if sealed is None:
            raise _not_as_written(self.folder / run_id / "done.json")
        if _sha256(content) != sealed["sha256"]:
            raise _not_as_written(path, "its checksum does not match")
        return content

    def _read_format(self) -> int:
        path = self.folder / "store.json"
        try:
            found = _parse(path, _read(path)).get("format") if path.is_file() else FORMAT
        except Damaged:
            return FORMAT  # the runs have seals of their own
        if not isinstance(found, int):
            raise BadInput(f"store {str(self.folder)!r}: store.json has format {found!r}; a whole number is needed")
        return found

    @staticmethod
    def _write(path: Path, content: bytes) -> None:
        """Write under another name and rename, so that a reader never sees half a file."""
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


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


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise _not_as_written(path, "the file is missing") from None
    except OSError as error:
        raise Damaged(f"{path}: cannot be read: {error.strerror}") from None


def _parse(path: Path, content: bytes) -> dict[str, Any]:
    try:
        data = json.loads(content)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise _not_as_written(path)
    return data


def _not_as_written(path: Path, what: str = "is not what was written") -> Damaged:
    folder = path.parent.parent if path.parent.name == "snapshots" else path.parent
    return Damaged(f"{path}: {what}; delete the folder {folder} to have the run done again")


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()


def _csv(rows: list[dict[str, float]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
