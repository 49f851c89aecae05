"""A diagnosis in a notebook."""

from composcope.diagnosis.diagnosis import Diagnosis
from composcope.diagnosis.summary import scope
from composcope.diagnosis.tables import Table, layer_table, tables
from composcope.diagnosis.wording import factor_rows, headline, score_text, shares_text
from composcope.display import block, folded, line, table


def diagnosis_html(diagnosis: Diagnosis) -> str:
    """The verdict in front; the reasons behind it open on a click."""
    parts = [line(scope(diagnosis))]
    verdict = diagnosis.verdict
    if verdict is not None:
        parts = [
            line(f"Verdict: {headline(verdict)}. {score_text(verdict)}".rstrip(), strong=True),
            line(f"held-out images: {shares_text({kind: s for kind, s in verdict.shares.items() if s})}"),
            line(f"seen images: {shares_text({kind: s for kind, s in verdict.seen_shares.items() if s})}"),
            *parts,
            table(["factor is right", "held-out", "within one step", "seen"], factor_rows(diagnosis) or []),
        ]
    parts += [folded(group.title, _table(group)) for group in tables(diagnosis)]
    if diagnosis.layers:
        parts.append(folded("layers", _table(layer_table(diagnosis))))
    if diagnosis.notes:
        parts.append(folded("notes", table(["about", "note"], diagnosis.notes.items())))
    return block(*parts)


def _table(group: Table) -> str:
    return table([group.title, *group.columns], [[row.title, *row.values] for row in group.rows])
