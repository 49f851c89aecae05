"""The page of a generator whose factors were read: the verdict, its images, and what the readers confuse."""

import base64
import io
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diagnosis import Diagnosis
from composcope.diagnosis.reader_text import COLUMNS, misreadings, reader_notes, reader_rows
from composcope.diagnosis.summary import confusions, headline, scope, score_text
from composcope.verdict import KINDS, Verdict

WORDS = {
    "composer": "what was asked for",
    "wrong combination": "another combination",
    "nearest seen": "a copy of a training image",
    "superposer": "a mixture of images",
    "blank": "nothing",
    "other": "unlike any real image",
}
"""What an image of each class shows, as readers have it."""


def reader_part(diagnosis: Diagnosis) -> dict[str, Any]:
    """What `reader.html` says."""
    verdict = diagnosis.verdict
    if verdict is None or verdict.reader is None:
        raise ValueError("the page of readers needs a verdict by readers")
    return {
        "headline": f"It {headline(verdict)}."
        if not verdict.kind.startswith("cannot")
        else f"One {headline(verdict)}.",
        "score": score_text(verdict),
        "scope": scope(diagnosis),
        "shares": reader_shares(verdict.shares),
        "seen_shares": reader_shares(verdict.seen_shares),
        "columns": COLUMNS,
        "rows": reader_rows(verdict),
        "lines": [*confusions(verdict), *misreadings(verdict)],
        "about": [*reader_notes(verdict), *(f"{name}: {why}" for name, why in diagnosis.notes.items())],
        "certificate": diagnosis.certificate,
        "samples": _samples(diagnosis.factors, verdict),
        "confusions": [_confusion(verdict, name) for name in verdict.reader.confusion],
    }


def reader_shares(shares: dict[str, float]) -> list[dict[str, Any]]:
    """The classes that occur, largest first, each with its index in the palette."""
    names = list(KINDS)
    occurring = sorted((name for name in WORDS if shares.get(name, 0) >= 0.005), key=lambda name: -shares[name])
    return [{"drawn": WORDS[name], "share": shares[name], "colour": names.index(name)} for name in occurring]


def _samples(factors: tuple[str, ...], verdict: Verdict) -> list[dict[str, Any]]:
    """Each combination that is shown: its name, and its images with the class of each."""
    reader = verdict.reader
    assert reader is not None
    if reader.drawn.is_meta:  # numbers without their arrays
        return []
    low, high = min(0.0, reader.drawn.min().item()), max(1.0, reader.drawn.max().item())
    if high - low > 1.5:  # pixels in some other range, -1..1 say
        low, high = reader.drawn.min().item(), reader.drawn.max().item()
    rows = []
    for latents, images, classes in zip(reader.latents.tolist(), reader.drawn, reader.classes, strict=True):
        place = ", ".join(
            f"{name} {_label(verdict, name, value)}" for name, value in zip(factors, latents, strict=True)
        )
        drawn = [
            {"address": picture((image - low) / (high - low)), "word": WORDS[kind]}
            for image, kind in zip(images, classes, strict=True)
        ]
        rows.append({"place": place, "images": drawn})
    return rows


def _label(verdict: Verdict, name: str, value: float) -> str:
    places = [index for index, other in enumerate(verdict.values[name]) if abs(other - value) < 1e-4]
    return verdict.label(name, places[0]) if places else f"{value:g}"


def _confusion(verdict: Verdict, name: str) -> dict[str, Any]:
    """A factor's reader on real images: a row per true value, in whole percent."""
    assert verdict.reader is not None
    table = verdict.reader.confusion[name]
    values = range(len(table))
    cells = [] if table.is_meta else (100 * table).round().long().tolist()
    return {"name": name, "values": [verdict.label(name, value) for value in values], "cells": cells}


def picture(image: Float[Tensor, "channels height width"]) -> str:
    """An image in 0..1 as the address of a PNG."""
    from PIL import Image

    pixels = (255 * image.clamp(0, 1)).round().to(torch.uint8).permute(1, 2, 0).numpy()
    content = io.BytesIO()
    Image.fromarray(pixels if pixels.shape[2] == 3 else np.ascontiguousarray(pixels[..., 0])).save(
        content, format="png"
    )
    return f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode('ascii')}"
