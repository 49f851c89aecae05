"""Commands that run a study and show it: studies, reproduce, claims, report, explore."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from composcope.cli.app import LOOK, REPRODUCE, app, print_json
from composcope.cli.options import (
    DEFAULT_STORE,
    DaskOption,
    GatherOption,
    JsonOption,
    KernelsOption,
    PluginOption,
    ResourceOption,
    ShardOption,
    StoreOption,
    TimeLimitOption,
    WorkersOption,
    check_engine,
    complete_run_ids,
    engine_options,
    load_plugins,
    shard_of,
)
from composcope.cli.progress import EventPrinter
from composcope.display import counted
from composcope.errors import BadInput
from composcope.terminal import duration

if TYPE_CHECKING:
    from composcope.store.store import Store
    from composcope.study.ledger import Ledger
    from composcope.study.reproduce import FigureCost
    from composcope.study.request import Request

StudyOption = Annotated[
    str | None, typer.Option("--study", help="Study by name (see `composcope studies`); by default the built-in paper.")
]
PresetOption = Annotated[
    str | None,
    typer.Option(
        help="Size of the runs, by default the study's first preset. quick: minutes; paper: the authors' sizes."
    ),
]
SeedsOption = Annotated[
    str | None, typer.Option(help="Use this many seeds in every experiment, or these: 15-19, for example.")
]
FiguresArgument = Annotated[
    list[str] | None, typer.Argument(help="Figures by name: 1b, or 3 for 3a to 3d; all by default.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Change a field in every run of the named figures: --set task.sigma=2."
    ),
]


@app.command(rich_help_panel=REPRODUCE, short_help="List the studies that reproduce can run.")
def studies(plugin: PluginOption = None) -> None:
    """List the studies that `reproduce` can run: built in, installed, or from a plugin file."""
    from composcope.study.study import studies as known_studies

    load_plugins(plugin)
    for study in known_studies().values():
        print(f"{study.name}: {study.title}")
        print(f"  {counted(len(study.panels), 'figure')}, {counted(len(study.claims), 'claim')}")
        for preset in study.presets:
            print(f"  --preset {preset.name}: {preset.about}")


@app.command(rich_help_panel=REPRODUCE, short_help="Train what the figures need, draw, judge claims, report.")
def reproduce(
    figures: FiguresArgument = None,
    study: StudyOption = None,
    preset: PresetOption = None,
    seeds: SeedsOption = None,
    claim: Annotated[
        list[int] | None,
        typer.Option(help="Instead of figures: train only what this claim rests on, by number. May be repeated."),
    ] = None,
    workers: WorkersOption = None,
    store: StoreOption = DEFAULT_STORE,
    out: Annotated[Path, typer.Option(help="Folder for figures, tables, claims.json and the report.")] = Path("out"),
    set_: SetOption = None,
    plugin: PluginOption = None,
    kernels: KernelsOption = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the plan: runs to do and time.")] = False,
    no_train: Annotated[
        bool, typer.Option("--no-train", help="Train nothing: draw and judge from the runs that the store has.")
    ] = False,
    redraw: Annotated[
        bool, typer.Option("--redraw", help="Only draw figures again, from the numbers in the --out folder.")
    ] = False,
    style: Annotated[
        str | None,
        typer.Option(help="With --redraw: another way to draw; layer-scale colours each volume map by itself."),
    ] = None,
    join: Annotated[
        list[Path] | None,
        typer.Option(help="With --redraw: add the numbers of another machine's --out folder. May be repeated."),
    ] = None,
    time_limit: TimeLimitOption = None,
    resource: ResourceOption = None,
    dask: DaskOption = None,
    gather: GatherOption = False,
    shard: ShardOption = None,
) -> None:
    """Run a study: train what its figures need, draw them, judge every claim and write the report.

    Rerun the same command to resume after an interruption. The exit code is 0 whatever the claims' outcomes are, and 1
    if a run failed.
    """
    from composcope.pages.report import write_report
    from composcope.store.store import Store
    from composcope.study.numbers import no_runs_yet
    from composcope.study.panel import redraw_figures
    from composcope.study.reproduce import reproduce as reproduce_study
    from composcope.study.request import make_request
    from composcope.study.study import find_study
    from composcope.terminal import progress_bar
    from composcope.workers.sweeps import check_writable

    load_plugins(plugin)
    if style and not redraw:
        raise BadInput("--style needs --redraw: figures are drawn in another style from their numbers")
    if join and not redraw:
        raise BadInput("--join needs --redraw: figures are drawn from the joined numbers")
    if claim and redraw:
        raise BadInput("--claim trains runs and --redraw only draws: name the figures to draw again")
    if redraw:
        known = find_study(study)
        if style:
            known.check_style(style)
        panels = redraw_figures(known.select(figures or []), out, style, join or [])
        print(f"{counted(len(panels), 'figure')}: {out / 'figures'}")
        return
    check_engine(dask, gather, resource)
    target, part = Store(store), shard_of(shard)
    options: dict[str, Any] = {"preset": preset, "seeds": _seeds(seeds), "settings": set_ or [], "claims": claim or []}
    if dry_run:
        _print_costs(make_request(find_study(study), figures or [], **options), target, workers, kernels)
        return
    check_writable(out)
    with EventPrinter(workers, target) as printer, ExitStack() as cluster:
        engine = cluster.enter_context(
            engine_options(None if no_train else dask, gather, resource, time_limit, workers)
        )
        reproduction = reproduce_study(
            study,
            figures or [],
            store=target,
            train=not no_train,
            workers=workers,
            kernels=kernels,
            plugins=plugin or [],
            shard=part,
            on_event=printer,
            **options,
            **engine,
        )
    if reproduction.remaining:
        remaining = counted(len(reproduction.remaining), "run")
        print(f"shard {part} has ended; {remaining} left to other shards, the last of which draws")
        raise typer.Exit(1 if reproduction.failures else 0)
    for panel in reproduction.panels:
        if panel.missing:
            print(f"figure {panel.name}: {panel.missing}")
        elif panel.lacking:
            print(f"figure {panel.name}: drawn from what there is; {no_runs_yet(panel.lacking)}")
    reproduction.write(out)
    _print_outcomes(reproduction.ledger)
    with progress_bar("report") as advance:
        report = write_report(reproduction, out / "report.html", advance)
    figures_made = counted(sum(not panel.missing for panel in reproduction.panels), "figure")
    print(f"\n{figures_made}: {out / 'figures'}, their numbers: {out / 'tables'}, the ledger: {out / 'claims.json'}")
    print(f"report: {report}")
    print(f"results: {store} (composcope list --store {store})")
    if reproduction.failures:
        failed = counted(len(reproduction.failures), "run")
        print(f"error: {failed} failed; figures and claims may lack them", file=sys.stderr)
        raise typer.Exit(1)


@app.command(rich_help_panel=REPRODUCE, short_help="Print the ledger of a study's claims; trains nothing.")
def claims(
    study: StudyOption = None,
    preset: PresetOption = None,
    seeds: SeedsOption = None,
    store: StoreOption = DEFAULT_STORE,
    evidence: Annotated[
        list[Path] | None,
        typer.Option(help="Judge evidence.json files instead of a store; several together: --evidence A.json B.json."),
    ] = None,
    files: Annotated[list[Path] | None, typer.Argument(help="Further evidence files, only with --evidence.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write the ledger and all its evidence to, for the next machine.")
    ] = None,
    plugin: PluginOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the ledger of a study's claims from a store's runs or from evidence files; nothing is trained."""
    from composcope.store.store import Store
    from composcope.study.observations import read_evidence
    from composcope.study.reproduce import judge_observations, observe_claims, write_ledger
    from composcope.study.request import make_request
    from composcope.study.study import find_study

    load_plugins(plugin)
    if files and not evidence:
        raise BadInput(f"unexpected argument {str(files[0])!r}: evidence files are read with --evidence")
    if evidence:
        observed = read_evidence([*evidence, *(files or [])])
        judged_study = find_study(study or observed.study)
        for number, values in sorted(observed.outdated(judged_study.claims).items()):
            print(
                f"claim {number}: {counted(values, 'value')} of another version of it left out; "
                "only its runs can give values of the present one",
                file=sys.stderr,
            )
        ledger = judge_observations(judged_study, judged_study.preset(observed.preset), observed)
    else:
        request = make_request(find_study(study), (), preset, _seeds(seeds))
        with EventPrinter() as printer:
            observed = observe_claims(request, Store(store), plugin or [], printer)
        ledger = judge_observations(request.study, request.preset, observed, request.claims)
    if out is not None:
        write_ledger(ledger, observed, out)
    if as_json:
        print_json(ledger.to_data())
    else:
        _print_ledger(ledger)


