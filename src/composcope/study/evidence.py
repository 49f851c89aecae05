"""What figures and claims are made from: stored runs by key, and nothing else."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from composcope.errors import Damaged
from composcope.runs.run import Run
from composcope.runs.spec import Spec
from composcope.store.store import Store
from composcope.study.numbers import Numbers, Row
from composcope.study.plan import Key, Plan, Preset, label_of


class Evidence(Mapping[Key, Sequence[Run]]):
    """Runs by the plan's keys, in the order of their seeds; every key is present, possibly with no run.

    - `failed`: seeds of which a run failed, with the reason.
    """

    def __init__(
        self, preset: Preset, runs: Mapping[Key, Sequence[Run]], failed: Mapping[int, str] | None = None
    ) -> None:
        self.preset = preset
        self.runs = dict(runs)
        self.failed = dict(failed or {})

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

    def numbers(
        self,
        name: str,
        of_run: Callable[[Run], Row],
        of_first: Callable[[Run], Row] | None = None,
        common: Row | None = None,
    ) -> Numbers:
        """What a figure shows: one row per run, with the label of its key under `name`, its seed, and its numbers.

        - `of_run`: the numbers of one run by name. `of_first`: what is shown of the first run of each key alone, such
          as images. `common`: what depends on no run.
        """
        labels = {key: label_of(key) for key in self.runs}
        return Numbers(
            rows=[
                {name: labels[key], "seed": run.spec.seed, **of_run(run)}
                for key, runs in self.runs.items()
                for run in runs
            ],
            first={labels[key]: of_first(runs[0]) for key, runs in self.runs.items() if runs and of_first is not None},
            common=common or {},
        )

    def seeds(self) -> dict[str, tuple[int, ...]]:
        """The seeds of every key's runs, by its label."""
        return {label_of(key): tuple(run.spec.seed for run in runs) for key, runs in self.runs.items()}

    def without_damaged(self) -> "Evidence":
        """The same without the seeds that have a run with damaged files, which count as failed."""
        damaged = {
            run.spec.seed: f"run {run.run_id} is damaged"
            for runs in self.runs.values()
            for run in runs
            if _is_damaged(run)
        }
        sound = {key: [run for run in runs if run.spec.seed not in damaged] for key, runs in self.runs.items()}
        return Evidence(self.preset, sound, {**self.failed, **damaged})

    @property
    def any_run(self) -> Run:
        """The first run of the first key that has one."""
        return next(run for runs in self.runs.values() for run in runs)


def _is_damaged(run: Run) -> bool:
    try:
        run.artifacts.verify()
    except Damaged:
        return True
    return False


class RunCache:
    """A store's runs, each opened once even if many figures share it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._opened: dict[str, Run] = {}

    def runs(self, specs: Sequence[Spec]) -> list[Run]:
        """Those of the specs that the store has."""
        stored = [spec for spec in specs if self.store.has(spec.run_id)]
        return [self._opened.setdefault(spec.run_id, Run(spec, self.store.run_folder(spec.run_id))) for spec in stored]

    def gather(self, preset: Preset, plan: Plan) -> Evidence:
        """The evidence that the store has for a plan."""
        runs = {key: self.runs(specs) for key, specs in plan.items()}
        failed = {
            spec.seed: f"run {spec.run_id} failed"
            for specs in plan.values()
            for spec in specs
            if self.store.failed(spec.run_id)
        }
        return Evidence(preset, runs, failed)
