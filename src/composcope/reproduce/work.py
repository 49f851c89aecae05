"""From a store to pictures and verdicts: what is still to run, then what the runs show."""

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from matplotlib.figure import Figure

from composcope.decoders.image_encoder import ImageEncoder
from composcope.errors import RunFailed
from composcope.experiments.executor import missing
from composcope.experiments.spec import Spec
from composcope.experiments.store import Store
from composcope.figures.style import as_bytes, stamp
from composcope.paper.claims import CLAIMS
from composcope.paper.evidence import Evidence, Known, Rows, varied
from composcope.paper.ledger import Claim, Judgement, as_data, as_markdown, judge
from composcope.paper.panel import Panel
from composcope.paper.preset import Preset


@dataclass(frozen=True)
class Asked:
    """What the user asked for: pictures and claims at a preset, perhaps with settings changed in every run."""

    preset: Preset
    panels: Sequence[Panel]
    claims: Sequence[Claim]
    settings: Sequence[str] = ()

    def gather(self, source: Panel | Claim, known: Known) -> Evidence:
        """The stored runs that a picture or a claim is made from."""
        return Evidence(self.preset, varied(source.plan(self.preset), self.settings), known)


@dataclass(frozen=True)
class Work:
    """All runs that may be needed, those to do now, and which of these are to be diagnosed.

    - `done`: how many are in the store; `later`: how many may be asked for once the others are done.
    """

    runs: dict[str, Spec]
    todo: dict[str, Spec]
    diagnosed: set[str]
    done: int
    later: int


@dataclass(frozen=True)
class Made:
    """A picture and the table behind it; or, where runs are missing, what is missing."""

    panel: Panel
    preset: Preset
    picture: Figure | None
    rows: Rows
    missing: str = ""
    run_ids: tuple[str, ...] = ()

    @cached_property
    def png(self) -> bytes:
        """The picture as a file's contents, none if there is no picture."""
        return b"" if self.picture is None else as_bytes(self.picture, "png")


def ask(preset: Preset, panels: Sequence[Panel], everything: bool, settings: Sequence[str] = ()) -> Asked:
    """The claims are all of them if every picture is asked for, otherwise those that the pictures' runs can settle."""
    if everything:
        return Asked(preset, panels, CLAIMS, settings)
    names = {panel.name for panel in panels}
    runs = {spec.run_id for panel in panels for specs in panel.plan(preset).values() for spec in specs}

    def settled(claim: Claim) -> bool:
        needed = {spec.run_id for specs in claim.plan(preset).values() for spec in specs}
        return bool(names & set(claim.figures)) and needed <= runs

    return Asked(preset, panels, [claim for claim in CLAIMS if settled(claim)], settings)


def work(asked: Asked, store: Store) -> Work:
    """What there is to do, given what the store has. A search for a threshold has more to do once this is done."""
    runs: dict[str, Spec] = {}
    wanted: dict[str, Spec] = {}
    diagnosed: set[str] = set()
    for panel in asked.panels:
        plan = varied(panel.plan(asked.preset), asked.settings)
        runs |= {spec.run_id: spec for specs in plan.values() for spec in specs}
        needed = {spec.run_id: spec for spec in panel.needed(plan, store)}
        wanted |= needed
        if panel.diagnosed:
            diagnosed |= {run_id for run_id, spec in needed.items() if not isinstance(spec.decoder, ImageEncoder)}
    todo = {run_id: spec for run_id, spec in wanted.items() if missing(spec, store, diagnosed)}
    done = sum(store.has(run_id) for run_id in runs)
    later = sum(not store.has(run_id) for run_id in runs.keys() - wanted.keys()) if todo else 0
    return Work(runs, todo, diagnosed, done, later)


def make(asked: Asked, panel: Panel, known: Known) -> Made:
    """The picture from what the store has."""
    evidence = asked.gather(panel, known)
    ids = tuple(run.spec.run_id for runs in evidence.values() for run in runs)
    lacking = [name for name, runs in evidence.items() if not runs]
    if lacking and panel.needed(evidence.plan, known.store):
        return Made(panel, asked.preset, None, [], f"no runs yet: {', '.join(lacking)}", ids)
    try:
        numbers = panel.numbers(evidence)
    except RunFailed as damage:
        return Made(panel, asked.preset, None, [], str(damage), ids)
    picture = panel.draw(numbers)
    stamp(picture, caption(evidence, asked.settings))
    return Made(panel, asked.preset, picture, numbers.table(), run_ids=ids)


def caption(evidence: Evidence, settings: Sequence[str] = ()) -> str:
    """The preset, what was changed in it, sizes, and how many seeds each kind of run has."""
    runs = [run for runs in evidence.values() for run in runs]
    if not runs:
        return f"preset {evidence.preset.name}"
    sizes = sorted({run.spec.task.image_shape[1:] for run in runs})
    shown = ", ".join(f"{height} x {width}" for height, width in sizes)
    least, most = (bound(len(runs) for runs in evidence.values() if runs) for bound in (min, max))
    seeds = f"{most} seed{'s' if most > 1 else ''}" if least == most else f"{least} to {most} seeds"
    return f"preset {' '.join([evidence.preset.name, *settings])}: {shown}; {seeds}"


def judge_all(asked: Asked, known: Known, on_progress: Callable[[int, int], None] | None = None) -> list[Judgement]:
    """Every claim that was asked for, from what the store has."""
    judgements = []
    for claim in asked.claims:
        judgements.append(judge(claim, asked.gather(claim, known)))
        if on_progress is not None:
            on_progress(len(judgements), len(asked.claims))
    return judgements


def keep(made: Made, out: Path) -> list[Path]:
    """Write the picture and its table; where there is none, take away an older one."""
    stem = out / "figures" / f"figure_{made.panel.name}"
    paths = [stem.with_suffix(".png"), stem.with_suffix(".pdf")]
    table = out / "tables" / f"figure_{made.panel.name}.csv"
    if made.picture is None:
        for old in (*paths, table):
            old.unlink(missing_ok=True)
        return []
    stem.parent.mkdir(parents=True, exist_ok=True)
    table.parent.mkdir(parents=True, exist_ok=True)
    paths[0].write_bytes(made.png)
    paths[1].write_bytes(as_bytes(made.picture, "pdf"))
    with open(table, "w", newline="") as file:
        writer = csv.DictWriter(file, list(made.rows[0]) if made.rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(made.rows)
    return [*paths, table]


def keep_ledger(judgements: Sequence[Judgement], asked: Asked, out: Path) -> Path:
    """Write claims.json, and claims.md to read."""
    path = out / "claims.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(as_data(judgements, asked.preset, asked.settings), indent=1) + "\n")
    path.with_suffix(".md").write_text(as_markdown(judgements, asked.preset, asked.settings))
    return path


def keep_runs(made: Sequence[Made], store: Store, out: Path) -> list[Path]:
    """Write runs.csv, the specs and measures of every run behind the pictures, and curves.csv, their losses."""
    import pandas as pd

    ids = list(dict.fromkeys(run_id for one in made for run_id in one.run_ids))
    sound = [run_id for run_id in ids if store.record(run_id, verify=True).status == "done"]
    curves = [store.curve(run_id).assign(run_id=run_id) for run_id in sound]
    tables = {"runs.csv": store.frame(ids), "curves.csv": pd.concat(curves) if curves else pd.DataFrame()}
    out.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.to_csv(out / name, index=False, lineterminator="\n", float_format="%.6g")
    return [out / name for name in tables]
