"""The result of a diagnosis, as a value."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composcope.diagnosis.errors import Errors
from composcope.diagnosis.kernels import KernelReport
from composcope.diagnosis.layers import LayerDiagnosis
from composcope.diagnosis.samples import Samples
from composcope.diagnosis.superposition import SuperpositionReport
from composcope.measures.complexity import Complexity
from composcope.verdict import Verdict

if TYPE_CHECKING:
    from composcope.diagnosis.drawing import Axes


@dataclass(frozen=True)
class Diagnosis:
    """What a decoder does on held-out combinations, and what in it may be the reason.

    - `verdict`: None where nothing is held out; `certificate`: what the split proves about itself.
    - `layers`: by name, from "code" to "image"; `untrained`: the same of an untrained twin, if one was given.
    - `notes`: what could not be measured or was measured another way, and why.
    - `samples`: some held-out images beside the truth.
    - `more`: quantities that have no field of their own, by key (see `diagnosis/quantities.py`).
    """

    factors: tuple[str, ...]
    sizes: tuple[int, ...]
    points: int
    heldout: int
    certificate: str
    verdict: Verdict | None
    error: Errors
    superposition: SuperpositionReport | None
    kernels: KernelReport
    complexity: dict[str, Complexity] | None
    layers: dict[str, LayerDiagnosis]
    untrained: dict[str, LayerDiagnosis] | None = None
    notes: dict[str, str] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    samples: Samples | None = None

    def __repr__(self) -> str:
        verdict = self.verdict.kind if self.verdict else "no verdict"
        return f"Diagnosis({verdict!r}, {self.heldout} of {self.points} combinations held out; see summary())"

    def summary(self) -> str:
        """The verdict and the reasons as text for a terminal."""
        from composcope.diagnosis.summary import summary

        return summary(self)

    def write_page(self, path: str | os.PathLike[str], title: str = "Does it compose?") -> Path:
        """Write a self-contained HTML page of the diagnosis, to be opened in a browser; returns where it is."""
        from composcope import write_diagnosis_page  # the public name: pages are made of diagnoses, not the reverse

        return write_diagnosis_page(self, Path(path), title)

    def numbers(self) -> dict[str, Any]:
        """Every single number, by measure: plain data, ready for JSON."""
        from composcope.diagnosis.tables import numbers

        return numbers(self)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """What the held-out and the seen images are, class by class; returns the matplotlib axes."""
        from composcope.diagnosis.drawing import draw_shares

        return draw_shares(self, ax)

    def _repr_html_(self) -> str:
        from composcope.diagnosis.display import diagnosis_html

        return diagnosis_html(self)
