"""The runs of a store as a report shows them: one row each, whatever its state, with a title and its diagnosis."""

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from composcope.decoders.base import Decoder
from composcope.diagnosis import Diagnosis
from composcope.encodings import Encoding, PerFactor
from composcope.errors import BadInput
from composcope.forecasts.forecast import stored_forecast
from composcope.pages.diagnosis_page import diagnosis_part, part_data
from composcope.runs import DIAGNOSIS_VERSION
from composcope.runs.spec import Spec
from composcope.sampling import Draws, Everything, Sampling, Stripes
from composcope.store.records import Record, flatten
from composcope.store.store import Store
from composcope.verdict import NOT_LEARNED

CODES = {"onehot": "one-hot"}
DECODERS = {"cnn": "CNN", "mlp": "MLP", "lowrank": "low-rank", "pixelwise": "pixel-wise"}


def title(spec: Spec) -> str:
    """The code, the decoder, the training set and the penalties.

    >>> import composcope as cs
    >>> task, hole = cs.BumpTask(16), cs.Square(4, 11)
    >>> title(cs.Spec(task, hole, cs.OneHot(), cs.CNN(), sampling=cs.Stripes(bumps=100)))
    'one-hot, CNN, stripes + 100'
    """
    parts = [_code(spec.encoding), _decoder(spec.decoder), _data(spec.sampling)]
    if spec.penalties:
        parts.append(" + ".join(penalty.kind for penalty in spec.penalties))
    return ", ".join(parts)


def titles(specs: Sequence[Spec]) -> list[str]:
    """Their titles; where several are the same, followed by the world if that differs, or else by what does."""
    plain = [title(spec) for spec in specs]
    worlds = [_world(spec) for spec in specs]
    distinct = [
        f"{name} ({world})" if _several(name, plain, worlds) else name
        for name, world in zip(plain, worlds, strict=True)
    ]
    often = Counter(distinct)
    named = []
    for spec, name in zip(specs, distinct, strict=True):
        namesakes = [flatten(other.to_dict()) for other, same in zip(specs, distinct, strict=True) if same == name]
        own = flatten(spec.to_dict())
        different = [f"{key} {own[key]}" for key in own if any(other.get(key) != own[key] for other in namesakes)]
        named.append(f"{name} ({', '.join(different)})" if often[name] > 1 and different else name)
    return named


def _several(name: str, names: Sequence[str], worlds: Sequence[str]) -> bool:
    """Whether runs of this name are from different worlds."""
    return len({world for other, world in zip(names, worlds, strict=True) if other == name}) > 1


def _world(spec: Spec) -> str:
    return f"{spec.task.kind}: {', '.join(factor.name for factor in spec.task.factors)}"


def _code(encoding: Encoding) -> str:
    if isinstance(encoding, PerFactor):
        return " and ".join(f"{name} {_code(each)}" for name, each in encoding.encodings.items())
    return CODES.get(encoding.kind, encoding.kind)


def _decoder(decoder: Decoder) -> str:
    return DECODERS.get(decoder.kind, decoder.kind)


def _data(sampling: Sampling) -> str:
    if isinstance(sampling, Everything):
        return "all seen"
    if isinstance(sampling, Draws):
        return f"{sampling.n} draws"
    if not isinstance(sampling, Stripes):
        return sampling.kind
    some = f"{sampling.fraction:.0%}" if sampling.fraction is not None else f"{sampling.bumps or 0}"
    if sampling.stripes == 0:
        return f"{some} of the seen"
    stripes = "stripes" if sampling.stripes is None else f"{sampling.stripes} stripes"
    return stripes if some in ("0", "0%") else f"{stripes} + {some}"


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
        return self._time("seconds")

    @property
    def cpu_seconds(self) -> float:
        """0 if it was not measured."""
        return self._time("cpu_seconds")

    def _time(self, name: str) -> float:
        value = self.provenance.get(name)
        return float(value) if isinstance(value, int | float) else 0.0

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
        diagnosis = store.run_folder(run_id).diagnosis()
        return _without_diagnosis(store, row) if diagnosis is None else _with_diagnosis(store, row, diagnosis)
    except Exception as error:  # a file that cannot be read must not cost the reader the whole page
        problem = f"its diagnosis cannot be read ({_line(error)}): {measure_command(store, run_id)}"
        return replace(_without_diagnosis(store, row), note=problem)


def short_row(store: Store, record: Record) -> RunRow:
    """The row of a run without its diagnosis, but with what that says in short."""
    row = RunRow(record, *described(record.spec))
    verdict = entry(record.measures, "diagnosis", "verdict")
    if not isinstance(verdict, Mapping):
        return row if record.status != "done" else _without_diagnosis(store, row)
    command = f"composcope diagnose {row.run_id} --store {shlex.quote(str(store.folder))}"
    note = f"its diagnosis is not on this page, which has room for some of them: {command}"
    return replace(_with_verdict(row, verdict), note=note)


def _without_diagnosis(store: Store, row: RunRow) -> RunRow:
    """The row with the verdict that is stored by itself, if there is one and its definition has not changed since."""
    note = f"not diagnosed: {measure_command(store, row.run_id)}"
    stored = "verdict" in row.record.measures and store.run_folder(row.run_id).measures({"verdict": DIAGNOSIS_VERSION})
    return replace(_with_verdict(row, stored["verdict"]) if stored else row, note=note)


def _with_verdict(row: RunRow, verdict: Mapping[str, Any]) -> RunRow:
    shares, factors = verdict.get("shares"), verdict.get("factors")
    return replace(
        row,
        kind=str(verdict.get("kind") or ""),
        shares=shares if isinstance(shares, Mapping) else None,
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
        loaded = Spec.from_dict(spec)
        name, task = title(loaded), loaded.task.to_dict(defaults=False)
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
    texts = [
        f"{name} {value:g}" if isinstance(value, int | float) else f"{value}"
        for name, value in part.items()
        if name != "kind"
        and not isinstance(value, bool)
        and isinstance(value, (int, float, str) if words else (int, float))
    ]
    return " ".join([str(part.get("kind")), *texts])


def _with_diagnosis(store: Store, row: RunRow, diagnosis: Diagnosis) -> RunRow:
    verdict = diagnosis.verdict
    return replace(
        row,
        kind=verdict.kind if verdict else "",
        shares=verdict.shares if verdict else None,
        factors=verdict.factors if verdict else {},
        composition=len(diagnosis.factors) > 1 and diagnosis.certificate.startswith("composition"),
        part=diagnosis_part(diagnosis, stored_forecast(store, row.run_id)),
        data=part_data(diagnosis),
    )


def _line(error: Exception) -> str:
    return f"{error}".split("\n")[0] or type(error).__name__
