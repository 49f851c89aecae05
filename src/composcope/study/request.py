"""What was asked for, and what is still to run for it."""

from collections.abc import Sequence
from dataclasses import dataclass

from composcope.errors import BadInput
from composcope.runs.spec import Spec
from composcope.store.store import Store
from composcope.study.claim import Claim
from composcope.study.panel import Panel
from composcope.study.plan import Plan, Preset, specs_of, varied
from composcope.study.study import Study
from composcope.workers.costs import missing


@dataclass(frozen=True)
class Request:
    """Figures and claims of a study at a preset, optionally with settings changed in every run.

    - `only`: ids of the runs to do, before settings are changed, if not all runs of the figures.
    """

    study: Study
    preset: Preset
    panels: tuple[Panel, ...]
    claims: tuple[Claim, ...]
    settings: tuple[str, ...] = ()
    only: frozenset[str] | None = None

    def plan(self, source: Panel | Claim) -> Plan:
        """The runs that are done for a figure or a claim."""
        plan = source.plan(self.preset)
        if self.only is not None:
            plan = {key: tuple(spec for spec in specs if spec.run_id in self.only) for key, specs in plan.items()}
        return varied(plan, self.settings)


def make_request(
    study: Study,
    figures: Sequence[str] = (),
    preset: str | None = None,
    seeds: int | range | None = None,
    settings: Sequence[str] = (),
    claims: Sequence[int] = (),
) -> Request:
    """All claims if nothing is named; those that the runs of the named figures can settle; or the named claims.

    For named claims only the runs that they rest on are done, and their figures are drawn where these runs suffice.
    """
    if figures and claims:
        raise BadInput(f"figure {figures[0]} and claim {claims[0]}: name figures or claims, not both")
    if settings and not figures and not claims:
        raise BadInput(
            f"--set {settings[0]!r}: name the figures whose runs it changes, as in `composcope reproduce 3d`"
        )
    size = study.preset(preset)
    size = size if seeds is None else size.with_seeds(seeds)
    if claims:
        chosen = study.select_claims(claims)
        only = frozenset(run_id for claim in chosen for run_id in specs_of(claim.plan(size)))
        return Request(study, size, _panels_of(study, chosen, only, size), tuple(chosen), tuple(settings), only)
    panels = tuple(study.select(figures))
    if not figures:
        return Request(study, size, panels, study.claims, tuple(settings))
    names = {panel.name for panel in panels}
    # Plans are slow to build, so claims are first chosen by name.
    candidates = [claim for claim in study.claims if names & set(claim.figures)]
    runs = {run_id for panel in panels for run_id in specs_of(panel.plan(size))} if candidates else set()
    settled = [claim for claim in candidates if specs_of(claim.plan(size)).keys() <= runs]
    return Request(study, size, panels, tuple(settled), tuple(settings))


def _panels_of(study: Study, claims: Sequence[Claim], runs: frozenset[str], preset: Preset) -> tuple[Panel, ...]:
    """The figures that the claims name, and where their plans lack some of the runs, the first that have them."""
    names = {name for claim in claims for name in claim.figures}
    uncovered = runs - {run for panel in study.panels if panel.name in names for run in specs_of(panel.plan(preset))}
    for panel in study.panels:
        if uncovered and (covered := uncovered & specs_of(panel.plan(preset)).keys()):
            names.add(panel.name)
            uncovered -= covered
    return tuple(panel for panel in study.panels if panel.name in names)


@dataclass(frozen=True)
class Work:
    """What the runs of a request still need.

    - `runs`: all that may be needed. `todo`: those to do now; `diagnosed`: ids of those that are diagnosed as well.
    - `by_figure`: ids of the runs to have now. `later`: at most how many more a figure's search does after these.
    """

    runs: dict[str, Spec]
    todo: dict[str, Spec]
    diagnosed: set[str]
    by_figure: dict[str, set[str]]
    later: dict[str, int]


def remaining_work(request: Request, store: Store) -> Work:
    """What is left to do, given what the store has. A search for a threshold has more to do once this is done."""
    runs: dict[str, Spec] = {}
    needed: dict[str, Spec] = {}
    diagnosed: set[str] = set()
    by_figure: dict[str, set[str]] = {}
    later: dict[str, int] = {}
    for panel in request.panels:
        plan = request.plan(panel)
        now = {spec.run_id: spec for spec in panel.needed(plan, store)}
        runs |= specs_of(plan)
        needed |= now
        by_figure[panel.name] = set(now)
        if panel.diagnosed:
            diagnosed |= {run_id for run_id, spec in now.items() if spec.decoder.draws}
        if panel.search is not None and any(missing(spec, store) for spec in now.values()):
            at_hand = {run_id for run_id in specs_of(plan) if store.has(run_id)} | now.keys()
            later[panel.name] = max(panel.search.max_runs(request.preset) - len(at_hand), 0)
    todo = {run_id: spec for run_id, spec in needed.items() if missing(spec, store, diagnosed)}
    return Work(runs, todo, diagnosed, by_figure, later)


def search_groups(request: Request) -> dict[str, str]:
    """The search that a run belongs to, by run id, for runs of searches; a search is done by one shard."""
    groups: dict[str, str] = {}
    for panel in request.panels:
        if panel.search is not None:
            for key, specs in request.plan(panel).items():
                for spec in specs:
                    groups.setdefault(spec.run_id, panel.search.name(key, spec))
    return groups


def left_to_do(request: Request, store: Store) -> list[str]:
    """Ids of the runs to do next that have not failed: none when every shard has ended."""
    return [run_id for run_id in remaining_work(request, store).todo if not store.failed(run_id)]
