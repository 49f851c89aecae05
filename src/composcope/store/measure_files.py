"""Measures beside a stored run: `measures/<name>.json`, each with its version and checksum.

A diagnosis is one of them: its numbers are in `diagnosis.json`, its maps in `diagnosis.npz`, and the first holds the
checksum of the second, so that a pair from two different diagnoses is noticed. Earlier versions wrote the numbers to
`measures/diagnosis.json` and the whole diagnosis once more to `diagnosis/numbers.json` and `diagnosis/arrays.npz`: such
a diagnosis is read from there, and replaced when the run is diagnosed again.
"""

import errno
import json
import math
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composcope.errors import BadInput
from composcope.files import is_regular, make_folder, sha256, write_atomically
from composcope.store.checked_files import Damaged, as_json, check_format, read_file, read_json

if TYPE_CHECKING:
    from composcope.diagnosis import Diagnosis

# Raised when the definition of a measure in the diagnosis changes; older diagnoses are then made again.
DIAGNOSIS_VERSION = 6
DIAGNOSIS = "diagnosis"


def write_measures(folder: Path, name: str, version: int, values: Mapping[str, Any], **more: str) -> None:
    """Write one set of measures into a run's folder; `more` joins the version and the checksum.

    A set that a later version measured is not replaced.
    """
    _check_older(folder / "measures" / f"{name}.json", version)
    body = {"version": version, "sha256": _checksum(values), **more, "values": values}
    write_atomically(_measures_folder(folder) / f"{name}.json", as_json(body))


def _check_older(path: Path, version: int) -> None:
    """TooNew if there is a set of measures that a later version wrote."""
    stored: Mapping[str, Any] = {}
    if is_regular(path):
        with suppress(Damaged):  # which may be replaced
            stored = _checked_body(path)
    if isinstance(stored.get("version"), int):
        check_format(path, stored, version, "version")


def _measures_folder(folder: Path) -> Path:
    """The folder of a run's measures, created if necessary; OSError if a link would lead out of the store."""
    if folder.is_symlink():
        raise OSError(errno.ELOOP, f"{folder.name} is a link; a folder is needed")
    make_folder(folder / "measures")
    return folder / "measures"


def _checksum(values: Any) -> str:
    """Of the values whatever their order in the file, which is kept: a diagnosis has its layers in order."""
    return sha256(json.dumps(values, sort_keys=True).encode())


def read_measures(folder: Path, versions: Mapping[str, int] | None = None) -> dict[str, dict[str, Any]]:
    """All sets of measures in a run's folder by name; with `versions`, only those that are up to date."""
    measures = {}
    for path in sorted((folder / "measures").glob("*.json")):
        if path.name.startswith("."):
            continue  # half-written
        body = _checked_body(path)
        if path.stem == DIAGNOSIS:
            check_format(path, body, DIAGNOSIS_VERSION, "version")
        if versions is None or versions.get(path.stem) == body["version"]:
            measures[path.stem] = _numbers(path, body) if "arrays_sha256" in body else body["values"]
    return measures


def _checked_body(path: Path) -> dict[str, Any]:
    try:
        body = read_json(path)
    except Damaged as damage:
        raise _damaged(path, str(damage).partition(": ")[2].partition(";")[0]) from None
    # The checksum covers the values; a changed key among the others would make a diagnosis look like another layout.
    known = set(body) <= {"version", "sha256", "arrays_sha256", "values"} and "version" in body
    if not known or not isinstance(body.get("values"), dict) or _checksum(body["values"]) != body.get("sha256"):
        raise _damaged(path)
    return body


def _damaged(path: Path, problem: str = "is not what was written") -> Damaged:
    return Damaged(f"{path}: {problem}; delete the file to have it measured again")


def _numbers(path: Path, body: Mapping[str, Any]) -> dict[str, Any]:
    """A diagnosis's numbers, without reading its maps."""
    from composcope.diagnosis.diagnosis import unpack

    try:
        return unpack(body["values"], None).numbers()
    except (ValueError, AttributeError, TypeError) as error:
        raise _damaged(path, f"cannot be read: {error}") from None


