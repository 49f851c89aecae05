"""A diagnosis as text for a terminal: the verdict first, then why, then layer by layer. Lines are not wrapped."""

from composcope.diagnosis.diagnosis import Diagnosis
from composcope.diagnosis.tables import Table, layer_table, tables
from composcope.diagnosis.text import table
from composcope.diagnosis.wording import broken_pairs, confusions, factor_rows, headline, score_text, shares_text


def summary(diagnosis: Diagnosis) -> str:
    """All blocks that have something to say, with an empty line between them."""
    blocks = [
        _verdict(diagnosis),
        _factors(diagnosis),
        *(_lines(group) for group in tables(diagnosis)),
        _layers(diagnosis),
        _notes(diagnosis),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _verdict(diagnosis: Diagnosis) -> list[str]:
    where = scope(diagnosis)
    verdict = diagnosis.verdict
    if verdict is None:
        return [f"verdict: none, {where}"]
    lines = [f"verdict: {headline(verdict)}. {score_text(verdict)}".rstrip(), f"  {shares_text(verdict.shares)}"]
    if verdict.seen_shares:
        lines.append(f"  on seen images: {shares_text({k: v for k, v in verdict.seen_shares.items() if v})}")
    lines.append(f"  {where}")
    if not diagnosis.certificate.startswith("composition"):
        lines.append(f"  {diagnosis.certificate}")
    return lines


def _factors(diagnosis: Diagnosis) -> list[str]:
    rows = factor_rows(diagnosis)
    if not rows or diagnosis.verdict is None:
        return []
    lines = table([["factor is right", "held-out", "within one step", "seen"], *map(list, rows)])
    lines += [f"  {line}" for line in confusions(diagnosis.verdict)]
    broken = broken_pairs(diagnosis.verdict)
    return [*lines, f"  breaks at: {', '.join(broken)}"] if broken else lines


def scope(diagnosis: Diagnosis) -> str:
    """How many combinations of which factors are held out."""
    grid = " x ".join(f"{name} ({size})" for name, size in zip(diagnosis.factors, diagnosis.sizes, strict=True))
    return f"{diagnosis.heldout} of {diagnosis.points} combinations of {grid} held out"


def _lines(group: Table) -> list[str]:
    return table([[group.title, *group.columns], *([row.title, *row.values] for row in group.rows)])


def _layers(diagnosis: Diagnosis) -> list[str]:
    if not diagnosis.layers:
        return []
    layers = layer_table(diagnosis)
    title = f"layers (geometry: {methods(diagnosis) or 'none'}; probes: {probe_kind(diagnosis)})"
    return [title, *("  " + line for line in _lines(layers))]


def methods(diagnosis: Diagnosis) -> str:
    """How the layers' geometry was measured: "exact", "differences" or both."""
    return " and ".join(sorted({layer.geometry.method for layer in diagnosis.layers.values() if layer.geometry}))


def probe_kind(diagnosis: Diagnosis) -> str:
    """What the probes' numbers are, and on which points."""
    scores = {score.score for layer in diagnosis.layers.values() for score in (layer.probe or {}).values()}
    where = "on held-out points, fitted on seen" if diagnosis.heldout else "cross-validated"
    return f"{' or '.join(sorted(scores, reverse=True)) or 'none'} {where}"


def _notes(diagnosis: Diagnosis) -> list[str]:
    return ["notes", *(f"  {name}: {why}" for name, why in diagnosis.notes.items())] if diagnosis.notes else []
