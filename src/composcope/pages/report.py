"""A reproduction as one page: the answer, the ledger of claims, every figure, an explorer, every run."""

import base64
import json
import math
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from composcope import __version__
from composcope.display import number
from composcope.errors import RunFailed
from composcope.pages.answer import answer, explored, who_composes
from composcope.pages.charts import strip
from composcope.pages.diagnosis_page import DRAWN, shares
from composcope.pages.explorer import explorer_data, opened
from composcope.pages.page import render, write_page
from composcope.pages.runs import RunRow, missing_row, run_row, short_row
from composcope.runs.spec import Spec
from composcope.store.index import without_collections
from composcope.store.records import Record
from composcope.store.store import Store
from composcope.study.judging import Judgement, PartJudgement
from composcope.study.ledger import Ledger, seed_texts
from composcope.study.panel import RenderedPanel
from composcope.study.reproduce import Reproduction
from composcope.study.request import Request
from composcope.study.study import DEFAULT
from composcope.terminal import duration

OnProgress = Callable[[int, int], None]
# A page with more than this takes a browser, and whoever waits for it, too long.
MAX_DIAGNOSES, MAX_BYTES, PART_BYTES = 250, 14 * 2**20, 25_000
MAX_ROWS = 1000
SHOWN_DPI = 130  # pixels of the page per inch of a figure, so that its 8 points are readable


def write_report(reproduction: Reproduction, path: Path, on_progress: OnProgress | None = None) -> Path:
    """Write the page from what the store has; nothing is trained or measured for it.

    - `on_progress`: called with the number of runs read and their total.
    """
    store = reproduction.store
    records = store.records()
    whole = set(with_room(records, {run_id for panel in reproduction.panels for run_id in panel.run_ids}))
    rows, room = [], MAX_BYTES
    with without_collections():
        for done, record in enumerate(records):
            if on_progress is not None:
                on_progress(done, len(records))
            full = record.run_id in whole and room > 0
            row = run_row(store, record.run_id, record) if full else short_row(store, record)
            room -= len(json.dumps(row.data)) + PART_BYTES if row.data is not None else 0
            rows.append(row)
    rows += [missing_row(spec) for spec in missing_specs(store, reproduction.request)]
    if on_progress is not None:
        on_progress(len(records), len(records))
    return write_page(report_text(reproduction, rows), path)


def with_room(records: Sequence[Record], behind_figures: Collection[str]) -> list[str]:
    """The runs whose diagnosis is put into the page: those behind figures first, and no more than a page can hold."""
    order = sorted(records, key=lambda record: record.run_id not in behind_figures)
    diagnosed = [record.run_id for record in order if "diagnosis" in record.measures]
    others = [record.run_id for record in order if "diagnosis" not in record.measures]
    return [*diagnosed[:MAX_DIAGNOSES], *others]


def report_text(reproduction: Reproduction, rows: Sequence[RunRow]) -> str:
    """The page. `rows`: the runs, including those that are missing."""
    store, request, panels = reproduction.store, reproduction.request, reproduction.panels
    judgements, headline = reproduction.ledger.judgements, request.study.headline
    behind = about_figures(rows, panels)
    listed, further = split_rows(rows, panels)
    return render(
        "report.html",
        version=__version__,
        study=request.study,
        preset=request.preset.name,
        answer=answer(behind, headline),
        tally=tally(reproduction.ledger),
        chance=reproduction.ledger.expected_false_calls,
        who=who_composes(behind, headline),
        kinds=list(DRAWN.items()),
        claims=[claim_view(judgement, panels) for judgement in judgements],
        figures=[figure_view(panel, request, store, judgements) for panel in panels],
        cell=cell,
        explorer=explorer_data(*opened(store, [row.run_id for row in explored(behind, headline)]), stored_only=True),
        rows=[row_view(row, panels) for row in listed],
        groups=groups(further),
        further=len(further),
        verdicts=sorted({row.kind for row in rows if row.kind}),
        footer=footer(store, rows, request),
    )


