"""From a store to pictures and verdicts: what is still to run, then what the runs show."""

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from matplotlib.figure import Figure

from composcope.decoders.image_encoder import ImageEncoder
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
    """The claims are all of them if every picture is asked for, otherwise those that the pictures show."""
    names = {panel.name for panel in panels}
    claims = [claim for claim in CLAIMS if everything or names & set(claim.figures)]
    return Asked(preset, panels, claims, settings)


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
    numbers = panel.numbers(evidence)
    picture = panel.draw(numbers)
    stamp(picture, caption(evidence))
    return Made(panel, asked.preset, picture, numbers.table(), run_ids=ids)


def caption(evidence: Evidence) -> str:
    """The preset, sizes and seeds of what is shown."""
    runs = [run for runs in evidence.values() for run in runs]
    if not runs:
        return f"preset {evidence.preset.name}"
    sizes = sorted({run.spec.task.image_shape[1:] for run in runs})
    seeds = sorted({run.spec.seed for run in runs})
    shown = ", ".join(f"{height} x {width}" for height, width in sizes)
    return (
        f"preset {evidence.preset.name}: {shown}; {'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}"
    )


def judge_all(asked: Asked, known: Known, on_progress: Callable[[int, int], None] | None = None) -> list[Judgement]:
    """Every claim that was asked for, from what the store has."""
    judgements = []
    for claim in asked.claims:
        judgements.append(judge(claim, asked.gather(claim, known)))
        if on_progress is not None:
            on_progress(len(judgements), len(asked.claims))
    return judgements


def keep(made: Made, out: Path) -> list[Path]:
    """Write the picture and its table."""
    if made.picture is None:
        return []
    stem = out / "figures" / f"figure_{made.panel.name}"
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_suffix(".png"), stem.with_suffix(".pdf")]
    paths[0].write_bytes(made.png)
    paths[1].write_bytes(as_bytes(made.picture, "pdf"))
    table = out / "tables" / f"figure_{made.panel.name}.csv"
    table.parent.mkdir(parents=True, exist_ok=True)
    with open(table, "w", newline="") as file:
        writer = csv.DictWriter(file, list(made.rows[0]) if made.rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(made.rows)
    return [*paths, table]


def keep_ledger(judgements: Sequence[Judgement], preset: Preset, out: Path) -> Path:
    """Write claims.json, and claims.md to read."""
    path = out / "claims.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(as_data(judgements, preset), indent=1) + "\n")
    path.with_suffix(".md").write_text(as_markdown(judgements, preset))
    return path


def keep_runs(made: Sequence[Made], store: Store, out: Path) -> list[Path]:
    """Write runs.csv, the specs and measures of every run behind the pictures, and curves.csv, their losses."""
    import pandas as pd

    ids = list(dict.fromkeys(run_id for one in made for run_id in one.run_ids))
    curves = [store.curve(run_id).assign(run_id=run_id) for run_id in ids]
    tables = {"runs.csv": store.frame(ids), "curves.csv": pd.concat(curves) if curves else pd.DataFrame()}
    out.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.to_csv(out / name, index=False, lineterminator="\n", float_format="%.6g")
    return [out / name for name in tables]
