"""Commands that reproduce the paper and show it: reproduce, claims, report, explore."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from composcope.cli.app import DEFAULT_STORE, PluginOption, StoreOption, WorkersOption, app, load_plugins
from composcope.cli.runs import estimated_costs, run_with_progress, time_left
from composcope.errors import BadInput

if TYPE_CHECKING:
    from composcope.experiments.store import Store
    from composcope.paper.ledger import Judgement
    from composcope.paper.preset import Preset
    from composcope.reproduce.work import Asked, Made

PresetOption = Annotated[
    str, typer.Option(help="quick: reduced sizes, minutes; paper: the authors' sizes, days, resumable and by pieces.")
]
SeedsOption = Annotated[int | None, typer.Option(min=1, max=1000, help="So many seeds in every run's place.")]
FiguresArgument = Annotated[
    list[str] | None, typer.Argument(help="Figures by name: 1b, or 3 for 3a to 3d; all by default.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Change a field in every run of the named figures: --set task.sigma=2."
    ),
]


@app.command()
def reproduce(
    figures: FiguresArgument = None,
    preset: PresetOption = "quick",
    seeds: SeedsOption = None,
    workers: WorkersOption = None,
    store: StoreOption = DEFAULT_STORE,
    out: Annotated[Path, typer.Option(help="Folder for figures, tables, claims.json and the report.")] = Path("out"),
    set_: SetOption = None,
    plugin: PluginOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the plan: runs to do and time.")] = False,
    no_train: Annotated[
        bool, typer.Option("--no-train", help="Train nothing: draw and judge from the runs that the store has.")
    ] = False,
) -> None:
    """Reproduce the paper: train what the figures need, draw them, judge every claim and write the report.

    Interrupted, the same command goes on where it was. Exit code 0 whatever the verdicts on the claims are.
    """
    from composcope.experiments.store import Store
    from composcope.report.report import write_report
    from composcope.reproduce.work import keep_ledger, keep_runs
    from composcope.terminal import progress_bar

    load_plugins(plugin)
    asked = _asked(preset, seeds, figures or [], set_ or [])
    target = Store(store)
    failed = [] if no_train and not dry_run else _train(asked, target, workers, plugin or [], dry_run)
    if dry_run:
        return
    made, judgements = _look(asked, target, out)
    ledger = keep_ledger(judgements, asked, out)
    keep_runs(made, target, out)
    _print_ledger(judgements)
    with progress_bar("report") as advance:
        report = write_report(target, asked, made, judgements, out / "report.html", advance)
    drawn = sum(one.picture is not None for one in made)
    print(f"\n{drawn} figures: {out / 'figures'}, their numbers: {out / 'tables'}, the ledger: {ledger}")
    print(f"report: {report}")
    print(f"results: {store} (composcope list --store {store})")
    if failed:
        print(f"error: {len(failed)} runs failed, so that some figures or claims may lack them", file=sys.stderr)
        raise typer.Exit(1)


@app.command()
def claims(
    preset: PresetOption = "quick",
    seeds: SeedsOption = None,
    store: StoreOption = DEFAULT_STORE,
    plugin: PluginOption = None,
) -> None:
    """Print the ledger of the paper's claims from the runs of a store, without training anything."""
    from composcope.experiments.store import Store
    from composcope.paper.evidence import Known
    from composcope.reproduce.work import judge_all
    from composcope.terminal import progress_bar

    load_plugins(plugin)
    asked = _asked(preset, seeds, [], [])
    with progress_bar("claims") as advance:
        judgements = judge_all(asked, Known(Store(store)), advance)
    _print_ledger(judgements)


@app.command()
def report(
    preset: PresetOption = "quick",
    seeds: SeedsOption = None,
    store: StoreOption = DEFAULT_STORE,
    out: Annotated[Path, typer.Option(help="The page to write, one HTML file.")] = Path("report.html"),
    plugin: PluginOption = None,
) -> None:
    """Write the report of a store as one HTML file: the ledger, every figure that its runs allow, and every run."""
    from composcope.experiments.store import Store
    from composcope.report.report import write_report
    from composcope.terminal import progress_bar

    load_plugins(plugin)
    asked = _asked(preset, seeds, [], [])
    target = Store(store)
    made, judgements = _look(asked, target)
    with progress_bar("report") as advance:
        print(f"report: {write_report(target, asked, made, judgements, out, advance)}")