def tally(ledger: Ledger) -> list[tuple[str, bool | None, int]]:
    """Every outcome that occurs, whether the claim holds with it, and how many claims have it."""
    holds = {judgement.outcome: judgement.holds for judgement in ledger.judgements}
    return [(outcome, holds[outcome], count) for outcome, count in ledger.counts().items()]


def about_figures(rows: Sequence[RunRow], panels: Sequence[RenderedPanel]) -> list[RunRow]:
    """The runs behind the figures, on which the answer rests; all runs if no figure has any."""
    behind = {run_id for panel in panels for run_id in panel.run_ids}
    return [row for row in rows if row.run_id in behind or not behind]


def missing_specs(store: Store, request: Request) -> list[Spec]:
    """Runs that the figures still need and that the store has no trace of."""
    wanted: dict[str, Spec] = {}
    for panel in request.panels:
        with suppress(RunFailed):  # a search that meets a damaged run, which is in the table
            wanted |= {spec.run_id: spec for spec in panel.needed(request.plan(panel), store)}
    stored = set(store.run_ids())
    return [spec for run_id, spec in wanted.items() if run_id not in stored]


def claim_view(judgement: Judgement, panels: Sequence[RenderedPanel]) -> dict[str, Any]:
    """A claim's row: the part that decides in front, every part behind it."""
    parts = [part_view(part, secondary=index >= len(judgement.primary)) for index, part in enumerate(judgement.parts)]
    here = {panel.name for panel in panels}
    primary = parts[: len(judgement.primary)]
    deciding = next((part for part in primary if part["holds"] is judgement.holds), primary[0] if primary else None)
    return {
        "judgement": judgement,
        "deciding": deciding,
        "parts": parts,
        "registered": all(part.registered for part in judgement.parts),
        "figures": [{"name": name, "here": name in here} for name in judgement.figures],
    }


def part_view(part: PartJudgement, secondary: bool = False) -> dict[str, Any]:
    spread = "" if part.low is None else f"{number(part.low)} to {number(part.high)}"
    return {
        "measure": part.measure,
        "secondary": secondary,
        "reason": part.reason,
        "outcome": part.outcome,
        "holds": part.holds,
        "effect": number(part.effect),
        "value": part.effect if part.effect is not None and math.isfinite(part.effect) else "",
        "interval": spread,
        "claimed": part.claimed,
        "p": f"{part.p:.2g}",
        "p_against": f"{part.p_against:.2g}",
        "method": part.method + (f", {part.shortage}" if part.shortage else ""),
        "seeds": part.count,
        "by_seed": seed_texts(part, number),
        "excluded": "; ".join(f"seed {seed} excluded: {reason}" for seed, reason in part.excluded.items()),
        "strip": strip(part.values, part.low, part.high, part.threshold, part.relation),
    }


def figure_view(
    panel: RenderedPanel, request: Request, store: Store, judgements: Sequence[Judgement]
) -> dict[str, Any]:
    """A figure's section."""
    width, height = (round(side * SHOWN_DPI) for side in panel.size)
    return {
        "name": panel.name,
        "title": panel.title,
        "see": panel.see,
        "picture": data_address(panel.png) if panel.png else None,
        "width": width,
        "height": height,
        "missing": panel.missing,
        "rows": panel.rows,
        "runs": len(set(panel.run_ids)),
        "claims": [judgement for judgement in judgements if panel.name in judgement.figures],
        "no_claim": panel.no_claim,
        "command": command(panel, request, store),
    }


def data_address(content: bytes) -> str:
    """A PNG inside the page."""
    return f"data:image/png;base64,{base64.b64encode(content).decode('ascii')}"


def command(panel: RenderedPanel, request: Request, store: Store) -> str:
    """The command that makes the figure."""
    words = ["composcope", "reproduce", panel.name]
    words += [] if request.study.name == DEFAULT else ["--study", request.study.name]
    words += ["--preset", request.preset.name]
    words += ["--seeds", seeds] if (seeds := request.preset.seeds_text()) else []
    for setting in request.settings:
        words += ["--set", setting]
    return shlex.join([*words, "--store", str(store.folder)])


