"""The result of a diagnosis, as a value and as files."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composcope.diagnosis.errors import Errors
from composcope.diagnosis.layers import LayerDiagnosis
from composcope.diagnosis.points import Samples
from composcope.diagnosis.structure import KernelReport
from composcope.diagnosis.superposition import SuperpositionReport
from composcope.errors import BadInput
from composcope.files import make_folder, read_regular, sha256, write_atomically
from composcope.measures.complexity import Complexity
from composcope.plain import Arrays, from_plain, pack_arrays, to_plain, unpack_arrays
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
        from composcope.diagnosis.summary import diagnosis_html

        return diagnosis_html(self)


FORMAT = 3
# Bytes of `numbers.json`, far more than any diagnosis has: a larger file is a mistake or an attack, and is not read.
MAX_TEXT = 2**27
# Short curves stay in the text, so that the numbers can be read without the arrays.
INLINE = ("/error/by_distance/",)


def pack(diagnosis: Diagnosis) -> tuple[dict[str, Any], bytes]:
    """A tree of plain data and the contents of a .npz file; `unpack` puts them together again."""
    arrays: Arrays = {}
    tree: dict[str, Any] = to_plain(diagnosis, arrays, INLINE)
    return tree, pack_arrays(arrays)


def unpack(tree: Mapping[str, Any], content: bytes | None) -> Diagnosis:
    """The diagnosis that was packed; without the arrays it has its numbers but no maps. ValueError if unreadable."""
    try:
        diagnosis: Diagnosis = from_plain(Diagnosis, tree, {} if content is None else unpack_arrays(content))
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"not a diagnosis: {error}") from None
    return diagnosis


def save_diagnosis(diagnosis: Diagnosis, folder: str | os.PathLike[str]) -> None:
    """Write `numbers.json` and `arrays.npz` into the folder, which is created if necessary."""
    path = Path(folder)
    try:
        if path.is_symlink():
            raise BadInput(f"{str(folder)!r} is a link; name the folder that it leads to")
        make_folder(path, parents=True)
        tree, content = pack(diagnosis)
        body = {
            "format": FORMAT,
            "sha256": _checksum(tree),
            "arrays_sha256": sha256(content),
            "diagnosis": tree,
        }
        write_atomically(path / "arrays.npz", content)
        write_atomically(path / "numbers.json", (json.dumps(body, indent=1, allow_nan=False) + "\n").encode())
    except OSError as error:
        raise BadInput(f"{str(folder)!r} is not a folder that can be written to: {error.strerror}") from None


def _checksum(tree: Any) -> str:
    return sha256(json.dumps(tree, sort_keys=True).encode())


def load_diagnosis(folder: str | os.PathLike[str]) -> Diagnosis:
    """The diagnosis that `save_diagnosis` wrote."""
    path = Path(folder)
    try:
        body = json.loads(read_regular(path / "numbers.json", MAX_TEXT))
        content = read_regular(path / "arrays.npz")
    except FileNotFoundError as error:
        raise BadInput(f"{str(folder)!r} holds no diagnosis: {Path(str(error.filename)).name} is missing") from None
    except (ValueError, RecursionError):
        raise BadInput(f"{str(path / 'numbers.json')!r} is not the JSON that was written") from None
    except OSError as error:
        raise BadInput(f"{str(folder)!r} holds no diagnosis: {error.strerror}") from None
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise BadInput(f"{str(folder)!r} holds no diagnosis of the format that this version reads ({FORMAT})")
    if _checksum(body.get("diagnosis")) != body.get("sha256"):
        raise BadInput(f"{str(path / 'numbers.json')!r} is not what was written: its checksum does not match")
    if sha256(content) != body.get("arrays_sha256"):
        raise BadInput(f"{str(path / 'arrays.npz')!r} is not the file that numbers.json was written with")
    try:
        return unpack(body["diagnosis"], content)
    except (KeyError, ValueError) as error:
        raise BadInput(f"{str(folder)!r} holds a diagnosis that cannot be read: {error}") from None