@app.command(rich_help_panel=LOOK, short_help="Write the report of a store as one HTML file.")
def report(
    study: StudyOption = None,
    preset: PresetOption = None,
    seeds: SeedsOption = None,
    store: StoreOption = DEFAULT_STORE,
    out: Annotated[Path, typer.Option(help="The page to write, one HTML file.")] = Path("report.html"),
    plugin: PluginOption = None,
) -> None:
    """Write the report of a store as one HTML file: the ledger, every figure that its runs allow, and every run."""
    from composcope.pages.report import write_report
    from composcope.study.reproduce import reproduce as reproduce_study
    from composcope.terminal import progress_bar

    load_plugins(plugin)
    with EventPrinter() as printer:
        reproduction = reproduce_study(
            study, preset=preset, seeds=_seeds(seeds), store=store, train=False, plugins=plugin or [], on_event=printer
        )
    with progress_bar("report") as advance:
        print(f"report: {write_report(reproduction, out, advance)}")


@app.command(rich_help_panel=LOOK, short_help="Write a page to drag a point over the latent plane.")
def explore(
    run_ids: Annotated[
        list[str],
        typer.Argument(help="Runs by id, or its first digits; several to compare.", autocompletion=complete_run_ids),
    ],
    store: StoreOption = DEFAULT_STORE,
    out: Annotated[Path, typer.Option(help="The page to write, one HTML file.")] = Path("explore.html"),
    plugin: PluginOption = None,
) -> None:
    """Write a page on which one drags a point over the latent plane and sees what each run draws there."""
    from composcope.pages.explorer import write_explorer
    from composcope.store.store import Store
    from composcope.terminal import progress_bar

    load_plugins(plugin)
    target = Store(store)
    chosen = list(dict.fromkeys(target.find(prefix) for prefix in run_ids))
    with progress_bar("explorer") as advance:
        print(f"explorer: {write_explorer(target, chosen, out, advance)}")


