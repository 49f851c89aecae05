"""What figures and claims are made from: stored runs by key, and nothing else."""

from collections.abc import Iterator, Mapping, Sequence

from composcope.experiments.run import Run
from composcope.experiments.spec import Spec
from composcope.experiments.store import Store
from composcope.study.plan import Key, Plan
from composcope.study.preset import Preset


class Evidence(Mapping[Key, Sequence[Run]]):
    """Runs by the plan's keys, in the order of their seeds; every key is present, possibly with no run."""

    def __init__(self, preset: Preset, runs: Mapping[Key, Sequence[Run]]) -> None:
        self.preset = preset
        self.runs = dict(runs)

    def __getitem__(self, key: Key) -> Sequence[Run]:
        return self.runs[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def run_ids(self) -> tuple[str, ...]:
        return tuple(run.run_id for runs in self.runs.values() for run in runs)

    def first(self, key: Key) -> Run:
        """The run of the smallest seed."""
        return self.runs[key][0]

    @property
    def any_run(self) -> Run:
        """The first run of the first key that has one."""
        return next(run for runs in self.runs.values() for run in runs)


class RunCache:
    """A store's runs, each opened once even if many figures share it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._opened: dict[str, Run] = {}

    def runs(self, specs: Sequence[Spec]) -> list[Run]:
        """Those of the specs that the store has."""
        stored = [spec for spec in specs if self.store.has(spec.run_id)]
        return [self._opened.setdefault(spec.run_id, Run(spec, self.store)) for spec in stored]

    def gather(self, preset: Preset, plan: Plan) -> Evidence:
        """The evidence that the store has for a plan."""
        return Evidence(preset, {key: self.runs(specs) for key, specs in plan.items()})
