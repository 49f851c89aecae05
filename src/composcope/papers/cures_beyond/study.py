"""The study put together, and what its report says first."""

from collections.abc import Mapping
from typing import Any

from composcope.papers.cures_beyond import data_need, figures
from composcope.papers.cures_beyond.claims import CLAIMS
from composcope.study.plan import AUTHORS_SETTING, Preset
from composcope.study.study import Headline, RunClass, Study

QUICK = Preset("quick", "five worlds, fourteen treatments, five seeds", label=AUTHORS_SETTING, first_seed=10)
TINY = Preset("tiny", "for tests: shows only that everything runs", label="8x8")


def _kind(spec: Mapping[str, Any], part: str) -> Any:
    return spec[part]["kind"]


def _shows_some(spec: Mapping[str, Any]) -> bool:
    return spec["sampling"].get("bumps") is not None


def _shows_factors_alone(spec: Mapping[str, Any]) -> bool:
    return bool(_kind(spec, "sampling") == "stripes" and not _shows_some(spec))


def _untreated(spec: Mapping[str, Any]) -> bool:
    return bool(_kind(spec, "decoder") == "cnn" and _kind(spec, "sampling") == "everything" and not spec["penalties"])


STUDY = Study(
    name="cures-beyond",
    title="Which cures carry beyond a bump with two coordinates?",
    presets=(QUICK, TINY),
    panels=(*figures.PANELS, data_need.PANEL),
    claims=CLAIMS,
    headline=Headline(
        question="Which cures carry beyond a bump with two coordinates?",
        lead="Decoders get the factors of an image separately: position, brightness, shape, size, digit, angle. Some "
        "combinations are held out. Each treatment gets the same number of training steps.",
        classes=(
            RunClass("untreated", _untreated, "untreated"),
            RunClass("shown factors alone", _shows_factors_alone, "treated"),
            RunClass("another decoder or loss", lambda spec: not _shows_some(spec)),
            RunClass("trained on some of the combinations", _shows_some),
        ),
        untreated="convolutional decoders without treatment",
        treated="decoders that are shown factors alone",
    ),
)
