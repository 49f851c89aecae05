"""Reading stored files that may be missing, damaged or a stranger's, and the formats they are written in."""

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from composcope.errors import Damaged, TooNew
from composcope.files import MAX_BYTES, read_regular

# Of a JSON or CSV file; the largest that a run writes are below a tenth of it.
MAX_TEXT = 2**27
# Of tables within tables; a spec or diagnosis has a tenth of it.
MAX_DEPTH = 100
# A run's folder has files, and folders of files.
SUBFOLDERS = ("measures", "snapshots")


def read_file(path: Path, limit: int = MAX_BYTES) -> bytes:
    """The contents of a file in a run's folder; Damaged unless it is a regular file, not reached through a link."""
    try:
        return read_regular(path, limit, folders=1 + (path.parent.name in SUBFOLDERS))
    except FileNotFoundError:
        raise not_as_written(path, "the file is missing") from None
    except OSError as error:
        raise Damaged(f"{path}: cannot be read: {error.strerror}") from None


def parse_json(path: Path, content: bytes) -> dict[str, Any]:
    """The table that the file's contents hold; Damaged if they are anything else."""
    try:
        data = json.loads(content, parse_constant=_refuse)
        shallow = content.count(b"[") + content.count(b"{") <= MAX_DEPTH or _depth(data) <= MAX_DEPTH
    except (ValueError, RecursionError):
        shallow = False
    if not shallow or not isinstance(data, dict):
        raise not_as_written(path)
    return data


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _depth(data: Any) -> int:
    """How many tables and lists are inside each other, counted without recursion."""
    depth, level = 0, [data]
    while level := [part for part in level if type(part) is dict or type(part) is list]:
        depth += 1
        level = [inner for part in level for inner in (part.values() if isinstance(part, dict) else part)]
    return depth


def read_json(path: Path) -> dict[str, Any]:
    return parse_json(path, read_file(path, MAX_TEXT))


def check_format(path: Path, body: Mapping[str, Any], newest: int, key: str = "format") -> None:
    """Damaged if the file has a format that a later version writes; it must not be read as if it were known."""
    version = body.get(key, newest)
    if type(version) is not int:
        raise not_as_written(path)
    if version > newest:
        raise TooNew(f"{path}: {key} {version} is newer than this composcope knows ({newest}): upgrade it")


def not_as_written(path: Path, problem: str = "is not what was written") -> Damaged:
    folder = path.parent.parent if path.parent.name in SUBFOLDERS else path.parent
    return Damaged(f"{path}: {problem}; delete the folder {folder} to have the run done again")


def as_json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()


def as_csv(rows: list[dict[str, float]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()
