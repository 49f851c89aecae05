"""How a claim is judged: an effect a seed, an inequality, and an interval over seeds."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from composcope.errors import RunFailed
from composcope.paper.evidence import Evidence, Plan
from composcope.paper.preset import Preset

Outcome = Literal["reproduced", "not reproduced", "undetermined"]
RESAMPLES = 10_000
LEAST_SEEDS = 3


@dataclass(frozen=True)
class Part:
    """One inequality of a claim.

    - `measure`: what is measured, in words, without the inequality.
    - `effect`: one value a seed; fewer where runs are missing, none where nothing can be said.
    - `relation` and `threshold`: what the claim demands of the effect; `reason`: why there.
    - `exact`: the effect follows from the definitions, not from training, so that seeds do not matter.
    """

    measure: str
    effect: Callable[[Evidence], Sequence[float]]
    relation: Literal[">", "<"]
    threshold: float
    reason: str
    exact: bool = False


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: its statement in our words, where it stands, the runs it needs and its inequalities.

    - `figures`: the pictures that show it. `known`: what to know about it whatever comes out.
    """

    number: int
    statement: str
    where: str
    figures: tuple[str, ...]
    plan: Callable[[Preset], Plan]
    parts: tuple[Part, ...]
    known: str = ""


@dataclass(frozen=True)
class PartJudgement:
    """What was found of one inequality: the mean effect, its interval over seeds, and the outcome."""

    measure: str
    relation: str
    threshold: float
    reason: str
    effect: float | None
    low: float | None
    high: float | None
    values: tuple[float, ...]
    outcome: Outcome


@dataclass(frozen=True)
class Judgement:
    """A claim's outcome, with what was seen in words, and its parts."""

    number: int
    statement: str
    where: str
    figures: tuple[str, ...]
    outcome: Outcome
    saw: str
    known: str
    seeds: int
    parts: tuple[PartJudgement, ...]


def judge(claim: Claim, evidence: Evidence) -> Judgement:
    """Reproduced if every part is, not reproduced if one part is not, otherwise undetermined."""
    parts = tuple(_judge_part(part, evidence) for part in claim.parts)
    outcomes = [part.outcome for part in parts]
    outcome: Outcome = "undetermined"
    if "not reproduced" in outcomes:
        outcome = "not reproduced"
    elif all(one == "reproduced" for one in outcomes):
        outcome = "reproduced"
    seeds = min((len(part.values) for part in parts), default=0)
    saw = "; ".join(_saw(part) for part in parts)
    return Judgement(claim.number, claim.statement, claim.where, claim.figures, outcome, saw, claim.known, seeds, parts)


def _judge_part(part: Part, evidence: Evidence) -> PartJudgement:
    try:
        values = tuple(float(value) for value in part.effect(evidence) if np.isfinite(value))
    except RunFailed:  # a damaged run; the table of runs says which
        values = ()
    effect, low, high = interval(values)
    outcome: Outcome = "undetermined"
    if effect is not None and low is not None and high is not None and (part.exact or len(values) >= LEAST_SEEDS):
        yes, no = (low > part.threshold, high <= part.threshold)
        if part.relation == "<":
            yes, no = (high < part.threshold, low >= part.threshold)
        outcome = "reproduced" if yes else "not reproduced" if no else "undetermined"
    return PartJudgement(part.measure, part.relation, part.threshold, part.reason, effect, low, high, values, outcome)


def interval(values: Sequence[float], level: float = 0.95) -> tuple[float | None, float | None, float | None]:
    """The mean and its percentile bootstrap interval over seeds, the same every time; three Nones for no values.

    With three seeds this is the range from the least to the largest: the claim must hold for each of them.

    >>> interval([1.0, 2.0, 3.0])
    (2.0, 1.0, 3.0)
    """
    if not len(values):
        return None, None, None
    data = np.asarray(values, dtype=float)
    draws = np.random.default_rng(0).integers(len(data), size=(RESAMPLES, len(data)))
    means = data[draws].mean(1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
    return float(data.mean()), float(low), float(high)


def _saw(part: PartJudgement) -> str:
    if part.effect is None:
        return f"{part.measure}: no run that counts"
    spread = f" [{part.low:.3g}, {part.high:.3g}]" if len(part.values) > 1 else ""
    return f"{part.measure}: {part.effect:.3g}{spread}, claimed {part.relation} {part.threshold:g}"


def rows(judgements: Sequence[Judgement]) -> list[dict[str, object]]:
    """The ledger for a terminal: one row an inequality, the claim's outcome on its first."""
    found: list[dict[str, object]] = []
    for judgement in judgements:
        for place, part in enumerate(judgement.parts):
            spread = "" if part.low is None else f"[{part.low:.3g}, {part.high:.3g}]"
            found.append(
                {
                    "claim": "" if place else judgement.number,
                    "verdict": "" if place else judgement.outcome,
                    "measure": part.measure,
                    "effect": part.effect,
                    "interval": spread,
                    "claimed": f"{part.relation} {part.threshold:g}",
                    "seeds": len(part.values),
                    "part": part.outcome,
                }
            )
    return found


def as_markdown(judgements: Sequence[Judgement], preset: Preset, settings: Sequence[str] = ()) -> str:
    """The ledger as a page: a table of the outcomes, then each claim with its inequalities and remarks."""
    lines = [
        f"# The ledger, preset {' '.join([preset.name, *settings])}",
        "",
        "| claim | | outcome | seeds | figures |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.number} | {one.statement} | {one.outcome} | {one.seeds} | {', '.join(one.figures)} |"
        for one in judgements
    ]
    for one in judgements:
        lines += ["", f"## {one.number}: {one.outcome}", "", f"{one.statement} ({one.where})", ""]
        lines += ["| measure | effect | interval | claimed | outcome | why there |", "|---|---|---|---|---|---|"]
        for part in one.parts:
            effect = "no run that counts" if part.effect is None else f"{part.effect:.3g}"
            spread = "" if part.low is None else f"{part.low:.3g} to {part.high:.3g}"
            claimed = f"{part.relation} {part.threshold:.3g}"
            cells = (part.measure, effect, spread, claimed, part.outcome, part.reason)
            lines.append(" | ".join(["", *(cell.replace("|", r"\|") for cell in cells), ""]).strip())
        lines += ["", one.known] if one.known else []
    return "\n".join(lines) + "\n"


def as_data(judgements: Sequence[Judgement], preset: Preset, settings: Sequence[str] = ()) -> dict[str, Any]:
    """The ledger as plain data, for claims.json."""
    return {
        "preset": preset.name,
        "settings": list(settings),
        "claims": [asdict(judgement) for judgement in judgements],
    }
