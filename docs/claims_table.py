"""The table of claims in reproduction.md, from the committed ledgers: `python docs/claims_table.py` writes it again."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reproduction.md"
COLUMNS = ("claim", "as published", "ours", "at 16x16", "at the authors' size", "secondary parts that do not hold")
HEAD = f"| {' | '.join(COLUMNS)} |"
TABLE = re.compile(rf"{re.escape(HEAD)}\n(\|.*\n)+")

Claims = Mapping[int, Mapping[str, Any]]


def ledger(preset: str) -> Claims:
    """The claims of a committed ledger by number."""
    content = json.loads((ROOT / "results" / preset / "claims.json").read_text())
    return {claim["number"]: claim for claim in content["claims"]}


def table(quick: Claims, paper: Claims) -> str:
    """A row per claim: the effect that decides, both outcomes, and what does not hold beside the primary statement."""
    rows = [HEAD, "|" + "---|" * len(COLUMNS)]
    for number, claim in quick.items():
        large = paper.get(number)
        at_paper = large["outcome"] if large else "not run"
        ours = _deciding(claim, "quick") if at_paper == "not run" else _deciding(large, "authors' size")
        cells = [str(number), claim["statement"], ours, claim["outcome"], at_paper, _failing(claim, large)]
        rows.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def _deciding(claim: Mapping[str, Any], size: str) -> str:
    """The effect of the first inequality with the claim's outcome; others are in the ledgers."""
    part = next((part for part in claim["primary"] if part["holds"] is claim["holds"]), claim["primary"][0])
    if claim["outcome"] == "not run":
        return ""
    if part["effect"] is None:
        return f"{part['measure']}: {_span(part['censored'].values())} over seeds, {size}"
    interval = "" if part["low"] is None else f" ({part['low']:.2g} to {part['high']:.2g})"
    return f"{part['measure']}: {part['effect']:.2g}{interval}, {size}"


def _span(bounds: Iterable[tuple[float | None, float | None]]) -> str:
    """What lies within the bounds of all seeds; None is an open end."""
    lows, highs = zip(*bounds, strict=True)
    low, high = (None if None in ends else f"{best(ends):.2g}" for ends, best in ((lows, min), (highs, max)))
    if low is None:
        return "not known" if high is None else f"at most {high}"
    return f"at least {low}" if high is None else f"{low} to {high}"


def _failing(quick: Mapping[str, Any], paper: Mapping[str, Any] | None) -> str:
    small, large = _failing_parts(quick), _failing_parts(paper) if paper else []
    sizes = {
        "both": [part for part in small if part in large],
        "quick": [part for part in small if part not in large],
        "authors' size": [part for part in large if part not in small],
    }
    return ". ".join(f"{size}: {'; '.join(parts)}" for size, parts in sizes.items() if parts)


def _failing_parts(claim: Mapping[str, Any]) -> list[str]:
    """The measures of secondary parts that do not hold; one called "the same ..." is named after the part before it."""
    names: list[str] = []
    for part in (*claim["primary"], *claim["secondary"]):
        same = part["measure"].startswith("the same")
        names.append(f"{names[-1]} ({part['measure']})" if same and names else part["measure"])
    secondary = zip(names[len(claim["primary"]) :], claim["secondary"], strict=True)
    return [name for name, part in secondary if part["holds"] is False]


def main() -> None:
    page = PAGE.read_text()
    if not TABLE.search(page):
        raise SystemExit(f"{PAGE} has no table that begins with: {HEAD}")
    PAGE.write_text(TABLE.sub(lambda match: table(ledger("quick"), ledger("paper")), page))


if __name__ == "__main__":
    main()
