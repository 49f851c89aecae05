"""The study: all experiments put together, and what its report says first."""

from collections.abc import Mapping
from typing import Any

from composcope.papers.forced_rendering import (
    codes,
    controls,
    cures,
    depths,
    lowrank,
    reentanglement,
    rotation,
    scaling,
    similarity,
    stripes,
)
from composcope.papers.forced_rendering.base import PRESETS
from composcope.study.panel import Panel
from composcope.study.study import Headline, RunClass, Study

EXPERIMENTS = (codes, similarity, depths, lowrank, stripes, scaling, rotation, controls, cures, reentanglement)


def _order(panel: Panel) -> tuple[bool, int, str]:
    """1a, 1b, ..., 15, then those with names of our own."""
    number = panel.name.rstrip("abcdefghijklmnopqrstuvwxyz")
    return (not number, int(number or 0), panel.name)


def _field(spec: Mapping[str, Any], part: str, name: str) -> Any:
    """A field of a spec's part; None where stored data has another form."""
    inner = spec.get(part)
    return inner.get(name) if isinstance(inner, Mapping) else None


def _lowrank(spec: Mapping[str, Any]) -> bool:
    return bool(_field(spec, "decoder", "kind") == "lowrank")


def _pixelwise(spec: Mapping[str, Any]) -> bool:
    return bool(_field(spec, "decoder", "kind") == "pixelwise") and not _stripes(spec)


def _stripes(spec: Mapping[str, Any]) -> bool:
    """Trained on stripes, by a decoder that has no cure of its own."""
    on_stripes = _field(spec, "sampling", "kind") == "stripes" and _field(spec, "sampling", "stripes") != 0
    return on_stripes and not _lowrank(spec)


def _bumps(spec: Mapping[str, Any]) -> bool:
    return bool(_field(spec, "sampling", "bumps") or _field(spec, "sampling", "fraction"))


def _plain(spec: Mapping[str, Any]) -> bool:
    """A decoder without any cure. Components that this study does not know are not counted as such."""
    plain_decoder = _field(spec, "decoder", "kind") in ("cnn", "mlp", "transformer", "autoencoder")
    plain_sampling = _field(spec, "sampling", "kind") in ("draws", "everything", "stripes")
    return plain_decoder and plain_sampling and not _stripes(spec) and not spec.get("penalties")


HEADLINE = Headline(
    question="Does a decoder that is given the factors compose them?",
    lead="A decoder gets the factors of an image separately, for example x and y. Some combinations are held out from "
    "training, although every value of every factor is seen. Does the decoder draw the held-out images?",
    classes=(
        RunClass("trained on seen combinations only", _plain, "untreated"),
        RunClass(
            "low-rank embeddings without penalties", lambda s: _lowrank(s) and not s.get("penalties"), "untreated"
        ),
        RunClass("stripes, one factor at a time", lambda s: _stripes(s) and not _bumps(s)),
        RunClass("stripes and some seen combinations", lambda s: _stripes(s) and _bumps(s), "treated"),
        RunClass("low-rank embeddings with penalties", lambda s: _lowrank(s) and bool(s.get("penalties")), "treated"),
        RunClass("a network that works pixel by pixel", _pixelwise, "treated"),
    ),
    untreated="decoders trained on seen combinations alone",
    treated="with penalties, pixel by pixel, or with stripes and some seen combinations",
)

STUDY = Study(
    name="forced-rendering",
    title="Compositional Generalization via Forced Rendering of Disentangled Latents (ICML 2025)",
    presets=PRESETS,
    panels=tuple(sorted((panel for experiment in EXPERIMENTS for panel in experiment.PANELS), key=_order)),
    claims=tuple(
        sorted((claim for experiment in EXPERIMENTS for claim in experiment.CLAIMS), key=lambda claim: claim.number)
    ),
    headline=HEADLINE,
)
