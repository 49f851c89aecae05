"""The report's first lines: which decoders compose, what the ledger says, and which runs are worth exploring."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from composcope.pages.diagnosis_page import shares
from composcope.pages.runs import RunRow
from composcope.study.study import Headline

MAX_EXPLORED = 12
OTHER = "other runs"


def class_label(row: RunRow, headline: Headline) -> str:
    """The label of the class that a run belongs to."""
    run_class = headline.class_of(row.spec)
    return OTHER if run_class is None else run_class.label


def class_labels(headline: Headline) -> list[str]:
    """Every class in the headline's order, and the class of runs that belong to none."""
    return [*(run_class.label for run_class in headline.classes), OTHER]


def classified_runs(rows: Sequence[RunRow]) -> list[RunRow]:
    """Those whose held-out combinations test composition and were classified."""
    return [row for row in rows if row.shares is not None and row.composition]


def who_composes(rows: Sequence[RunRow], headline: Headline) -> list[dict[str, Any]]:
    """For each class that occurs: its runs, how many compose, and the mean share of each kind of held-out image."""
    classes = []
    for label in class_labels(headline):
        runs = [row for row in classified_runs(rows) if class_label(row, headline) == label]
        if runs:
            total: Counter[str] = Counter()
            for row in runs:
                total.update(row.shares or {})
            mean = {kind: value / len(runs) for kind, value in total.items()}
            composing = sum(row.kind == "composes" for row in runs)
            classes.append({"label": label, "runs": len(runs), "composing": composing, "shares": shares(mean)})
    return classes


def answer(rows: Sequence[RunRow], headline: Headline) -> str:
    """One sentence, from the runs alone: a decoder composes if most of its held-out images are composed."""
    sides: dict[str, list[bool]] = {"untreated": [], "treated": [], "neither": []}
    for row in classified_runs(rows):
        run_class = headline.class_of(row.spec)
        sides["neither" if run_class is None else run_class.side].append(row.kind == "composes")
    untreated, treated = sides["untreated"], sides["treated"]
    if not untreated and not treated:
        return "No run here has been classified on held-out combinations, so there is no answer yet."
    counts = []
    if untreated:
        counts.append(f"{sum(untreated)} of {len(untreated)} {headline.untreated} compose")
    if treated:
        counts.append(f"{sum(treated)} of {len(treated)} {headline.treated} do")
    return f"{_short_answer(untreated, treated)}: {'; '.join(counts)}."


def _short_answer(untreated: Sequence[bool], treated: Sequence[bool]) -> str:
    """Whether most of each side compose."""
    alone = None if not untreated else 2 * sum(untreated) > len(untreated)
    helped = None if not treated else 2 * sum(treated) > len(treated)
    if alone:
        return "Mostly yes"
    if alone is None:
        return "With help, mostly yes" if helped else "Mostly no, even with help"
    if helped is None:
        return "Mostly no"
    return "Not by itself, but with help" if helped else "Mostly no, even with help"


def explored(rows: Sequence[RunRow], headline: Headline, most: int = MAX_EXPLORED) -> list[RunRow]:
    """Judged runs of two factors or more, one per title and set of factors, taken from each class in turn.

    Of runs with the same title the one whose other settings have the most seeds, and of these the smallest seed; in a
    class, sets of factors take turns, and runs of the most common task come first.
    """
    usable = [row for row in classified_runs(rows) if len(row.factors) > 1]
    tasks, seeds = Counter(str(row.get("task")) for row in usable), Counter(_without_seed(row) for row in usable)
    titled: dict[tuple[str, ...], RunRow] = {}
    for row in sorted(usable, key=lambda row: (-seeds[_without_seed(row)], _without_seed(row), row.seed, row.run_id)):
        titled.setdefault((row.title, *row.factors), row)
    ranked = sorted(titled.values(), key=lambda row: (-tasks[str(row.get("task"))], row.title))
    labels = class_labels(headline)
    queues = [_in_turn([row for row in ranked if class_label(row, headline) == label]) for label in labels]
    chosen: list[RunRow] = []
    while len(chosen) < most and any(queues):
        for queue in queues:
            if queue and len(chosen) < most:
                chosen.append(queue.pop(0))
    return sorted(chosen, key=lambda row: labels.index(class_label(row, headline)))


def _in_turn(rows: Sequence[RunRow]) -> list[RunRow]:
    """The first run of every set of factors, then the second of each, and so on."""
    before: Counter[tuple[str, ...]] = Counter()
    turns = []
    for row in rows:
        turns.append(before[tuple(row.factors)])
        before[tuple(row.factors)] += 1
    return [row for _, row in sorted(zip(turns, rows, strict=True), key=lambda pair: pair[0])]


def _without_seed(row: RunRow) -> str:
    """Everything in the spec but the seed."""
    return str({**row.spec, "seed": None})
