"""Measures beside a stored run: `measures/<name>.json`, each with its version and checksum.

A diagnosis is one of them: its numbers are in `diagnosis.json`, its maps in `diagnosis.npz`, and the first holds the
checksum of the second, so that a pair from two different diagnoses is noticed. Earlier versions wrote the numbers to
`measures/diagnosis.json` and the whole diagnosis once more to `diagnosis/numbers.json` and `diagnosis/arrays.npz`: such
a diagnosis is read from there, and replaced when the run is diagnosed again.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from composcope.diagnosis import Diagnosis, load_diagnosis
from composcope.diagnosis.files import pack, unpack
from composcope.errors import BadInput
from composcope.experiments.checked_files import Damaged, as_json, read_file, read_json
from composcope.files import sha256, write_atomically

# Raised when the definition of a measure in the diagnosis changes; older diagnoses are then made again.
DIAGNOSIS_VERSION = 3
DIAGNOSIS = "diagnosis"


def write_measures(folder: Path, name: str, version: int, values: Mapping[str, Any], **more: str) -> None:
    """Write one set of measures into a run's folder; `more` joins the version and the checksum."""
    body = {"version": version, "sha256": _checksum(values), **more, "values": values}
    path = folder / "measures" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, as_json(body))


def _checksum(values: Any) -> str:
    """Of the values whatever their order in the file, which is kept: a diagnosis has its layers in order."""
    return sha256(json.dumps(values, sort_keys=True).encode())


def read_measures(folder: Path, versions: Mapping[str, int] | None = None) -> dict[str, dict[str, Any]]:
    """All sets of measures in a run's folder by name; with `versions`, only those that are up to date."""
    measures = {}
    for path in sorted((folder / "measures").glob("*.json")):
        body = _checked_body(path)
        if versions is None or versions.get(path.stem) == body["version"]:
            measures[path.stem] = _numbers(path, body) if "arrays_sha256" in body else body["values"]
    return measures


def _checked_body(path: Path) -> dict[str, Any]:
    try:
        body = read_json(path)
    except Damaged:
        body = {}
    # The checksum covers the values; a changed key among the others would make a diagnosis look like another layout.
    known = set(body) <= {"version", "sha256", "arrays_sha256", "values"} and "version" in body
    if not known or _checksum(body.get("values", {})) != body.get("sha256"):
        raise _damaged(path)
    return body


def _damaged(path: Path, problem: str = "is not what was written") -> Damaged:
    return Damaged(f"{path}: {problem}; delete the file to have it measured again")


def _numbers(path: Path, body: Mapping[str, Any]) -> dict[str, Any]:
    """A diagnosis's numbers, without reading its maps."""
    try:
        return unpack(body["values"], None).numbers()
    except (ValueError, AttributeError, TypeError) as error:
        raise _damaged(path, f"cannot be read: {error}") from None


def write_diagnosis(folder: Path, diagnosis: Diagnosis) -> None:
    """Store a diagnosis in a run's folder, replacing an older one."""
    tree, content = pack(diagnosis)
    (folder / "measures").mkdir(exist_ok=True)
    # The numbers come last, since they say which maps belong to them: a crash in between leaves the pair unmatched,
    # which is noticed, and the diagnosis is made again.
    write_atomically(folder / "measures" / f"{DIAGNOSIS}.npz", content)
    write_measures(folder, DIAGNOSIS, DIAGNOSIS_VERSION, tree, arrays_sha256=sha256(content))
    shutil.rmtree(folder / DIAGNOSIS, ignore_errors=True)


def has_diagnosis(folder: Path) -> bool:
    """Whether the run's folder has an up-to-date diagnosis."""
    path = folder / "measures" / f"{DIAGNOSIS}.json"
    if not path.is_file():
        return False
    body = _checked_body(path)
    if body["version"] != DIAGNOSIS_VERSION:
        return False
    maps = path.with_suffix(".npz") if "arrays_sha256" in body else folder / DIAGNOSIS / "numbers.json"
    return maps.is_file()


def read_diagnosis(folder: Path) -> Diagnosis:
    """The stored diagnosis with its maps; Damaged if it cannot be read."""
    path = folder / "measures" / f"{DIAGNOSIS}.json"
    body = _checked_body(path)
    if "arrays_sha256" not in body:
        try:
            return load_diagnosis(folder / DIAGNOSIS)
        except BadInput as error:
            raise Damaged(str(error)) from None
    maps = path.with_suffix(".npz")
    content = read_file(maps)
    if sha256(content) != body["arrays_sha256"]:
        raise _damaged(maps, "its checksum does not match")
    try:
        return unpack(body["values"], content)
    except ValueError as error:
        raise _damaged(path, f"cannot be read: {error}") from None
