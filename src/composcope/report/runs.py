"""The runs of a store as a report shows them: one row each, whatever its state, with its diagnosis if it has one."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from composcope.errors import BadInput
from composcope.experiments.run import Run
from composcope.experiments.spec import Spec
from composcope.experiments.store import Record, Store
from composcope.forecasts.stored import stored_forecast
from composcope.report.diagnosis_page import diagnosis_part, part_data
from composcope.report.samples import Samples, run_samples
from composcope.report.titles import title
from composcope.verdict import NOT_LEARNED


@dataclass(frozen=True)
class RunRow:
    """A run in the report's table.

    - `record`: the run as the store lists it, with status "missing" for one that a figure needs and the store lacks.
    - `title` and `about`: what was trained, in words. `note`: why there is no diagnosis.
    - `kind`, `shares`: what it does on held-out combinations, if there is a verdict; `factors`: the share in which each
      factor is right; `composition`: whether these combinations test composition.
    - `part`, `data`: what its diagnosis says and draws.
    """

    record: Record
    title: str
    about: str
    note: str = ""
    kind: str = ""
    shares: Mapping[str, float] | None = None
    factors: Mapping[str, float] = field(default_factory=dict)
    composition: bool = False
    part: Mapping[str, Any] | None = None
    data: Mapping[str, Any] | None = None

    @property
    def run_id(self) -> str:
        return self.record.run_id

    @property
    def status(self) -> str:
        return self.record.status

    @property
    def spec(self) -> Mapping[str, Any]:
        return self.record.spec

    @property
    def provenance(self) -> Mapping[str, Any]:
        return self.record.provenance

    @property
    def problem(self) -> str:
        """What is wrong with the run, or why it has no diagnosis."""
        return self.record.problem or self.note

    @property
    def error(self) -> dict[str, float]:
        """The measures made at the end of training."""
        measured = self.record.measures.get("error", {})
        return {name: float(value) for name, value in measured.items() if isinstance(value, int | float)}

    def get(self, *names: str) -> Any:
        """A field of the spec; None if it has none of that name."""
        return entry(self.spec, *names)

    @property
    def seed(self) -> Any:
        return self.get("seed")

    @property
    def composes(self) -> float | None:
        """The share of held-out images that it composes; None for one that has not learned what it saw."""
        return None if self.shares is None or self.kind == NOT_LEARNED else self.shares.get("composer")

    @property
    def seconds(self) -> float:
        seconds = self.provenance.get("seconds")
        return float(seconds) if isinstance(seconds, int | float) else 0.0

    @property
    def settings(self) -> str:
        """The whole spec, as it is stored."""
        return json.dumps(self.spec, indent=1, ensure_ascii=False)


def entry(spec: Any, *names: str) -> Any:
    """A nested value of plain data; None where the path ends early, since a damaged store may hold anything."""
    for name in names:
        spec = spec.get(name) if isinstance(spec, Mapping) else None
    return spec


def run_row(store: Store, run_id: str, record: Record | None = None) -> RunRow:
    """The row of a stored run; nothing is trained or diagnosed for it. `record`: the run as listed, if it was read."""
    record = record or store.record(run_id)
    row = RunRow(record, *described(record.spec))
    if record.status != "done":
        return row
    try:
        if not store.has_diagnosis(run_id):
            return short_row(store, record)
        return _with_diagnosis(store, row)
    except Exception as error:  # a file that cannot be read must not cost the reader the whole page
        problem = f"its diagnosis cannot be read ({_line(error)}): {measure_command(store, run_id)}"
        return replace(_judged(row, "verdict"), note=problem)


def short_row(store: Store, record: Record) -> RunRow:
    """The row of a run without its diagnosis, but with the verdict of that, or the one that is stored by itself."""
    row = RunRow(record, *described(record.spec))
    if record.status != "done":
        return row
    if isinstance(entry(record.measures, "diagnosis", "verdict"), Mapping):
        command = f"composcope diagnose {row.run_id} --store {shlex.quote(str(store.folder))}"
        note = f"its diagnosis is not on this page, which has room for some of them: {command}"
        return replace(_judged(row, "diagnosis", "verdict"), note=note)
    return replace(_judged(row, "verdict"), note=f"not diagnosed: {measure_command(store, row.run_id)}")


def _judged(row: RunRow, *names: str) -> RunRow:
    """The row with the verdict that the store has under these names, if there is one."""
    kind, shares, factors = (entry(row.record.measures, *names, part) for part in ("kind", "shares", "factors"))
    if not isinstance(kind, str) or not isinstance(shares, Mapping):
        return row
    return replace(
        row,
        kind=kind,
        shares=shares,
        factors=factors if isinstance(factors, Mapping) else {},
        composition=str(row.provenance.get("split", "")).startswith("composition"),
    )


def missing_row(spec: Spec) -> RunRow:
    """The row of a run that a figure or claim needs and the store lacks."""
    data = spec.to_dict()
    return RunRow(Record(spec.run_id, "missing", data, {}, {}, "not run yet"), *described(data))


def measure_command(store: Store, run_id: str) -> str:
    """The command that diagnoses the run."""
    return f"composcope measure {run_id} --store {shlex.quote(str(store.folder))}"


def described(spec: Mapping[str, Any]) -> tuple[str, str]:
    """A run's title, and in short its decoder's sizes, its task and its hole."""
    try:
        known = Spec.from_dict(spec)
        name, task = title(known), known.task.to_dict(defaults=False)
    except BadInput:  # a plugin that is not loaded, or not a spec at all
        kinds = [entry(spec, role, "kind") for role in ("encoding", "decoder", "sampling")]
        name, task = ", ".join(str(kind) for kind in kinds if kind is not None) or "unknown", entry(spec, "task")
    about = [brief(entry(spec, "decoder")), brief(task, words=True), f"{brief(entry(spec, 'holdout'))} held out"]
    return name, "; ".join(about) if spec else ""


def brief(part: Any, words: bool = False) -> str:
    """A component's kind and numbers, and with `words` its settings that are words.

    >>> brief({"kind": "cnn", "depth": 3, "width": 24, "batch_norm": False, "output": "linear"})
    'cnn depth 3 width 24'
    """
    if not isinstance(part, Mapping):
        return str(part)
    shown = [
        f"{name} {value:g}" if isinstance(value, int | float) else f"{value}"
        for name, value in part.items()
        if name != "kind"
        and not isinstance(value, bool)
        and isinstance(value, (int, float, str) if words else (int, float))
    ]
    return " ".join([str(part.get("kind")), *shown])


def _with_diagnosis(store: Store, row: RunRow) -> RunRow:
    diagnosis = store.diagnosis(row.run_id)
    samples, problem = _samples(store, row.run_id)
    part = diagnosis_part(diagnosis, samples, stored_forecast(store, row.run_id))
    if problem:
        part["notes"] = {**part["notes"], "samples": problem}
    verdict = diagnosis.verdict
    return replace(
        row,
        kind=verdict.kind if verdict else "",
        shares=verdict.shares if verdict else None,
        factors=verdict.factors if verdict else {},
        composition=len(diagnosis.factors) > 1 and diagnosis.certificate.startswith("composition"),
        part=part,
        data=part_data(diagnosis, samples),
    )


def _samples(store: Store, run_id: str) -> tuple[Samples | None, str]:
    """What the run draws at some held-out combinations, or why that cannot be shown."""
    try:
        return run_samples(Run(store.spec(run_id), store)), ""
    except Exception as error:  # damaged weights, or a plugin that is not loaded; the diagnosis is shown all the same
        return None, f"no images to show: {_line(error)}"


def _line(error: Exception) -> str:
    return f"{error}".split("\n")[0] or type(error).__name__
