"""A ledger in a notebook."""

from composcope.display import block, folded, line, table
from composcope.study.judging import Judgement
from composcope.study.ledger import Ledger


def ledger_html(ledger: Ledger) -> str:
    """The outcomes in front; each claim's inequalities open on a click."""
    rows = [(j.number, j.outcome, j.seeds, j.statement) for j in ledger.judgements]
    preset = " ".join([ledger.preset.name, *ledger.settings])
    return block(
        line(f"{ledger.study}, preset {preset}: {ledger.summary()}", strong=True),
        table(["claim", "outcome", "seeds", "statement"], rows),
        *(folded(f"claim {j.number}", _parts(j)) for j in ledger.judgements),
        line(ledger.expected_false_calls),
    )


def _parts(judgement: Judgement) -> str:
    rows = []
    for part in judgement.parts:
        effect = "-" if part.effect is None else f"{part.effect:.3g}"
        spread = "-" if part.low is None else f"{part.low:.3g} to {part.high:.3g}"
        rows.append(
            (part.measure, effect, spread, part.claimed, f"{part.p:.2g}", f"{part.p_against:.2g}", part.outcome)
        )
    return table(["part", "effect", "95 % interval", "claimed", "p", "p against", ""], rows)
