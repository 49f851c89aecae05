"""The runs of a store as a report shows them: a row each, whatever its state, and its diagnosis if it has one."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from composcope.diagnosis import load_diagnosis
from composcope.errors import BadInput
from composcope.experiments.examine import is_diagnosed
from composcope.experiments.spec import Spec
from composcope.experiments.store import Store
from composcope.report.diagnosis_page import diagnosis_part, part_data
from composcope.report.samples import Samples, run_samples
from composcope.report.titles import title


@dataclass(frozen=True)
class RunRow:
    """A run in the report's table.

    - `status`: done, failed, damaged or missing; `problem`: why, or why there is no diagnosis.
    - `title` and `about`: what was trained, in words. `error`: the measures made at the end of training.
    - `kind`, `shares`: what it does on held-out combinations, if that was judged; `composition`: whether these test it.
    - `part`, `data`: what its diagnosis says and draws.
    """

    run_id: str
    status: str
    spec: Mapping[str, Any]
    provenance: Mapping[str, Any]
    title: str
    about: str
    error: Mapping[str, float]
    problem: str = ""
    kind: str = ""
    shares: Mapping[str, float] | None = None
    composition: bool = False
    part: Mapping[str, Any] | None = None
    data: Mapping[str, Any] | None = None

    def get(self, *names: str) -> Any:
        """A field of the spec, None if it has no such."""
        return field(self.spec, *names)

    @property
    def seed(self) -> Any:
        return self.get("seed")

    @property
    def composes(self) -> float | None:
        """The share of held-out images that it composes."""
        return None if self.shares is None else self.shares.get("composer")

    @property
    def seconds(self) -> float:
        found = self.provenance.get("seconds")
        return float(found) if isinstance(found, int | float) else 0.0

    @property
    def settings(self) -> str:
        """The whole spec, as it is stored."""
        return json.dumps(self.spec, indent=1, ensure_ascii=False)


def field(spec: Any, *names: str) -> Any:
    """A nested value of plain data, None where the path ends early: what is stored may be anything."""
    for name in names:
        spec = spec.get(name) if isinstance(spec, Mapping) else None
    return spec


def run_row(store: Store, run_id: str) -> RunRow:
    """The row of a stored run; nothing is trained or diagnosed for it."""
    record = store.record(run_id)
    measured = record.measures.get("error", {})
    error = {name: float(value) for name, value in measured.items() if isinstance(value, int | float)}
    row = RunRow(run_id, record.status, record.spec, record.provenance, *told(record.spec), error, record.problem)
    if record.status != "done":
        return row
    try:
        if not is_diagnosed(store, run_id):
            return replace(row, problem=f"not diagnosed: {measure_command(store, run_id)}")
        return _diagnosed(store, row)
    except Exception as trouble:  # a file that cannot be read must not cost the reader the page
        return replace(
            row, problem=f"its diagnosis cannot be read ({_line(trouble)}): {measure_command(store, run_id)}"
        )


def missing_row(spec: Spec) -> RunRow:
    """The row of a run that a figure or claim needs and the store lacks."""
    data = spec.to_dict()
    return RunRow(spec.run_id, "missing", data, {}, *told(data), {}, "not run yet")


def measure_command(store: Store, run_id: str) -> str:
    """What diagnoses the run."""
    return f"composcope measure {run_id} --store {shlex.quote(str(store.folder))}"


def told(spec: Mapping[str, Any]) -> tuple[str, str]:
    """A run's title, and in short its decoder's sizes, its task and its hole."""
    try:
        known = Spec.from_dict(spec)
        name, task = title(known), known.task.to_dict(defaults=False)
    except BadInput:  # a plugin that is not loaded, or no spec at all
        kinds = [field(spec, role, "kind") for role in ("encoding", "decoder", "sampling")]
        name, task = ", ".join(str(kind) for kind in kinds if kind is not None) or "unknown", field(spec, "task")
    about = [brief(field(spec, "decoder")), brief(task, words=True), f"{brief(field(spec, 'holdout'))} held out"]
    return name, "; ".join(about) if spec else ""


def brief(part: Any, words: bool = False) -> str:
    """A component's kind and numbers, and its settings in words if wanted.

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


def _diagnosed(store: Store, row: RunRow) -> RunRow:
    found = load_diagnosis(store.diagnosis_folder(row.run_id))
    shown, trouble = _samples(store, row.run_id)
    part = diagnosis_part(found, shown)
    if trouble:
        part["notes"] = {**part["notes"], "samples": trouble}
    judged = found.verdict
    return replace(
        row,
        kind=judged.kind if judged else "",
        shares=judged.shares if judged else None,
        composition=len(found.factors) > 1 and found.certificate.startswith("composition"),
        part=part,
        data=part_data(found, shown),
    )


def _samples(store: Store, run_id: str) -> tuple[Samples | None, str]:
    """What the run draws at some held-out combinations, or why that cannot be told."""
    try:
        return run_samples(store, run_id), ""
    except Exception as trouble:  # as above: weights that are damaged, a plugin that is not loaded
        return None, f"no images to show: {_line(trouble)}"


def _line(error: Exception) -> str:
    return f"{error}".split("\n")[0] or type(error).__name__
