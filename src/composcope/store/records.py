"""A stored run as a row of a listing, as one flat table, and what differs between rows."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from composcope.errors import BadInput

Status = Literal["done", "failed", "damaged", "missing"]
# What is a cell of a table as it is.
SIMPLE = frozenset([str, int, float, bool, type(None)])
# Of the measures, what a reader compares first; everything else is in `Store.frame()`.
MAIN_MEASURES = (
    "error.",
    "diagnosis.verdict.kind",
    "diagnosis.verdict.score",
    "diagnosis.verdict.factors.",
    "forecast.kind",
)


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

    def row(self) -> dict[str, Any]:
        """The record as one flat table: `decoder.depth`, `error.heldout_mse`."""
        names = {"run_id": self.run_id, "status": self.status}
        row: dict[str, Any] = dict(names)
        _add_flat(row, self.spec, "")
        _add_flat(row, self.measures, "")
        row |= names  # a stranger's spec may have such fields
        row |= {name: self.provenance.get(name) for name in ("seconds", "cpu_seconds")}
        row["problem"] = self.problem
        return row


def flatten(data: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables as one, with dotted names.

    >>> flatten({"decoder": {"kind": "cnn", "depth": 4}, "seed": 0})
    {'decoder.kind': 'cnn', 'decoder.depth': 4, 'seed': 0}
    """
    flat: dict[str, Any] = {}
    _add_flat(flat, data, "")
    return flat


def _add_flat(flat: dict[str, Any], data: Mapping[str, Any], prefix: str) -> None:
    """Written for speed: the rows of a large store have a million values."""
    for key, value in data.items():
        kind = type(value)
        if kind in SIMPLE:
            flat[prefix + key] = value
        elif kind is dict or isinstance(value, Mapping):
            _add_flat(flat, value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = json.dumps(value) if isinstance(value, list) else value


@dataclass(frozen=True)
class Comparison:
    """By name and run id: the fields of the specs that differ, and the main results that differ."""

    settings: dict[str, dict[str, Any]]
    results: dict[str, dict[str, Any]]


def compare_records(records: Sequence[Record]) -> Comparison:
    """The differences between finished runs; a field that a run does not have is None."""
    for record in records:
        if record.status != "done":
            raise BadInput(f"run {record.run_id} cannot be compared, it is {record.status}: {record.problem}")
    results = {
        record.run_id: {
            name: value for name, value in flatten(record.measures).items() if name.startswith(MAIN_MEASURES)
        }
        for record in records
    }
    return Comparison(_differing({record.run_id: flatten(record.spec) for record in records}), _differing(results))


def _differing(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """
    >>> _differing({"a": {"depth": 2, "seed": 0}, "b": {"depth": 3, "seed": 0}})
    {'depth': {'a': 2, 'b': 3}}
    """
    names = dict.fromkeys(name for table in tables.values() for name in table)
    rows = {name: {run_id: table.get(name) for run_id, table in tables.items()} for name in names}
    return {name: row for name, row in rows.items() if len({repr(value) for value in row.values()}) > 1}
