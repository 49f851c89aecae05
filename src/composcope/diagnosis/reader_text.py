"""A verdict by readers in words: what it says, what it rests on, and about what nothing can be said."""

from composcope.display import percent
from composcope.verdict import Verdict
from composcope.verdict.by_readers import CANNOT_TELL
from composcope.verdict.readings import Calibration

MAX_CONFUSED = 2  # wrong values that are named, per factor
# A copy is what is nearer to a training image than 99 % of real images: more than this share is no accident.
MANY_COPIES = 0.05


def reader_headline(verdict: Verdict) -> str:
    """Why nothing can be said, for the kind that says so."""
    reader = _reader(verdict)
    if verdict.kind != CANNOT_TELL or verdict.interval is None:
        return verdict.kind
    unread = [name for name in reader.cannot_tell if name not in verdict.factors]
    if unread and verdict.interval[0] > 0.5:
        readable = ", ".join(verdict.factors) or "no factor"
        return f"cannot tell: {', '.join(unread)} cannot be read reliably ({readable} can)"
    low, high = verdict.interval
    return f"cannot tell: between {percent(low)} and {percent(high)} of the held-out images are composed"


def rate(share: float, interval: tuple[float, float] | None) -> str:
    """A share with its interval: "53% (44% to 61%)"."""
    return percent(share) + (f" ({percent(interval[0])} to {percent(interval[1])})" if interval else "")


def reader_rows(verdict: Verdict) -> list[tuple[str, str, str, str]]:
    """For each factor: its share held-out and seen, and how the reader does on real images."""
    reader = _reader(verdict)
    return [
        (
            name,
            rate(verdict.factors[name], reader.intervals.get(name)) if name in verdict.factors else CANNOT_TELL,
            percent(verdict.seen_factors[name]) if name in verdict.seen_factors else "-",
            f"{percent(reader.accuracy[name])} (chance {percent(reader.chance[name])})",
        )
        for name in reader.accuracy
    ]


COLUMNS = ("factor is right", "held-out (95% interval)", "seen", "reader on real images")


def reader_notes(verdict: Verdict) -> list[str]:
    """What the shares rest on, the control, copies, and what cannot be told; a sentence each."""
    reader = _reader(verdict)
    lines = [
        f"Read in {reader.samples} images of each of {reader.combinations} held-out combinations.",
        f"The readers were tested on {reader.rests_on}.",
        f"They read {percent(reader.joint)} of these right in all factors, "
        f"and {percent(reader.rejected)} seem unreal to them.",
    ]
    control = rate(reader.seen_score, reader.seen_interval)
    lines.append(f"Control: of the generator's own images of seen combinations, {control} are right.")
    for share, which in ((reader.copies, "held-out"), (reader.seen_copies, "seen")):
        if share > MANY_COPIES:
            lines.append(f"{percent(share)} of the {which} images are copies of a training image.")
    lines += [f"Nothing can be said about {name}: {why}." for name, why in reader.cannot_tell.items()]
    return lines


def misreadings(verdict: Verdict) -> list[str]:
    """What each reader confuses most in real images, where it does so in more than a twentieth of them."""
    lines = []
    for name, table in _reader(verdict).confusion.items():
        if table.is_meta:  # numbers without their arrays
            return []
        wrong = table.clone()
        wrong.fill_diagonal_(0)
        for cell in wrong.flatten().argsort(descending=True)[:MAX_CONFUSED].tolist():
            true, read = divmod(cell, len(table))
            if wrong[true, read] > 0.05:
                share = percent(wrong[true, read].item())
                lines.append(
                    f"{name}: real {verdict.label(name, true)} is read as {verdict.label(name, read)} in {share}"
                )
    return lines


def _reader(verdict: Verdict) -> Calibration:
    if verdict.reader is None:
        raise ValueError("the verdict rests on true images, not on readers")
    return verdict.reader
