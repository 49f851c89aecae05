"""A study from start to end: train what its figures need, draw them, judge its claims."""

import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from composcope.fastconv import Mode
from composcope.files import write_atomically
from composcope.runs.machine import source_commit
from composcope.runs.spec import Spec
from composcope.store.store import Store
from composcope.study.claim import Claim
from composcope.study.judging import judge
from composcope.study.ledger import Ledger
from composcope.study.observations import Observations, to_data
from composcope.study.panel import RenderedPanel, write_figure
from composcope.study.parallel import draw_and_observe
from composcope.study.plan import Preset, specs_of
from composcope.study.request import Request, Work, left_to_do, make_request, remaining_work, search_groups
from composcope.study.study import Study, find_study
from composcope.workers.costs import estimated_costs, missing, workload
from composcope.workers.executor import EngineOptions, Outcome, run_all, shared_workers
from composcope.workers.limits import Shard

if TYPE_CHECKING:
    import pandas as pd

Stage = Literal["timing", "runs", "figures", "claims"]


@dataclass(frozen=True)
class Planned:
    """Event: what is to be done now, and how many seconds of one core that may take. `round`: 0 for the first."""

    request: Request
    work: Work
    store: Store
    seconds: float
    round: int


@dataclass(frozen=True)
class Progress:
    """Event: how much of a stage is done; of the runs, how those that ended did."""

    stage: Stage
    done: float
    total: float
    outcomes: Sequence[Outcome] = ()


@dataclass(frozen=True)
class RoundFinished:
    """Event: a round of runs has ended."""

    outcomes: tuple[Outcome, ...]


Event = Planned | Progress | RoundFinished
OnEvent = Callable[[Event], None]


@dataclass(frozen=True)
class Reproduction:
    """What came out: figures, the ledger of claims, the runs behind them, and the runs that failed.

    - `remaining`: ids of runs that other shards still have to do; then there are no figures yet.
    """

    request: Request
    store: Store
    panels: tuple[RenderedPanel, ...]
    ledger: Ledger
    observations: Observations
    failures: tuple[Outcome, ...] = ()
    remaining: tuple[str, ...] = ()

    @property
    def run_ids(self) -> list[str]:
        """The runs behind the figures."""
        return list(dict.fromkeys(run_id for panel in self.panels for run_id in panel.run_ids))

    @cached_property
    def frame(self) -> "pd.DataFrame":
        """One row per run behind the figures: its spec and measures."""
        return self.store.frame(self.run_ids)

    def write(self, folder: str | os.PathLike[str]) -> Path:
        """Write figures, tables, the ledger, runs.csv and curves.csv into a folder."""
        import pandas as pd

        out = Path(folder)
        for panel in self.panels:
            write_figure(panel, out)
        write_ledger(self.ledger, self.observations, out)
        sound = [run_id for run_id in self.run_ids if self.store.record(run_id, verify=True).status == "done"]
        curves = [self.store.run_folder(run_id).curve().assign(run_id=run_id) for run_id in sound]
        tables = {"runs.csv": self.frame, "curves.csv": pd.concat(curves) if curves else pd.DataFrame()}
        for name, table in tables.items():
            text: str = table.to_csv(index=False, lineterminator="\n", float_format="%.6g")
            write_atomically(out / name, text.encode())
        return out


def reproduce(
    study: str | Study | None = None,
    figures: Sequence[str] = (),
    preset: str | None = None,
    *,
    store: Store | str | os.PathLike[str] = "runs",
    seeds: int | range | None = None,
    settings: Sequence[str] = (),
    claims: Sequence[int] = (),
    train: bool = True,
    workers: int | None = None,
    kernels: Mode = "auto",
    plugins: Sequence[Path] = (),
    shard: Shard | None = None,
    on_event: OnEvent = lambda event: None,
    **engine: Unpack[EngineOptions],
) -> Reproduction:
    """Train what the figures of a study need, draw them and judge the claims; runs that the store has are not redone.

    - `study`: a name (see `composcope studies`) or a `Study`; by default the built-in paper.
    - `figures`: by name, "3" for all of 3a to 3d; all by default. `preset`: by name, the study's first by default.
    - `seeds`: this many seeds in every experiment, or these, as in `range(15, 20)`. `settings`: `["task.sigma=2"]`
      changes every run of the figures.
    - `claims`: by number, instead of figures: only the runs that these claims rest on are done.
    - `train`: False draws and judges from what the store has. `workers`: processes, one per core by default.
    - `shard`: train only this part of the runs, and draw only if no run is left to other parts.
    - `on_event`: called with `Planned`, `Progress` and `RoundFinished` values.
    - `engine`: `executor`, `gather`, `resources` and `time_limit` as in `cs.run_all`.
    """
    request = make_request(find_study(study), figures, preset, seeds, settings, claims)
    target = store if isinstance(store, Store) else Store(store)
    count = sum(len(specs) for panel in request.panels for specs in request.plan(panel).values())
    with shared_workers(engine, workers, max(count, len(request.panels) + len(request.claims))) as (pool, options):
        failures = _run_missing(request, target, kernels, plugins, shard, on_event, options) if train else ()
        if shard and (remaining := left_to_do(request, target)):
            nothing = Observations(request.study.name, request.preset.name, request.settings, ())
            ledger = judge_observations(request.study, request.preset, nothing, ())
            return Reproduction(request, target, (), ledger, nothing, failures, tuple(remaining))
        panels, observations = draw_and_observe(
            request,
            target,
            pool,
            plugins,
            lambda done, total: on_event(Progress("figures", done, total)),
            lambda done, total: on_event(Progress("claims", done, total)),
        )
    observed = Observations(request.study.name, request.preset.name, request.settings, observations)
    ledger = judge_observations(request.study, request.preset, observed, request.claims)
    return Reproduction(request, target, panels, ledger, observed, failures)


