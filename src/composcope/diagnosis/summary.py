"""A diagnosis in words: for the terminal, for a notebook and for the page."""

from collections.abc import Mapping

from composcope.diagnosis.diagnosis import Diagnosis
from composcope.diagnosis.reader_text import COLUMNS, misreadings, reader_headline, reader_notes, reader_rows
from composcope.diagnosis.tables import Table, layer_table, tables
from composcope.display import aligned, block, folded, line, percent, table
from composcope.verdict import KINDS, NOT_LEARNED, Verdict
from composcope.verdict.by_readers import CANNOT_TELL

MAX_LISTED = 3
# Kinds in which the images show true combinations, so that one can say which factors are wrong.
NAMING_FACTORS = ("composes", "mixes up factors", "repeats")
ADDING = [name for name, kind in KINDS.items() if kind == "adds"]


def headline(verdict: Verdict) -> str:
    """What the decoder does, with the factors that fail: "mixes up factors; shape is mostly wrong"."""
    if verdict.kind == NOT_LEARNED:
        return "has not learned what it saw, so nothing can be said about composition"
    if verdict.kind == CANNOT_TELL:
        return reader_headline(verdict)
    if verdict.kind == "adds" and 2 * sum(verdict.seen_shares.get(name, 0.0) for name in ADDING) > 1:
        return "adds, on seen images as well: it draws what each factor does by itself, everywhere"
    failing = verdict.failing if verdict.kind in NAMING_FACTORS else []
    if not failing:
        return verdict.kind
    names = " and ".join([", ".join(failing[:-1]), failing[-1]] if len(failing) > 1 else failing)
    how = "often" if verdict.kind == "composes" else "mostly"
    return f"{verdict.kind}; {names} {'are' if len(failing) > 1 else 'is'} {how} wrong"


def score_text(verdict: Verdict) -> str:
    """The score and its interval as a sentence; empty for a decoder that has not learned."""
    if verdict.score is None:
        return ""
    interval = ""
    if verdict.interval is not None:
        interval = f" (95% interval {percent(verdict.interval[0])} to {percent(verdict.interval[1])})"
    return f"It composes {percent(verdict.score)} of the held-out images{interval}."


def shares_text(shares: Mapping[str, float]) -> str:
    """Every class with its share, the largest first."""
    ordered = sorted(shares.items(), key=lambda share: -share[1])
    return ", ".join(f"{name} {percent(share)}" for name, share in ordered)


def factor_rows(diagnosis: Diagnosis) -> list[tuple[str, str, str, str]]:
    """For each factor: the share of held-out images that show its value, within one step, and of seen images."""
    verdict = diagnosis.verdict
    if verdict is None:
        return []
    return [
        (
            name,
            percent(share),
            percent(verdict.within_one_step[name]) if name in verdict.within_one_step else "-",
            percent(verdict.seen_factors[name]) if name in verdict.seen_factors else "-",
        )
        for name, share in verdict.factors.items()
    ]


def confusions(verdict: Verdict) -> list[str]:
    """The most common wrong value of each factor that fails: "shape: 1 is shown as 0 in 9 of 9 images"."""
    lines = []
    for name in verdict.failing:
        counts = verdict.confusion[name]
        if counts.is_meta:  # numbers without their arrays
            return []
        wrong = counts[:, :-1].clone()
        wrong.fill_diagonal_(0)
        true, other = divmod(int(wrong.argmax()), wrong.shape[1])
        lines.append(
            f"{name}: {verdict.label(name, true)} is shown as {verdict.label(name, other)} in "
            f"{int(wrong[true, other])} of {int(counts[true].sum())} images"
        )
    return lines


def broken_pairs(verdict: Verdict) -> list[str]:
    """The pairs of values that break most often, where most of their factors' other pairs do not."""
    pairs = []
    for (first, second), shares in verdict.pairs.items():
        if shares.is_meta:
            return []
        heldout = shares.isfinite()
        broken = heldout & (shares.nan_to_num(1.0) < 0.5)
        if broken.any() and 2 * int(broken.sum()) < int(heldout.sum()):
            for a, b in broken.nonzero().tolist():
                pair = f"{first} {verdict.label(first, a)} with {second} {verdict.label(second, b)}"
                pairs.append((shares[a, b].item(), f"{pair} ({percent(shares[a, b].item())} right)"))
    return [text for _, text in sorted(pairs)[:MAX_LISTED]]


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
    lines = [f"verdict: {headline(verdict)}. {score_text(verdict)}".rstrip(), f"  {shares_text(_possible(verdict))}"]
    if verdict.seen_shares:
        lines.append(f"  on seen images: {shares_text({k: v for k, v in verdict.seen_shares.items() if v})}")
    lines.append(f"  {where}")
    if not diagnosis.certificate.startswith("composition"):
        lines.append(f"  {diagnosis.certificate}")
    return lines


def _possible(verdict: Verdict) -> dict[str, float]:
    """The shares of the classes that the evidence can tell; readers know no sums of factors."""
    return {name: share for name, share in verdict.shares.items() if share or verdict.reader is None}


def _factors(diagnosis: Diagnosis) -> list[str]:
    rows = factor_rows(diagnosis)
    if diagnosis.verdict is not None and diagnosis.verdict.reader is not None:
        return _read_factors(diagnosis.verdict)
    if not rows or diagnosis.verdict is None:
        return []
    lines = aligned([["factor is right", "held-out", "within one step", "seen"], *map(list, rows)])
    lines += [f"  {line}" for line in confusions(diagnosis.verdict)]
    broken = broken_pairs(diagnosis.verdict)
    return [*lines, f"  breaks at: {', '.join(broken)}"] if broken else lines


def _read_factors(verdict: Verdict) -> list[str]:
    """The same where readers tell the factors, and what they rest on."""
    lines = aligned([COLUMNS, *reader_rows(verdict)])
    lines += [f"  {line}" for line in (*confusions(verdict), *misreadings(verdict))]
    return [*lines, "", "readers", *(f"  {line}" for line in reader_notes(verdict))]


def scope(diagnosis: Diagnosis) -> str:
    """How many combinations of which factors are held out."""
    grid = " x ".join(f"{name} ({size})" for name, size in zip(diagnosis.factors, diagnosis.sizes, strict=True))
    return f"{diagnosis.heldout} of {diagnosis.points} combinations of {grid} held out"


def _lines(group: Table) -> list[str]:
    return aligned([[group.title, *group.columns], *([row.title, *row.values] for row in group.rows)])


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
            table(COLUMNS, reader_rows(verdict))
            if verdict.reader is not None
            else table(["factor is right", "held-out", "within one step", "seen"], factor_rows(diagnosis) or []),
            *map(line, reader_notes(verdict) if verdict.reader is not None else []),
        ]
    parts += [folded(group.title, _table(group)) for group in tables(diagnosis)]
    if diagnosis.layers:
        parts.append(folded("layers", _table(layer_table(diagnosis))))
    if diagnosis.notes:
        parts.append(folded("notes", table(["about", "note"], diagnosis.notes.items())))
    return block(*parts)


def _table(group: Table) -> str:
    return table([group.title, *group.columns], [[row.title, *row.values] for row in group.rows])
