"""All claims of a study with their outcomes, as tables, text and data."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from composcope.display import block, counted, folded, line, table
from composcope.study.judging import NO_RUN, NOT_RUN, Judgement, PartJudgement
from composcope.study.plan import Preset
from composcope.study.statistics import LEVEL

if TYPE_CHECKING:
    from composcope.study.drawing import Axes


@dataclass(frozen=True)
class Ledger:
    """All claims that were judged, at a preset and with the settings that were changed in its runs."""

    study: str
    preset: Preset
    settings: tuple[str, ...]
    judgements: tuple[Judgement, ...]
    machines: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Ledger({self.study!r}, preset {self.preset.name!r}, {self.summary()})"

    def counts(self) -> dict[str, int]:
        """How many claims have each outcome: what holds first, what was not run last."""
        order = {True: 0, False: 1, None: 2}
        ranked = sorted(self.judgements, key=lambda j: (order[j.holds], j.outcome == NOT_RUN, j.outcome))
        return dict(Counter(judgement.outcome for judgement in ranked))

    def summary(self) -> str:
        """One line: how many claims, and their outcomes."""
        counts = ", ".join(f"{count} {outcome}" for outcome, count in self.counts().items())
        return f"{counted(len(self.judgements), 'claim')}: {counts or 'none judged'}"

    @property
    def expected_false_calls(self) -> str:
        """How many wrong outcomes chance alone can be expected to give."""
        judged = sum(any(part.method != "definition" and part.count for part in j.primary) for j in self.judgements)
        return (
            f"Each outcome other than undetermined is wrong with probability at most {LEVEL:g}, so among {judged}"
            f" tested claims at most about {LEVEL * judged:.1f} false calls are expected by chance. Secondary parts are"
            " many and not corrected for their number."
        )

    def to_data(self) -> dict[str, Any]:
        """The ledger as plain data, for claims.json."""
        return {
            "study": self.study,
            "preset": self.preset.name,
            "settings": list(self.settings),
            "machines": list(self.machines),
            "expected_false_calls": self.expected_false_calls,
            "claims": [_finite(asdict(judgement)) for judgement in self.judgements],
        }

    def rows(self) -> list[dict[str, object]]:
        """The ledger for a terminal: one row per inequality, the claim's outcome on its first row."""
        return [
            {
                "claim": "" if index else judgement.number,
                "outcome": "" if index else judgement.outcome,
                "part": ("" if index < len(judgement.primary) else "(secondary) ") + part.measure,
                "effect": part.effect,
                "interval": "" if part.low is None else f"[{part.low:.3g}, {part.high:.3g}]",
                "claimed": part.claimed,
                "p": f"{min(part.p, 1.0):.2g}",
                "seeds": part.count,
                "holds": {True: "yes", False: "no", None: "?"}[part.holds] + _shortage_text(part),
            }
            for judgement in self.judgements
            for index, part in enumerate(judgement.parts)
        ]

    def to_markdown(self) -> str:
        """The ledger as a page: a table of outcomes, then each claim with its inequalities and notes."""
        lines = [
            f"# Ledger of {self.study}, preset {' '.join([self.preset.name, *self.settings])}",
            "",
            self.summary() + ".",
            "",
            self.expected_false_calls,
            *(["", "Machines: " + "; ".join(self.machines) + "."] if self.machines else []),
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

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """One line per claim, with a point in the column of its outcome; returns the matplotlib axes."""
        from composcope.diagnosis.drawing import new_axes
        from composcope.study.drawing import COLOURS, MARK

        axes = ax or new_axes(4.0, 0.6 + 0.2 * max(len(self.judgements), 3))
        columns = {False: "does not hold", None: "undetermined", True: "holds"}
        tones = {False: MARK, None: "#888888", True: COLOURS[2]}
        for row, judgement in enumerate(self.judgements):
            axes.axhline(row, color="#dddddd", linewidth=0.5, zorder=0)
            axes.plot(list(columns).index(judgement.holds), row, "o", color=tones[judgement.holds])
        axes.set_xticks(range(len(columns)), list(columns.values()))
        axes.set_yticks(range(len(self.judgements)), [f"claim {j.number}" for j in self.judgements])
        axes.set(xlim=(-0.5, len(columns) - 0.5), title=self.summary())
        axes.title.set_wrap(True)
        axes.invert_yaxis()
        return axes

    def _repr_html_(self) -> str:
        """In a notebook: the outcomes in front; each claim's inequalities open on a click."""
        rows = [(j.number, j.outcome, j.seeds, j.statement) for j in self.judgements]
        preset = " ".join([self.preset.name, *self.settings])
        return block(
            line(f"{self.study}, preset {preset}: {self.summary()}", strong=True),
            table(["claim", "outcome", "seeds", "statement"], rows),
            *(folded(f"claim {j.number}", _parts_table(j)) for j in self.judgements),
            line(self.expected_false_calls),
        )


def _parts_table(judgement: Judgement) -> str:
    rows = []
    for part in judgement.parts:
        effect = "-" if part.effect is None else f"{part.effect:.3g}"
        spread = "-" if part.low is None else f"{part.low:.3g} to {part.high:.3g}"
        numbers = (part.claimed, f"{part.p:.2g}", f"{part.p_against:.2g}", part.outcome)
        rows.append((part.measure, effect, spread, *numbers))
    return table(["part", "effect", "95 % interval", "claimed", "p", "p against", ""], rows)


def _claim_lines(judgement: Judgement) -> list[str]:
    heading = f"## {judgement.number}: {judgement.outcome}"
    lines = ["", heading, "", f"{judgement.statement} ({judgement.source})"]
    lines += ["", judgement.qualification] if judgement.qualification else []
    columns = ("part", "effect", "95 % interval", "claimed", "p", "p against", "test", "seeds", "", "by seed")
    lines += ["", f"| {' | '.join((*columns, 'reason for the threshold'))} |", "|---" * (len(columns) + 1) + "|"]
    for index, part in enumerate(judgement.parts):
        kind = "primary" if index < len(judgement.primary) else "secondary"
        cells = (
            f"{kind}: {part.measure}",
            NO_RUN if part.effect is None and not part.censored else _number(part.effect),
            "" if part.low is None else f"{part.low:.3g} to {part.high:.3g}",
            part.claimed,
            f"{part.p:.2g}",
            f"{part.p_against:.2g}",
            part.method,
            _seeds_text(part),
            part.outcome + _shortage_text(part) + ("" if part.registered else ", registered after its runs"),
            seed_texts(part, _number),
            part.reason,
        )
        lines.append(" | ".join(["", *(cell.replace("|", r"\|") for cell in cells), ""]).strip())
    return [*lines, "", judgement.note] if judgement.note else lines


def _shortage_text(part: PartJudgement) -> str:
    return f" ({part.shortage})" if part.shortage else ""


def _seeds_text(part: PartJudgement) -> str:
    """How many seeds count, and how many are censored or excluded."""
    extra = []
    if part.censored:
        extra.append(f"{len(part.censored)} known by bounds")
    extra += [f"{count} excluded: {reason}" for reason, count in Counter(part.excluded.values()).items()]
    return f"{part.count}" + (f" ({'; '.join(extra)})" if extra else "")


def seed_texts(part: PartJudgement, number: Callable[[float], str]) -> str:
    """The value of every seed that counts, or its bounds."""
    values = {seed: number(value) for seed, value in zip(part.seeds, part.values, strict=True)}
    values |= {seed: bounds_text(low, high, number) for seed, (low, high) in part.censored.items()}
    return ", ".join(f"{seed}: {value}" for seed, value in sorted(values.items()))


def bounds_text(low: float, high: float, number: Callable[[float], str]) -> str:
    """Bounds for readers.

    >>> bounds_text(300, math.inf, str), bounds_text(-math.inf, 8, str), bounds_text(100, 200, str)
    ('>= 300', '<= 8', '100 to 200')
    >>> bounds_text(-math.inf, math.inf, str)
    'unknown'
    """
    if math.isinf(low):
        return "unknown" if math.isinf(high) else f"<= {number(high)}"
    return f">= {number(low)}" if math.isinf(high) else f"{number(low)} to {number(high)}"


def _finite(data: Any) -> Any:
    """Plain data for JSON, which has no infinity: an open bound becomes None."""
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