def _run_missing(
    request: Request,
    store: Store,
    kernels: Mode,
    plugins: Sequence[Path],
    shard: Shard | None,
    on_event: OnEvent,
    engine: EngineOptions,
) -> tuple[Outcome, ...]:
    """Do what is missing, in rounds while searches ask for more; the runs that failed."""
    groups = search_groups(request) if shard else {}
    about = {"registration": request.study.registration, "commit": source_commit()}
    failures: dict[str, Outcome] = {}
    for round_ in itertools.count():
        work = remaining_work(request, store)
        specs = (shard or Shard()).select(work.todo.values(), groups)
        work = replace(work, todo={spec.run_id: spec for spec in specs if spec.run_id not in failures})
        costs = _timed(work.todo.values(), kernels, on_event)
        total = workload(work.todo.values(), store, work.diagnosed, costs)
        on_event(Planned(request, work, store, total, round_))
        if not work.todo:
            break

        def report(done: float, outcomes: Sequence[Outcome], total: float = total) -> None:
            on_event(Progress("runs", min(done, total), total, outcomes))

        outcomes = run_all(
            list(work.todo.values()), store, None, plugins, kernels, report, work.diagnosed, costs, about, **engine
        )
        failures |= {outcome.run_id: outcome for outcome in outcomes if outcome.failure}
        on_event(RoundFinished(tuple(outcomes)))
    return tuple(failures.values())


def _timed(specs: Iterable[Spec], kernels: Mode, on_event: OnEvent) -> dict[str, float]:
    return estimated_costs(list(specs), kernels, lambda done, total: on_event(Progress("timing", done, total)))


@dataclass(frozen=True)
class FigureCost:
    """What the runs of a figure that are still to do cost, without those of the figures before it.

    - `seconds`: of one core. `search_seconds`: at most how many more its search takes after that.
    """

    figure: str
    runs: int
    seconds: float
    search_seconds: float = 0.0


def estimate(request: Request, store: Store, kernels: Mode, on_event: OnEvent) -> list[FigureCost]:
    """What a reproduction will cost, figure by figure, from timing a few steps of each network; nothing is done."""
    work = remaining_work(request, store)
    candidates = {  # of which a search does some, depending on what the runs before them show
        panel.name: [spec for spec in specs_of(request.plan(panel)).values() if missing(spec, store)]
        for panel in request.panels
        if work.later.get(panel.name)
    }
    costs = _timed(itertools.chain(work.todo.values(), *candidates.values()), kernels, on_event)
    on_event(Planned(request, work, store, workload(work.todo.values(), store, work.diagnosed, costs), 0))
    figures, counted = [], set[str]()
    for panel in request.panels:
        own = [work.todo[run_id] for run_id in work.todo if run_id in work.by_figure[panel.name] - counted]
        counted |= work.by_figure[panel.name]
        search = candidates.get(panel.name, [])
        mean = workload(search, store, work.diagnosed, costs) / max(len(search), 1)
        seconds = workload(own, store, work.diagnosed, costs)
        figures.append(FigureCost(panel.name, len(own), seconds, mean * work.later.get(panel.name, 0)))
    return figures


def observe_claims(
    request: Request, store: Store, plugins: Sequence[Path] = (), on_event: OnEvent = lambda event: None
) -> Observations:
    """The effects of every claim of the request, from what the store has; no figure is drawn."""
    with shared_workers({}, None, len(request.claims)) as (pool, _):
        _, observations = draw_and_observe(
            replace(request, panels=()),
            store,
            pool,
            plugins,
            on_claim=lambda done, total: on_event(Progress("claims", done, total)),
        )
    return Observations(request.study.name, request.preset.name, request.settings, observations)


def judge_observations(
    study: Study, preset: Preset, observed: Observations, claims: Sequence[Claim] | None = None
) -> Ledger:
    """The ledger of observations, whichever machines they come from."""
    judgements = [judge(claim, observed, preset) for claim in (study.claims if claims is None else claims)]
    return Ledger(study.name, preset, observed.settings, tuple(judgements), observed.machines())


def write_ledger(ledger: Ledger, observed: Observations, out: Path) -> Path:
    """Write claims.json, claims.md to read, and evidence.json, from which they can be made again without any run."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "claims.json"
    write_atomically(path, _json(ledger.to_data()))
    write_atomically(path.with_suffix(".md"), ledger.to_markdown().encode())
    write_atomically(out / "evidence.json", _json(to_data(observed)))
    return path


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()
