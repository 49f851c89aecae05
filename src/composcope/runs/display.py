"""A spec and a run in a notebook."""

from typing import TYPE_CHECKING, Any

from composcope.diagnosis.summary import headline, score_text
from composcope.display import block, images, line, table

if TYPE_CHECKING:
    from composcope.runs.run import Run
    from composcope.runs.spec import Spec

SHOWN = 6  # images in a row


def spec_html(spec: "Spec") -> str:
    """The parts of a spec, and what its split proves."""
    rows = [(name, repr(getattr(spec, name))) for name in spec.__dataclass_fields__ if getattr(spec, name) != ()]
    return block(line(f"Spec {spec.run_id}", strong=True), table(["", ""], rows), line(f"split: {spec.certificate}"))


def run_html(run: "Run") -> str:
    """Held-out images, the errors, the verdict if it was measured, and the spec."""
    parts = [line(f"Run {run.run_id}", strong=True)]
    if run.draws:
        rows = shown_rows(run)
        which = "held-out" if run.split.mask.any() else "seen"
        true, drawn = (each[rows].flip(-2).numpy() for each in (run.truth, run.draw()))  # row 0 is at the bottom
        parts += [images(f"{which}, true", true), images("drawn", drawn)]
    if run.store is not None and run.store.has_diagnosis(run.run_id):
        verdict = run.diagnosis.verdict
        parts.append(line(f"Verdict: {headline(verdict)}. {score_text(verdict)}") if verdict else "")
    parts.append(table(["error", ""], [(name, _number(value)) for name, value in run.error.items()]))
    return block(*parts, line(f"{len(run.split.heldout)} of {len(run.split.mask)} combinations held out"))


def shown_rows(run: "Run", count: int = SHOWN) -> list[int]:
    """Rows of the split, evenly spaced in grid order: of what is held out, or of everything if nothing is."""
    mask = run.split.mask
    rows = (mask if mask.any() else ~mask).nonzero()[:, 0].tolist()
    return list(dict.fromkeys(rows[(2 * part + 1) * len(rows) // (2 * count)] for part in range(count)))


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else "-"
