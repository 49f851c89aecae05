"""A study from start to end: train what its figures need, draw them, judge its claims."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from composcope.files import write_atomically
from composcope.runs.costs import estimate_seconds, workload
from composcope.runs.spec import Spec
from composcope.store.store import Store
from composcope.study.claim import Claim
from composcope.study.crew import draw_and_observe
from composcope.study.judging import judge
from composcope.study.ledger import Ledger
from composcope.study.observations import Observations, to_data
from composcope.study.panel import RenderedPanel, write_figure
from composcope.study.plan import Preset
from composcope.study.request import Request, Work, make_request, remaining_work, search_groups
from composcope.study.study import Study, find_study
from composcope.workers.executor import EngineOptions, Outcome, run_all, shared_workers
from composcope.workers.machine import source_commit
from composcope.workers.sharding import Shard

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
    """What came out: figures, the ledger of claims, the runs behind them, and the runs that failed."""

    request: Request
    store: Store
    panels: tuple[RenderedPanel, ...]
    ledger: Ledger
    observations: Observations
    failures: tuple[Outcome, ...] = ()

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
        curves = [self.store.curve(run_id).assign(run_id=run_id) for run_id in sound]
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
    kernels: Literal["auto", "torch"] = "auto",
    plugins: Sequence[Path] = (),
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
    - `on_event`: called with `Planned`, `Progress` and `RoundFinished` values.
    - `engine`: `executor`, `gather`, `resources` and `time_limit` as in `cs.run_all`.
    """
    request = make_request(find_study(study), figures, preset, seeds, settings, claims)
    target = store if isinstance(store, Store) else Store(store)
    failures = run_missing(request, target, workers, kernels, plugins, on_event, **engine) if train else ()
    return draw(request, target, workers, plugins, on_event, failures)


def draw(
    request: Request,
    store: Store,
    workers: int | None = None,
    plugins: Sequence[Path] = (),
    on_event: OnEvent = lambda event: None,
    failures: Sequence[Outcome] = (),
) -> Reproduction:
    """Draw the figures of a request and judge its claims from what the store has."""
    panels, observations = draw_and_observe(
        request,
        store,
        workers,
        plugins,
        lambda done, total: on_event(Progress("figures", done, total)),
        lambda done, total: on_event(Progress("claims", done, total)),
    )
    observed = Observations(request.study.name, request.preset.name, request.settings, observations)
    ledger = judge_observations(request.study, request.preset, observed, request.claims)
    return Reproduction(request, store, panels, ledger, observed, tuple(failures))


def run_missing(
    request: Request,
    store: Store,
    workers: int | None = None,
    kernels: Literal["auto", "torch"] = "auto",
    plugins: Sequence[Path] = (),
    on_event: OnEvent = lambda event: None,
    shard: Shard | None = None,
    **engine: Unpack[EngineOptions],
) -> tuple[Outcome, ...]:
    """Do what is missing, in rounds while searches ask for more; the runs that failed.

    - `shard`: do only this part of the runs, by whole searches.
    """
    part, groups = shard or Shard(), search_groups(request) if shard else {}
    failures: dict[str, Outcome] = {}
    about = {"registration": request.study.registration, "commit": source_commit()}
    most = sum(len(specs) for panel in request.panels for specs in request.plan(panel).values())
    with shared_workers(engine, workers, most) as options:
        for round_ in range(1000):
            work = remaining_work(request, store)
            specs = [spec for spec in part.select(work.todo.values(), groups) if spec.run_id not in failures]
            work = replace(work, todo={spec.run_id: spec for spec in specs})
            costs = estimated_costs(specs, kernels, on_event)
            on_event(Planned(request, work, store, workload(specs, store, work.diagnosed, costs), round_))
            if not specs:
                break
            outcomes = _run_round(specs, work, store, workers, kernels, plugins, costs, about, on_event, options)
            failures |= {outcome.run_id: outcome for outcome in outcomes if outcome.failure}
            on_event(RoundFinished(tuple(outcomes)))
    return tuple(failures.values())


def estimated_costs(
    specs: Sequence[Spec], kernels: Literal["auto", "torch"] = "auto", on_event: OnEvent = lambda event: None
) -> dict[str, float]:
    """Each run's seconds on one core, by id, from timing a few steps of each different network."""
    seconds = estimate_seconds(specs, kernels, lambda done, total: on_event(Progress("timing", done, total)))
    return {spec.run_id: cost for spec, cost in zip(specs, seconds, strict=True)}


def _run_round(
    specs: Sequence[Spec],
    work: Work,
    store: Store,
    workers: int | None,
    kernels: Literal["auto", "torch"],
    plugins: Sequence[Path],
    costs: Mapping[str, float],
    about: Mapping[str, Any],
    on_event: OnEvent,
    engine: EngineOptions,
) -> list[Outcome]:
    total = workload(specs, store, work.diagnosed, costs)

    def tell(done: float, outcomes: Sequence[Outcome]) -> None:
        on_event(Progress("runs", min(done, total), total, outcomes))

    return run_all(specs, store, workers, plugins, kernels, tell, work.diagnosed, costs, about, **engine)


def observe_claims(
    request: Request,
    store: Store,
    workers: int | None = None,
    plugins: Sequence[Path] = (),
    on_event: OnEvent = lambda event: None,
) -> Observations:
    """The effects of every claim of the request, from what the store has; no figure is drawn."""
    _, observations = draw_and_observe(
        replace(request, panels=()),
        store,
        workers,
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