def cell(value: object) -> dict[str, Any]:
    """How a table shows a value, and the value it is sorted by."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return {"text": "-" if value is None else str(value), "value": "", "number": False}
    text = str(value) if isinstance(value, int) else number(value)
    return {"text": text, "value": value if math.isfinite(value) else "", "number": True}


def ordered(rows: Sequence[RunRow]) -> list[RunRow]:
    """By what was trained, then seed; what is missing last."""
    return sorted(rows, key=lambda row: (row.status == "missing", row.title, row.about, str(row.seed), row.run_id))


def split_rows(rows: Sequence[RunRow], panels: Sequence[RenderedPanel]) -> tuple[list[RunRow], list[RunRow]]:
    """The rows of the table, and those that it has no room for: first come runs behind figures and diagnosed ones."""
    if len(rows) <= MAX_ROWS:
        return ordered(rows), []
    behind = {run_id for panel in panels for run_id in panel.run_ids}
    kept = sorted(ordered(rows), key=lambda row: (row.run_id not in behind, row.part is None))
    return ordered(kept[:MAX_ROWS]), kept[MAX_ROWS:]


def groups(rows: Sequence[RunRow]) -> list[dict[str, Any]]:
    """Runs that differ only in their seed, or in what a title does not say, as one line each; the largest first."""
    by_title: dict[tuple[str, str], list[RunRow]] = {}
    for row in rows:
        by_title.setdefault((row.title, row.about), []).append(row)
    largest = sorted(by_title.items(), key=lambda item: (-len(item[1]), item[0]))
    lines = [{"Run": title, "Settings": about, **group_numbers(group)} for (title, about), group in largest[:MAX_ROWS]]
    others = [row for _, group in largest[MAX_ROWS:] for row in group]
    return [*lines, {"Run": "all others", "Settings": "", **group_numbers(others)}] if others else lines


def group_numbers(rows: Sequence[RunRow]) -> dict[str, Any]:
    def mean(values: Iterable[float | None]) -> float | None:
        finite = [value for value in values if value is not None and math.isfinite(value)]
        return sum(finite) / len(finite) if finite else None

    verdicts = Counter(row.kind or row.status for row in rows)
    return {
        "Runs": len(rows),
        "MSE seen": mean(row.error.get("seen_mse") for row in rows),
        "MSE held out": mean(row.error.get("heldout_mse") for row in rows),
        "Verdicts": ", ".join(f"{kind}: {count}" for kind, count in verdicts.most_common()),
    }


def row_view(row: RunRow, panels: Sequence[RenderedPanel]) -> dict[str, Any]:
    """A run's row, with words to filter by."""
    used = [f"figure={panel.name}" for panel in panels if row.run_id in panel.run_ids]
    error = {name: row.error.get(name) for name in ("seen_mse", "heldout_mse", "blank_mse", "accuracy")}
    composes = None if row.composes is None else round(100 * row.composes)
    return {
        "row": row,
        "words": " ".join([row.run_id, row.status, row.about, *row.factors, f"seed={row.seed}", *used]),
        "numbers": {name: cell(value) for name, value in error.items()},
        "verdict": row.kind or ("" if row.status == "done" else row.status),
        "composes": "" if composes is None else composes,
        "shares": shares(row.shares or {}),
    }


def footer(store: Store, rows: Sequence[RunRow], request: Request) -> dict[str, Any]:
    """What the numbers may depend on beyond the specs."""

    def values(*names: str) -> list[str]:
        texts = {", ".join(f"{name} {row.provenance.get(name)}" for name in names) for row in rows if row.provenance}
        return sorted(texts)

    return {
        "store": str(store.folder),
        "preset": request.preset.name,
        "settings": list(request.settings),
        "versions": values("composcope", "torch", "python"),
        "machines": values("platform", "processor", "cores", "device"),
        "seeds": sorted(
            {str(row.seed) for row in rows if row.status != "missing" and row.seed is not None}, key=_number_first
        ),
        "time": duration(sum(row.seconds for row in rows)),
        "statuses": {
            name: sum(row.status == name for row in rows) for name in ("done", "failed", "damaged", "missing")
        },
        "ids": [row.run_id for row in rows if row.status != "missing"],
    }


def _number_first(text: str) -> tuple[int, str]:
    return (len(text), text)
