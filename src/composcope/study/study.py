"""A study as a value, and the studies that are known here: built in, installed, or registered by a plugin."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Literal

from composcope.components import nearest
from composcope.errors import BadInput
from composcope.study.claim import Claim
from composcope.study.panel import Panel
from composcope.study.plan import Preset

ENTRY_POINTS = "composcope.studies"
DEFAULT = "forced-rendering"


@dataclass(frozen=True)
class RunClass:
    """A class of runs that the report's headline counts.

    - `label`: what the runs have in common, in words. `contains`: whether a run belongs to it, from its spec as plain
      data. `side`: the side of the comparison it is counted on, or "neither".
    """

    label: str
    contains: Callable[[Mapping[str, Any]], bool]
    side: Literal["untreated", "treated", "neither"] = "neither"


@dataclass(frozen=True)
class Headline:
    """What the report says first: the question, and how many decoders of each side compose.

    - `classes`: a run belongs to the first class that contains it; a run in none is not counted.
    - `untreated`, `treated`: the two sides in words, as in "decoders trained on seen combinations alone".
    """

    question: str
    lead: str
    classes: tuple[RunClass, ...]
    untreated: str = "untreated decoders"
    treated: str = "treated decoders"

    def class_of(self, spec: Mapping[str, Any]) -> RunClass | None:
        """The class of a run, from its spec as plain data."""
        return next((run_class for run_class in self.classes if _contains(run_class, spec)), None)


def _contains(run_class: RunClass, spec: Mapping[str, Any]) -> bool:
    try:
        return run_class.contains(spec)
    except (LookupError, TypeError, AttributeError):  # a store may hold runs that the study knows nothing about
        return False


@dataclass(frozen=True)
class Study:
    """Everything about a study: its presets, figures and claims, and what its report says first.

    - `name`: for the command line; `title`: for readers. The first preset is the default.
    """

    name: str
    title: str
    presets: tuple[Preset, ...]
    panels: tuple[Panel, ...]
    claims: tuple[Claim, ...]
    headline: Headline

    @property
    def registration(self) -> dict[str, str]:
        """What is claimed, as a hash per claim; recorded with every run that is trained for the study."""
        return {str(claim.number): claim.registration for claim in self.claims}

    def preset(self, name: str | None = None) -> Preset:
        """The preset of this name, by default the first."""
        presets = {preset.name: preset for preset in self.presets}
        if name is None:
            return self.presets[0]
        if name not in presets:
            available = ", ".join(presets)
            raise BadInput(
                f"study {self.name!r} has no preset {name!r}{nearest(name, presets)}; available: {available}"
            )
        return presets[name]

    def select(self, names: Sequence[str]) -> list[Panel]:
        """The named figures, "3" for all of 3a to 3d; every figure if none is named."""
        known = {panel.name: panel for panel in self.panels}
        chosen: set[str] = set()
        for name in names:
            matches = {n for n in known if n == name or (name.isdecimal() and n.rstrip("abcdefgh") == name)}
            if not matches:
                raise BadInput(f"there is no figure {name!r}{nearest(name, known)}; available: {', '.join(known)}")
            chosen |= matches
        return [panel for panel in self.panels if panel.name in chosen or not names]

    def check_style(self, style: str) -> None:
        """Refuse a style that no figure has."""
        known = sorted({name for panel in self.panels for name in panel.styles})
        if style not in known:
            raise BadInput(
                f"--style {style!r}: the figures of {self.name} have {', '.join(known) or 'no other styles'}"
            )

    def select_claims(self, numbers: Sequence[int]) -> list[Claim]:
        """The claims of these numbers, in the study's order."""
        known = {claim.number for claim in self.claims}
        for number in numbers:
            if number not in known:
                available = ", ".join(str(claim.number) for claim in self.claims) or "none"
                raise BadInput(f"there is no claim {number}; available: {available}")
        return [claim for claim in self.claims if claim.number in numbers]


_registered: dict[str, Study] = {}


def register_study(study: Study) -> Study:
    """Make a study known by its name, so that `composcope reproduce --study NAME` finds it; a plugin calls this."""
    _registered[study.name] = study
    return study


def studies() -> dict[str, Study]:
    """Every known study by name. Packages bring theirs under the entry-point group "composcope.studies"."""
    installed = [entry.load() for entry in entry_points(group=ENTRY_POINTS)]
    known = {**{study.name: study for study in installed}, **_registered}
    return dict(sorted(known.items(), key=lambda item: item[0] != DEFAULT))  # the default first


def find_study(study: "str | Study | None" = None) -> Study:
    """The study of this name; a study itself is returned as it is."""
    if isinstance(study, Study):
        return study
    known = studies()
    name = DEFAULT if study is None else study
    if name not in known:
        raise BadInput(
            f"there is no study {name!r}{nearest(name, known)}; available: {', '.join(known) or 'none'}"
            " (a study of your own joins with --plugin FILE)"
        )
    return known[name]
