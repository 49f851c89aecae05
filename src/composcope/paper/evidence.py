"""What figures and claims are made from: stored runs by name, one a seed, and nothing else."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from composcope.diagnosis import Diagnosis
from composcope.errors import BadInput
from composcope.experiments.examine import stored_diagnosis
from composcope.experiments.run import Result, load, outputs
from composcope.experiments.spec import Spec
from composcope.experiments.store import Store
from composcope.experiments.sweep import NoSuchEntry, with_settings
from composcope.holdouts import Split, split
from composcope.paper.preset import Preset
from composcope.tasks.base import Images

Plan = Mapping[str, tuple[Spec, ...]]
"""The runs that a figure or claim needs, by name; one spec a seed."""

Rows = list[dict[str, object]]
"""The numbers behind a figure: the same keys in every row."""


@dataclass(frozen=True)
class Run:
    """A stored run; what is asked of it is read or computed once."""

    store: Store
    spec: Spec

    @cached_property
    def result(self) -> Result:
        return load(self.store, self.spec.run_id)

    @cached_property
    def error(self) -> Mapping[str, float]:
        """The measures made at the end of training: seen_mse, heldout_mse, blank_mse, accuracy, ..."""
        return self.result.measures["error"]

    @cached_property
    def diagnosis(self) -> Diagnosis:
        return stored_diagnosis(self.store, self.spec.run_id)

    @cached_property
    def parts(self) -> Split:
        """The task's grid in its order, and which of it is held out."""
        return split(self.spec.task, self.spec.holdout)

    @cached_property
    def truth(self) -> Images:
        return self.spec.task.render(self.parts.latents)

    @cached_property
    def images(self) -> Images:
        """What the decoder draws over the whole grid."""
        drawer = self.spec.decoder.drawer(self.result.module)
        if drawer is None:
            raise BadInput(f"run {self.spec.run_id}: {type(self.spec.decoder).__name__} draws no images")
        return outputs(drawer, self.spec.encoding.encode(self.parts.latents, self.spec.task.factors))


class Evidence(Mapping[str, Sequence[Run]]):
    """The runs of a plan that the store has, by the plan's names; every name is there, perhaps with no run."""

    def __init__(self, preset: Preset, plan: Plan, known: "Known") -> None:
        self.preset = preset
        self.plan = plan
        self._runs = {name: known.runs(specs) for name, specs in plan.items()}

    def __getitem__(self, name: str) -> Sequence[Run]:
        return self._runs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def complete(self) -> bool:
        """Whether every name has at least one run."""
        return all(self._runs.values())

    def first(self, name: str) -> Run:
        """The run of the least seed."""
        return self._runs[name][0]


class Known:
    """A store's runs, each opened once however many figures share it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._opened: dict[str, Run] = {}

    def runs(self, specs: Sequence[Spec]) -> list[Run]:
        found = [spec for spec in specs if self.store.has(spec.run_id)]
        return [self._opened.setdefault(spec.run_id, Run(self.store, spec)) for spec in found]


def varied(plan: Plan, settings: Sequence[str]) -> Plan:
    """The plan with `name=value` settings put into every spec; what then is the same run is there once.

    A setting of one penalty, `penalties.variance.weight=0.1`, changes the runs that have it.
    """
    if not settings:
        return plan
    found = {}
    for name, specs in plan.items():
        changed = [_changed(spec, settings) for spec in specs]
        found[name] = tuple({spec.run_id: spec for spec in changed}.values())
    return found


def _changed(spec: Spec, settings: Sequence[str]) -> Spec:
    data = spec.to_dict()
    for setting in settings:
        with suppress(NoSuchEntry):
            data = with_settings(data, [setting])
    return Spec.from_dict(data)