@app.command()
def explore(
    run_ids: Annotated[list[str], typer.Argument(help="Runs by id, or the first digits of it; several to compare.")],
    store: StoreOption = DEFAULT_STORE,
    out: Annotated[Path, typer.Option(help="The page to write, one HTML file.")] = Path("explore.html"),
    plugin: PluginOption = None,
) -> None:
    """Write a page on which one drags a point over the latent plane and sees what each run draws there."""
    from composcope.experiments.store import Store
    from composcope.report.explorer import write_explorer
    from composcope.terminal import progress_bar

    load_plugins(plugin)
    target = Store(store)
    found = list(dict.fromkeys(target.find(prefix) for prefix in run_ids))
    with progress_bar("explorer") as advance:
        print(f"explorer: {write_explorer(target, found, out, advance)}")


def _asked(preset: str, seeds: int | None, figures: Sequence[str], settings: Sequence[str]) -> "Asked":
    """What is asked for, or BadInput that says what there is."""
    from composcope.reproduce.catalogue import select
    from composcope.reproduce.work import ask

    chosen = _preset(preset)
    if settings and not figures:
        raise BadInput(
            f"--set {settings[0]!r}: name the figures whose runs it changes, as in `composcope reproduce 3d`"
        )
    return ask(chosen.with_seeds(seeds) if seeds else chosen, select(figures), not figures, settings)


def _preset(name: str) -> "Preset":
    from composcope.components import nearest
    from composcope.paper.preset import PRESETS

    if name not in PRESETS:
        raise BadInput(f"--preset {name!r}{nearest(name, PRESETS)}; there are: {', '.join(PRESETS)}")
    return PRESETS[name]


def _train(asked: "Asked", store: "Store", workers: int | None, plugins: Sequence[Path], dry_run: bool) -> list[str]:
    """Print the plan and, unless that is all, do it, in rounds while searches ask for more; the runs that failed."""
    from composcope.experiments.executor import workload
    from composcope.reproduce.work import work

    round_ = work(asked, store)
    print(f"preset {asked.preset.name}: {len(asked.panels)} figures, {len(asked.claims)} claims")
    print(f"{len(round_.runs)} runs: {round_.done} in {store.folder}, {len(round_.todo)} to do now", end="")
    print(f"; up to {round_.later} more, as searches go on" if round_.later else "")
    failed: list[str] = []
    while specs := [spec for run_id, spec in round_.todo.items() if run_id not in failed]:
        costs = estimated_costs(specs)
        seconds = workload(specs, store, round_.diagnosed, costs)
        print(time_left(seconds, len(specs), workers))
        if dry_run:
            break
        failed += run_with_progress(specs, store, workers, plugins, diagnosed=round_.diagnosed, costs=costs)
        round_ = work(asked, store)
        if more := len(round_.todo.keys() - set(failed)):
            print(f"the searches ask for {more} more runs")
    return failed


def _look(asked: "Asked", store: "Store", out: Path | None = None) -> "tuple[list[Made], list[Judgement]]":
    """Draw and judge from what the store has; written to a folder if one is given."""
    from composcope.paper.evidence import Known
    from composcope.reproduce.work import judge_all, keep, make
    from composcope.terminal import progress_bar

    known = Known(store)
    made = []
    with progress_bar("figures") as advance:
        for place, panel in enumerate(asked.panels):
            made.append(make(asked, panel, known))
            if out is not None:
                keep(made[-1], out)
            advance(place + 1, len(asked.panels))
    for one in made:
        if one.missing:
            print(f"figure {one.panel.name}: {one.missing}")
    with progress_bar("claims") as advance:
        return made, judge_all(asked, known, advance)


def _print_ledger(judgements: "Sequence[Judgement]") -> None:
    from composcope.paper.ledger import rows
    from composcope.terminal import print_table

    if judgements:
        print()
        print_table(rows(judgements))
        print()
    counts = {
        word: sum(one.outcome == word for one in judgements)
        for word in ("reproduced", "not reproduced", "undetermined")
    }
    print(f"{len(judgements)} claims: " + ", ".join(f"{count} {word}" for word, count in counts.items()))
