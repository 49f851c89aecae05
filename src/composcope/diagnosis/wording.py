"""The verdict in words and tables, for the terminal and the page."""

from collections.abc import Mapping

from composcope.diagnosis.diagnosis import Diagnosis
from composcope.verdict import KINDS, NOT_LEARNED, Verdict

MOST_LISTED = 3
# Kinds in which the images show true combinations, so that one can say which factors are wrong.
NAMING_FACTORS = ("composes", "mixes up factors", "repeats")
ADDING = [name for name, kind in KINDS.items() if kind == "adds"]


def percent(share: float) -> str:
    """A share as a whole percentage.

    >>> percent(0.125), percent(1.0)
    ('12%', '100%')
    """
    return f"{share:.0%}"


def headline(verdict: Verdict) -> str:
    """What the decoder does, with the factors that fail: "mixes up factors; shape is mostly wrong"."""
    if verdict.kind == NOT_LEARNED:
        return "has not learned what it saw, so nothing can be said about composition"
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
        true, shown = divmod(int(wrong.argmax()), wrong.shape[1])
        lines.append(
            f"{name}: {verdict.label(name, true)} is shown as {verdict.label(name, shown)} in "
            f"{int(wrong[true, shown])} of {int(counts[true].sum())} images"
        )
    return lines


def broken_pairs(verdict: Verdict) -> list[str]:
    """The pairs of values that break most often, where most of their factors' other pairs do not."""
    found = []
    for (first, second), shares in verdict.pairs.items():
        if shares.is_meta:
            return []
        known = shares.isfinite()
        broken = known & (shares.nan_to_num(1.0) < 0.5)
        if broken.any() and 2 * int(broken.sum()) < int(known.sum()):
            for a, b in broken.nonzero().tolist():
                pair = f"{first} {verdict.label(first, a)} with {second} {verdict.label(second, b)}"
                found.append((shares[a, b].item(), f"{pair} ({percent(shares[a, b].item())} right)"))
    return [text for _, text in sorted(found)[:MOST_LISTED]]
