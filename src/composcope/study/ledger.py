"""How claims are judged: an effect for every seed, an inequality, and an interval over seeds."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from composcope.errors import RunFailed
from composcope.study.claim import Claim, Part
from composcope.study.evidence import Evidence
from composcope.study.preset import Preset
from composcope.study.statistics import interval

Outcome = Literal["reproduced", "not reproduced", "undetermined"]
OUTCOMES: tuple[Outcome, ...] = ("reproduced", "not reproduced", "undetermined")
FEWEST_SEEDS = 3
NO_RUN = "no eligible run"


@dataclass(frozen=True)
class PartJudgement:
    """The result for one inequality: the mean effect, its interval over seeds, and the outcome."""

    measure: str
    relation: str
    threshold: float
    reason: str
    effect: float | None
    low: float | None
    high: float | None
    seeds: tuple[int, ...]
    values: tuple[float, ...]
    outcome: Outcome

    @property
    def claimed(self) -> str:
        return f"{self.relation} {self.threshold:g}"


@dataclass(frozen=True)
class Judgement:
    """A claim's outcome, a summary in words, and its parts. `label`: what the runs can show."""

    number: int
    statement: str
    source: str
    figures: tuple[str, ...]
    label: str
    outcome: Outcome
    summary: str
    note: str
    seeds: int
    parts: tuple[PartJudgement, ...]


@dataclass(frozen=True)
class Ledger:
    """All claims that were judged, at a preset and with the settings that were changed in its runs."""

    study: str
    preset: Preset
    settings: tuple[str, ...]
    judgements: tuple[Judgement, ...]

    def counts(self) -> dict[Outcome, int]:
        """How many claims have each outcome."""
        counted = Counter(judgement.outcome for judgement in self.judgements)
        return {outcome: counted[outcome] for outcome in OUTCOMES}

    def summary(self) -> str:
        """One line: how many claims, and their outcomes."""
        counts = ", ".join(f"{count} {outcome}" for outcome, count in self.counts().items())
        return f"{len(self.judgements)} claims: {counts}"

    def to_data(self) -> dict[str, Any]:
        """The ledger as plain data, for claims.json."""
        return {
            "study": self.study,
            "preset": self.preset.name,
            "settings": list(self.settings),
            "claims": [asdict(judgement) for judgement in self.judgements],
        }

    def rows(self) -> list[dict[str, object]]:
        """The ledger for a terminal: one row per inequality, the claim's outcome on its first row."""
        return [
            {
                "claim": "" if index else judgement.number,
                "outcome": "" if index else judgement.outcome,
                "measure": part.measure,
                "effect": part.effect,
                "interval": "" if part.low is None else f"[{part.low:.3g}, {part.high:.3g}]",
                "claimed": part.claimed,
                "seeds": len(part.values),
                "part": part.outcome,
            }
            for judgement in self.judgements
            for index, part in enumerate(judgement.parts)
        ]

    def to_markdown(self) -> str:
        """The ledger as a page: a table of outcomes, then each claim with its inequalities and notes."""
        lines = [
            f"# Ledger of {self.study}, preset {' '.join([self.preset.name, *self.settings])}",
            "",
            "| claim | | outcome | seeds | figures |",
            "|---|---|---|---|---|",
        ]
        lines += [
            f"| {j.number} | {j.statement} | {j.outcome} | {j.seeds} | {', '.join(j.figures)} |"
            for j in self.judgements
        ]
        for judgement in self.judgements:
            lines += _claim_lines(judgement)
        return "\n".join(lines) + "\n"


def _claim_lines(judgement: Judgement) -> list[str]:
    lines = ["", f"## {judgement.number}: {judgement.outcome}", "", f"{judgement.statement} ({judgement.source})", ""]
    lines += [
        "| measure | effect | interval | claimed | outcome | reason for the threshold |",
        "|---|---|---|---|---|---|",
    ]
    for part in judgement.parts:
        effect = NO_RUN if part.effect is None else f"{part.effect:.3g}"
        spread = "" if part.low is None else f"{part.low:.3g} to {part.high:.3g}"
        cells = (part.measure, effect, spread, part.claimed, part.outcome, part.reason)
        lines.append(" | ".join(["", *(cell.replace("|", r"\|") for cell in cells), ""]).strip())
    return [*lines, "", judgement.note] if judgement.note else lines


def judge(claim: Claim, evidence: Evidence) -> Judgement:
    """Reproduced if every part is, not reproduced if one part is not, otherwise undetermined."""
    parts = tuple(_judge_part(part, evidence) for part in claim.parts)
    outcomes = [part.outcome for part in parts]
    outcome: Outcome = "undetermined"
    if "not reproduced" in outcomes:
        outcome = "not reproduced"
    elif all(part_outcome == "reproduced" for part_outcome in outcomes):
        outcome = "reproduced"
    return Judgement(
        claim.number,
        claim.statement,
        claim.source,
        claim.figures,
        evidence.preset.label_of(claim.number),
        outcome,
        "; ".join(_summary(part) for part in parts),
        claim.note,
        min((len(part.values) for part in parts), default=0),
        parts,
    )


def _judge_part(part: Part, evidence: Evidence) -> PartJudgement:
    try:
        effects = {seed: float(value) for seed, value in part.effect(evidence).items() if np.isfinite(value)}
    except RunFailed:  # a damaged run; the table of runs says which
        effects = {}
    values = tuple(effects.values())
    effect, low, high = interval(values)
    outcome: Outcome = "undetermined"
    if effect is not None and low is not None and high is not None and (part.exact or len(values) >= FEWEST_SEEDS):
        yes, no = (low > part.threshold, high <= part.threshold)
        if part.relation == "<":
            yes, no = (high < part.threshold, low >= part.threshold)
        outcome = "reproduced" if yes else "not reproduced" if no else "undetermined"
    return PartJudgement(
        part.measure, part.relation, part.threshold, part.reason, effect, low, high, tuple(effects), values, outcome
    )


def _summary(part: PartJudgement) -> str:
    if part.effect is None:
        return f"{part.measure}: {NO_RUN}"
    spread = f" [{part.low:.3g}, {part.high:.3g}]" if len(part.values) > 1 else ""
    return f"{part.measure}: {part.effect:.3g}{spread}, claimed {part.claimed}"
