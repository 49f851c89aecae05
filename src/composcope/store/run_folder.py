"""One run's folder in a store, read: each file is compared with the checksum written when the run finished."""

import csv
import io
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composcope.errors import BadInput
from composcope.files import MOST_BYTES, is_regular, sha256
from composcope.store import measure_files
from composcope.store.checked_files import (
    MOST_TEXT,
    Damaged,
    check_format,
    not_as_written,
    parse_json,
    read_file,
    read_json,
)
from composcope.store.records import Record

# PyTorch takes seconds to import, and a listing does not need it.
if TYPE_CHECKING:
    import pandas as pd

    from composcope.runs.spec import Spec
    from composcope.training import Weights

# Of `done.json` and `failed.json`, and of the store as a whole.
FORMAT = 1
# The names of the files that a run is sealed with.
SEALED = re.compile(r"(spec\.json|curve\.csv|provenance\.json|weights\.safetensors|snapshots/[0-9]{8,}\.safetensors)")


def is_sealed(folder: Path | str) -> bool:
    """Whether the folder has a run that is trained, its files complete."""
    return is_regular(f"{folder}/done.json")


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, which is named after the run's id. What it holds may be missing, damaged or a stranger's."""

    path: Path

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def sealed(self) -> bool:
        """Whether the run is trained, and its files complete."""
        return is_sealed(self.path)

    def spec(self) -> "Spec":
        """The run's spec; Damaged if it is the spec of another run."""
        from composcope.runs.spec import Spec

        spec = Spec.from_dict(self._checked_json("spec.json"))
        if spec.run_id != self.run_id:
            raise self._of_another_run(spec.run_id)
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

    def record(self, verify: bool = False) -> Record:
        """The run's row in a listing, whatever its state; `verify` compares the checksum of every file."""
        spec: Mapping[str, Any] = {}
        try:
            content = read_file(self.path / "spec.json", MOST_TEXT)
            spec = parse_json(self.path / "spec.json", content)
            if not self.sealed and is_regular(self.path / "failed.json"):
                return self._failure(spec)
            seal = self._seal()
            checksums = self._checksums(seal)
            names = dict.fromkeys(["spec.json", "provenance.json", *(checksums if verify else [])])
            contents = {name: self._checked(name, checksums) for name in names}
            if contents["spec.json"] != content:
                raise not_as_written(self.path / "spec.json")
            if "run_id" not in seal:
                self._check_identity(spec)
            provenance = parse_json(self.path / "provenance.json", contents["provenance.json"])
            return Record(self.run_id, "done", spec, provenance, measure_files.read_measures(self.path))
        except Damaged as damage:
            return Record(self.run_id, "damaged", spec, {}, {}, str(damage))

    def _failure(self, spec: Mapping[str, Any]) -> Record:
        path = self.path / "failed.json"
        failure = read_json(path)
        check_format(path, failure, FORMAT)
        if not isinstance(failure.get("provenance"), dict) or not isinstance(failure.get("reason"), str):
            raise not_as_written(path)
        return Record(self.run_id, "failed", spec, failure["provenance"], {}, failure["reason"])

    def _check_identity(self, spec: Mapping[str, Any]) -> None:
        """Damaged if the folder is a copy of another run's; runs of a plugin that is not loaded cannot be checked."""
        from composcope.runs.spec import Spec

        with suppress(BadInput):
            actual = Spec.from_dict(spec).run_id
            if actual != self.run_id:
                raise self._of_another_run(actual)

    def _of_another_run(self, actual: str) -> Damaged:
        return not_as_written(self.path / "spec.json", f"is the spec of run {actual}")

    def _seal(self) -> dict[str, Any]:
        """What `done.json` says, if it is of this run and of a format that is known."""
        path = self.path / "done.json"
        seal = read_json(path)
        check_format(path, seal, FORMAT)
        if seal.get("run_id", self.run_id) != self.run_id:
            raise not_as_written(path, f"is the seal of run {seal['run_id']}")
        return seal

    def _checksums(self, seal: Mapping[str, Any] | None = None) -> dict[str, dict[str, Any]]:
        files = (seal or self._seal()).get("files")
        if not isinstance(files, dict) or not all(
            isinstance(file, dict) and "sha256" in file and SEALED.fullmatch(name) for name, file in files.items()
        ):
            raise not_as_written(self.path / "done.json")
        return files

    def _checked(self, name: str, checksums: Mapping[str, Mapping[str, Any]] | None = None) -> bytes:
        """A file's contents, if they have the checksum that was written when the run finished."""
        path = self.path / name
        content = read_file(path, MOST_BYTES if name.endswith(".safetensors") else MOST_TEXT)
        expected = (checksums or self._checksums()).get(name)
        if expected is None:
            raise not_as_written(self.path / "done.json")
        if sha256(content) != expected["sha256"]:
            raise not_as_written(path, "its checksum does not match")
        return content

    def _checked_json(self, name: str) -> dict[str, Any]:
        return parse_json(self.path / name, self._checked(name))
