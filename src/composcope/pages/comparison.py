"""Several decoders on the same task and holdout: one table, one page."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from composcope import __version__
from composcope.diagnosis import Diagnosis
from composcope.diagnosis.summary import headline, scope
from composcope.display import percent
from composcope.errors import BadInput
from composcope.pages.diagnosis_page import shares
from composcope.pages.page import render, write_page
from composcope.pages.reader_page import reader_shares
from composcope.runs.run import Run


@dataclass(frozen=True)
class Comparison:
    """Diagnoses of several decoders by name, all of the same task and holdout."""

    diagnoses: dict[str, Diagnosis]

    def frame(self) -> pd.DataFrame:
        """One row per decoder: kind, score and its interval, the share of each factor, and the control on seen images.

        A factor about which nothing can be said, and the score of a decoder that has not learned, are missing values.
        """
        rows = {name: _row(diagnosis) for name, diagnosis in self.diagnoses.items()}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("decoder")

    def write_page(self, path: str | os.PathLike[str], title: str = "Which of these compose?") -> Path:
        """Write a self-contained HTML page of the comparison; returns where it is."""
        first = next(iter(self.diagnoses.values()))
        rows = [_line(name, diagnosis) for name, diagnosis in self.diagnoses.items()]
        text = render(
            "comparison.html",
            title=title,
            scope=scope(first),
            certificate=first.certificate[:1].upper() + first.certificate[1:],
            factors=first.factors,
            rows=rows,
            legend={one["colour"]: one["drawn"] for row in rows for one in row["shares"]},
            version=__version__,
        )
        return write_page(text, Path(path))

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {_kind(diagnosis)}" for name, diagnosis in self.diagnoses.items())

    def _repr_html_(self) -> str:
        html: str = self.frame().to_html(float_format="{:.2f}".format)
        return html


def compare(decoders: Mapping[str, Diagnosis | Run]) -> Comparison:
    """Diagnoses or runs side by side; refused if they differ in their task, in what is held out or in the evidence.

    >>> import composcope as cs
    >>> task, codes = cs.BumpTask(8), cs.Bump()
    >>> def diagnosis(width):
    ...     module = cs.MLP(depth=1, width=width).build(code_sizes=(8, 8), image_shape=(1, 8, 8))
    ...     return cs.diagnose(module, task=task, holdout=cs.Square(2, 5), encoding=codes, only="verdict")
    >>> compare({"narrow": diagnosis(4), "wide": diagnosis(16)}).frame()["kind"].tolist()
    ['has not learned', 'has not learned']
    """
    if not decoders:
        raise BadInput("compare: at least one diagnosis or run is needed")
    runs = {name: decoder for name, decoder in decoders.items() if isinstance(decoder, Run)}
    first_run = next(iter(runs), "")
    for name, run in runs.items():
        for part in ("task", "holdout"):
            if getattr(run.spec, part) != getattr(runs[first_run].spec, part):
                raise BadInput(f"compare: {name!r} has another {part} than {first_run!r}")
    diagnoses = {name: decoder.diagnosis if isinstance(decoder, Run) else decoder for name, decoder in decoders.items()}
    first = next(iter(diagnoses))
    for name, diagnosis in diagnoses.items():
        difference = _difference(diagnoses[first], diagnosis)
        if difference:
            raise BadInput(f"compare: {name!r} has {difference} than {first!r}")
    return Comparison(diagnoses)


def _difference(one: Diagnosis, other: Diagnosis) -> str:
    """What two diagnoses do not have in common, empty if they can be compared."""
    if (one.factors, one.sizes, one.points) != (other.factors, other.sizes, other.points):
        return "another task"
    if (one.verdict is None) != (other.verdict is None) or one.heldout != other.heldout:
        return "another holdout"
    if one.verdict is None or other.verdict is None:
        return ""
    if one.verdict.evidence != other.verdict.evidence:
        return "other evidence"
    if (one.verdict.values, one.verdict.names) != (other.verdict.values, other.verdict.names):
        return "another task"
    first, second = one.verdict.reader, other.verdict.reader
    if first is not None and second is not None:
        if first.examples != second.examples:
            return "another task"
        return "" if _same(first.heldout, second.heldout) else "another holdout"
    if one.samples is not None and other.samples is not None:
        if not _same(one.samples.heldout, other.samples.heldout):
            return "another holdout"
        return "" if _same(one.samples.truth, other.samples.truth) else "another task"
    return ""


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal, as far as one can tell of numbers without their arrays."""
    return one.is_meta or other.is_meta or (one.shape == other.shape and torch.equal(one, other))


def _kind(diagnosis: Diagnosis) -> str:
    return headline(diagnosis.verdict) if diagnosis.verdict else "no verdict"


def _row(diagnosis: Diagnosis) -> dict[str, Any]:
    verdict = diagnosis.verdict
    if verdict is None:
        return {"kind": None}
    low, high = verdict.interval or (None, None)
    seen = verdict.reader.seen_score if verdict.reader else verdict.seen_shares.get("composer")
    return {
        "kind": verdict.kind,
        "score": verdict.score,
        "low": low,
        "high": high,
        **{f"{name} is right": verdict.factors.get(name) for name in diagnosis.factors},
        "seen": seen,
    }


def _line(name: str, diagnosis: Diagnosis) -> dict[str, Any]:
    """A row of the page, as text and coloured shares."""
    verdict, row = diagnosis.verdict, _row(diagnosis)
    bar = [] if verdict is None else reader_shares(verdict.shares) if verdict.reader else shares(verdict.shares)

    def text(value: float | None) -> str:
        return "-" if value is None else percent(value)

    low, high = row.get("low"), row.get("high")
    return {
        "name": name,
        "kind": _kind(diagnosis),
        "shares": bar,
        "score": text(row.get("score")),
        "interval": "" if low is None or high is None else f"{percent(low)} to {percent(high)}",
        "factors": [text(row.get(f"{factor} is right")) for factor in diagnosis.factors],
        "seen": text(row.get("seen")),
    }
