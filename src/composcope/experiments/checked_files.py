"""Reading stored files that may be missing or damaged, and the formats they are written in."""

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from composcope.errors import RunFailed


class Damaged(RunFailed):
    """A stored file is missing, unreadable or not the one that was written."""


def read_file(path: Path) -> bytes:
    """The file's contents; Damaged if it is missing or cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise not_as_written(path, "the file is missing") from None
    except OSError as error:
        raise Damaged(f"{path}: cannot be read: {error.strerror}") from None


def parse_json(path: Path, content: bytes) -> dict[str, Any]:
    """The table that the file's contents hold; Damaged if they are anything else."""
    try:
        data = json.loads(content)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise not_as_written(path)
    return data


def read_json(path: Path) -> dict[str, Any]:
    return parse_json(path, read_file(path))


def not_as_written(path: Path, problem: str = "is not what was written") -> Damaged:
    folder = path.parent.parent if path.parent.name == "snapshots" else path.parent
    return Damaged(f"{path}: {problem}; delete the folder {folder} to have the run done again")


def as_json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()


def as_csv(rows: list[dict[str, float]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()