def write_diagnosis(folder: Path, diagnosis: "Diagnosis") -> None:
    """Store a diagnosis in a run's folder, replacing an older one."""
    from composcope.diagnosis.diagnosis import pack

    _check_older(folder / "measures" / f"{DIAGNOSIS}.json", DIAGNOSIS_VERSION)
    tree, content = pack(diagnosis)
    # The numbers come last, since they say which maps belong to them: a crash in between leaves the pair unmatched,
    # which is noticed, and the diagnosis is made again.
    write_atomically(_measures_folder(folder) / f"{DIAGNOSIS}.npz", content)
    write_measures(folder, DIAGNOSIS, DIAGNOSIS_VERSION, tree, arrays_sha256=sha256(content))
    shutil.rmtree(folder / DIAGNOSIS, ignore_errors=True)


def has_measures(folder: Path | str, name: str) -> bool:
    """Whether the run's folder has a set of measures of this name, in any state."""
    return is_regular(f"{folder}/measures/{name}.json")


def has_diagnosis(folder: Path) -> bool:
    """Whether the run's folder has an up-to-date diagnosis."""
    return _current_body(folder) is not None


def current_diagnosis(folder: Path) -> "Diagnosis | None":
    """The up-to-date diagnosis with its maps, None if there is none; Damaged if it cannot be read."""
    body = _current_body(folder)
    return None if body is None else _with_maps(folder, body)


def read_diagnosis(folder: Path) -> "Diagnosis":
    """The stored diagnosis with its maps; Damaged if it cannot be read."""
    path = folder / "measures" / f"{DIAGNOSIS}.json"
    body = _checked_body(path)
    check_format(path, body, DIAGNOSIS_VERSION, "version")
    return _with_maps(folder, body)


def _current_body(folder: Path) -> dict[str, Any] | None:
    path = folder / "measures" / f"{DIAGNOSIS}.json"
    if not is_regular(path):
        return None
    body = _checked_body(path)
    check_format(path, body, DIAGNOSIS_VERSION, "version")
    maps = path.with_suffix(".npz") if "arrays_sha256" in body else folder / DIAGNOSIS / "numbers.json"
    return body if body["version"] == DIAGNOSIS_VERSION and is_regular(maps) else None


def _with_maps(folder: Path, body: Mapping[str, Any]) -> "Diagnosis":
    from composcope.diagnosis.diagnosis import unpack

    if "arrays_sha256" not in body:
        return _earlier_diagnosis(folder / DIAGNOSIS, body["values"])
    path = folder / "measures" / f"{DIAGNOSIS}.json"
    content = read_file(path.with_suffix(".npz"))
    if sha256(content) != body["arrays_sha256"]:
        raise _damaged(path.with_suffix(".npz"), "its checksum does not match")
    try:
        return unpack(body["values"], content)
    except ValueError as error:
        raise _damaged(path, f"cannot be read: {error}") from None


def _earlier_diagnosis(folder: Path, numbers: Mapping[str, Any]) -> "Diagnosis":
    """A diagnosis in the layout of earlier versions, if it has the numbers that were stored with a checksum."""
    from composcope.diagnosis import load_diagnosis

    if folder.is_symlink():
        raise _damaged(folder, "is a link")
    try:
        diagnosis = load_diagnosis(folder)
    except BadInput as error:
        raise Damaged(str(error)) from None
    if not _agree(diagnosis.numbers(), numbers):
        raise _damaged(folder / "numbers.json")
    return diagnosis


def _agree(read: Any, stored: Any) -> bool:
    """Whether two trees have the same numbers wherever both have one, up to the rounding of their formats."""
    if isinstance(read, Mapping) and isinstance(stored, Mapping):
        return all(_agree(read[name], stored[name]) for name in read.keys() & stored.keys())
    if isinstance(read, int | float) and isinstance(stored, int | float):
        return math.isclose(read, stored, rel_tol=1e-6, abs_tol=1e-12)
    return True
