"""What differs between stored runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from composcope.errors import BadInput
from composcope.store.store import Store, flatten

# Of the measures, what a reader compares first; everything else is in `Store.frame()`.
RESULTS = ("error.", "diagnosis.verdict.kind", "diagnosis.verdict.score", "diagnosis.verdict.factors.", "forecast.kind")


@dataclass(frozen=True)
class Comparison:
    """By name and run id: the fields of the specs that differ, and the main results that differ."""

    settings: dict[str, dict[str, Any]]
    results: dict[str, dict[str, Any]]


def compare_runs(store: Store, run_ids: Sequence[str]) -> Comparison:
    """The differences between finished runs; a field that a run does not have is None."""
    records = {run_id: store.record(run_id, verify=True) for run_id in run_ids}
    for run_id, record in records.items():
        if record.status != "done":
            raise BadInput(f"run {run_id} cannot be compared, it is {record.status}: {record.problem}")
    results = {run_id: flatten(record.measures) for run_id, record in records.items()}
    return Comparison(
        _differing({run_id: flatten(record.spec) for run_id, record in records.items()}),
        _differing({run_id: _main(values) for run_id, values in results.items()}),
    )


def _main(results: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in results.items() if name.startswith(RESULTS)}


def _differing(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """
    >>> _differing({"a": {"depth": 2, "seed": 0}, "b": {"depth": 3, "seed": 0}})
    {'depth': {'a': 2, 'b': 3}}
    """
    names = dict.fromkeys(name for table in tables.values() for name in table)
    rows = {name: {run_id: table.get(name) for run_id, table in tables.items()} for name in names}
    return {name: row for name, row in rows.items() if len({repr(value) for value in row.values()}) > 1}
