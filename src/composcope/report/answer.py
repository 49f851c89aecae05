"""The report's first lines: who composes, what the ledger says, and which runs are worth exploring."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from composcope.paper.ledger import Judgement
from composcope.report.diagnosis_page import shares
from composcope.report.runs import RunRow

GROUPS = {
    "seen": "trained on seen combinations only",
    "low-rank": "low-rank embeddings without penalties",
    "stripes": "stripes, one factor at a time",
    "stripes and bumps": "stripes and some seen combinations",
    "penalties": "low-rank embeddings with penalties",
    "pixel-wise": "a network that works pixel by pixel",
}
"""What could have taught a decoder to compose, in words."""
PLAIN = ("seen", "low-rank")
RENDERED = ("stripes and bumps", "penalties", "pixel-wise")
"""Groups without and with factors rendered in pixel space, which the paper says it takes."""
MOST_EXPLORED = 12


def group(row: RunRow) -> str:
    """Which of `GROUPS` a run belongs to, by its spec."""
    if row.get("decoder", "kind") == "lowrank":
        return "penalties" if row.get("penalties") else "low-rank"
    if row.get("sampling", "kind") == "stripes" and row.get("sampling", "stripes") != 0:
        return "stripes and bumps" if row.get("sampling", "bumps") or row.get("sampling", "fraction") else "stripes"
    return "pixel-wise" if row.get("decoder", "kind") == "pixelwise" else "seen"


def judged_runs(rows: Sequence[RunRow]) -> list[RunRow]:
    """Those whose held-out combinations test composition and were judged."""
    return [row for row in rows if row.shares is not None and row.composition]


def who_composes(rows: Sequence[RunRow]) -> list[dict[str, Any]]:
    """For each group that occurs: its runs, how many compose, and the mean share of each class of held-out image."""
    found = []
    for name, label in GROUPS.items():
        runs = [row for row in judged_runs(rows) if group(row) == name]
        if runs:
            total: Counter[str] = Counter()
            for row in runs:
                total.update(row.shares or {})
            mean = {kind: value / len(runs) for kind, value in total.items()}
            composing = sum(row.kind == "composes" for row in runs)
            found.append({"label": label, "runs": len(runs), "composing": composing, "shares": shares(mean)})
    return found


def answer(rows: Sequence[RunRow]) -> str:
    """One sentence, from the runs alone: a decoder composes if most of its held-out images are composed."""
    runs = judged_runs(rows)
    plain = [row.kind == "composes" for row in runs if group(row) in PLAIN]
    rendered = [row.kind == "composes" for row in runs if group(row) in RENDERED]
    if not plain and not rendered:
        return "No run here has been judged on held-out combinations, so nothing can be said yet."
    told = []
    if plain:
        told.append(f"{sum(plain)} of {len(plain)} decoders trained on seen combinations alone compose")
    if rendered:
        cured = "with penalties, pixel by pixel, or with stripes and some seen combinations"
        told.append(f"{sum(rendered)} of {len(rendered)} {cured} do")
    return f"{_short_answer(plain, rendered)}: {'; '.join(told)}."


def _short_answer(plain: Sequence[bool], rendered: Sequence[bool]) -> str:
    """Most of them, or not."""
    alone = None if not plain else 2 * sum(plain) > len(plain)
    helped = None if not rendered else 2 * sum(rendered) > len(rendered)
    if alone:
        return "Mostly yes"
    if alone is None:
        return "When it is forced to, mostly yes" if helped else "Mostly no, though it is forced to"
    if helped is None:
        return "Mostly no"
    return "Not by itself, but when forced to" if helped else "Mostly no, even when forced to"


def _kind(row: RunRow) -> str:
    """Everything but the seed."""
    return str({**row.spec, "seed": None})


def tally(judgements: Sequence[Judgement]) -> list[tuple[str, int]]:
    """How many claims came out how."""
    counts = Counter(judgement.outcome for judgement in judgements)
    return [(outcome, counts[outcome]) for outcome in ("reproduced", "not reproduced", "undetermined")]


def explored(rows: Sequence[RunRow], most: int = MOST_EXPLORED) -> list[RunRow]:
    """Judged runs of two factors, one a title, from each group in turn.

    Of runs with the same title the one whose other settings have the most seeds, and of these the least seed; in a
    group, runs of the commonest task come first.
    """
    usable = [row for row in judged_runs(rows) if row.part and row.part["samples"] and len(row.part["factors"]) == 2]
    tasks, seeds = Counter(str(row.get("task")) for row in usable), Counter(_kind(row) for row in usable)
    titled: dict[str, RunRow] = {}
    for row in sorted(usable, key=lambda row: (-seeds[_kind(row)], _kind(row), row.seed, row.run_id)):
        titled.setdefault(row.title, row)
    ranked = sorted(titled.values(), key=lambda row: (-tasks[str(row.get("task"))], row.title))
    queues = {name: [row for row in ranked if group(row) == name] for name in GROUPS}
    chosen: list[RunRow] = []
    while len(chosen) < most and any(queues.values()):
        for queue in queues.values():
            if queue and len(chosen) < most:
                chosen.append(queue.pop(0))
    return sorted(chosen, key=lambda row: list(GROUPS).index(group(row)))