def _print_costs(request: "Request", store: "Store", workers: int | None, kernels: Literal["auto", "torch"]) -> None:
    """The plan, with the cost of each figure in CPU time; runs that figures share are counted once."""
    from composcope.study.reproduce import FigureCost, estimate
    from composcope.terminal import print_table

    with EventPrinter(workers) as printer:
        costs = estimate(request, store, kernels, printer)
    seconds, search_seconds = (
        sum(column) for column in zip(*((c.seconds, c.search_seconds) for c in costs), strict=True)
    )
    total = FigureCost("all", sum(cost.runs for cost in costs), seconds, search_seconds)
    rows = [
        {"figure": cost.figure, "runs to do": cost.runs, "core time": _time_range(cost) if cost.runs else "-"}
        for cost in costs
    ]
    print_table([*rows, {"figure": "all", "runs to do": total.runs, "core time": _time_range(total)}])


def _time_range(cost: "FigureCost") -> str:
    """A time, or from when to when if a search may need more."""
    first, last = duration(cost.seconds), duration(cost.seconds + cost.search_seconds)
    return f"{first} to {last}" if cost.search_seconds else first


def _seeds(text: str | None) -> int | range | None:
    from composcope.study.plan import read_seeds

    return None if text is None else read_seeds(text)


def _print_ledger(ledger: "Ledger") -> None:
    """Every inequality."""
    from composcope.terminal import print_table

    if ledger.judgements:
        print_table(ledger.rows())
        print()
    print(ledger.summary())
    print(ledger.expected_false_calls)


def _print_outcomes(ledger: "Ledger") -> None:
    """One line per outcome, with the numbers of its claims."""
    print()
    print(ledger.summary())
    for outcome in ledger.counts():
        numbers = [str(judgement.number) for judgement in ledger.judgements if judgement.outcome == outcome]
        print(f"  {outcome}: {', '.join(numbers)}")
    print("every inequality: composcope claims, or claims.md beside the figures")
