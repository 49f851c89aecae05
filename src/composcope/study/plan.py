"""Which runs a figure or a claim needs, at a preset: specs by key, one per seed."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypeVar

from composcope.errors import BadInput
from composcope.runs.spec import Spec
from composcope.runs.sweep import NoSuchEntry, with_settings

AUTHORS_SETTING = "authors' setting"
"""The label of runs at the setting that the claims are about; only such runs can contradict a claim."""

MAX_SEEDS = 1000


@dataclass(frozen=True)
class Preset:
    """One size of a study. Each experiment keeps its own sizes for it, beside its plan, under the preset's name.

    - `about`: one line for listings.
    - `label`: what its runs can show, for example "16x16" or `AUTHORS_SETTING`; `labels`: the same for single claims
      whose runs have a size of their own, by the claim's number.
    - `seeds`: used by every experiment instead of its own seeds; `first_seed`: where `with_seeds` starts counting.
    """

    name: str
    about: str
    label: str
    labels: Mapping[int, str] = field(default_factory=dict, hash=False)
    seeds: tuple[int, ...] | None = None
    first_seed: int = 0

    def label_of(self, claim: int) -> str:
        """What the runs of this claim can show."""
        return self.labels.get(claim, self.label)

    def seeds_or(self, own: tuple[int, ...]) -> tuple[int, ...]:
        """The seeds of an experiment that has seeds of its own."""
        return own if self.seeds is None else self.seeds

    def with_seeds(self, seeds: int | range) -> Self:
        """The same preset with this many seeds, or with these, in every experiment."""
        chosen = range(self.first_seed, self.first_seed + seeds) if isinstance(seeds, int) else seeds
        return replace(self, seeds=tuple(chosen))

    def seeds_text(self) -> str:
        """The seeds as `--seeds` takes them; empty if every experiment uses its own."""
        if not self.seeds:
            return ""
        first, last = self.seeds[0], self.seeds[-1]
        return str(len(self.seeds)) if first == self.first_seed else f"{first}-{last}"


def read_seeds(text: str) -> int | range:
    """How many seeds, or which, as typed after `--seeds`.

    >>> read_seeds("5"), read_seeds("15-19")
    (5, range(15, 20))
    """
    first, dash, last = text.partition("-")
    if not all(word.isascii() and word.isdigit() for word in ([first, last] if dash else [first])):
        raise BadInput(f"--seeds {text!r}: write how many seeds, as in 5, or the first and the last, as in 15-19")
    seeds = range(int(first), int(last) + 1) if dash else int(first)
    count = len(seeds) if isinstance(seeds, range) else seeds
    if not 1 <= count <= MAX_SEEDS:
        raise BadInput(f"--seeds {text!r}: that is {count} seeds; use 1 to {MAX_SEEDS}")
    return seeds


Sizes = TypeVar("Sizes")


def of_preset(sizes: Mapping[str, Sizes], preset: Preset) -> Sizes:
    """An experiment's sizes at a preset; if the preset brings seeds of its own, they take the place of all `...seeds`.

    - `sizes`: dataclasses by the preset's name.
    """
    own: Any = sizes[preset.name]
    if preset.seeds is None:
        return own
    return replace(own, **{each.name: preset.seeds for each in fields(own) if each.name.endswith("seeds")})


Key = Hashable
"""What the runs of a plan have in common: a word, or a frozen value with a `label` for readers."""

KeyOf = Callable[[Preset], Key] | Key
"""A key of the plan, or a function that gives it for a preset."""

Plan = Mapping[Key, tuple[Spec, ...]]
"""The runs that a figure or a claim needs, by key; one spec per seed."""

Planner = Callable[[Preset], Plan]
"""The plan at a preset."""


def key_at(key: KeyOf, preset: Preset) -> Key:
    """The key at a preset."""
    return key(preset) if callable(key) else key


def only(planner: Planner, *keys: KeyOf) -> Planner:
    """The plan with these keys alone, in this order."""

    def plan(preset: Preset) -> Plan:
        whole = planner(preset)
        return {key: whole[key] for key in (key_at(key, preset) for key in keys)}

    return plan


def together(*planners: Planner) -> Planner:
    """All of several plans; of a key that several have, the last counts."""
    return lambda preset: {key: specs for planner in planners for key, specs in planner(preset).items()}


def label_of(key: Key) -> str:
    """What a reader sees of a key.

    >>> label_of("bump")
    'bump'
    """
    return str(getattr(key, "label", key))


def specs_of(plan: Plan) -> dict[str, Spec]:
    """Every run of a plan, by id."""
    return {spec.run_id: spec for specs in plan.values() for spec in specs}


def varied(plan: Plan, settings: Sequence[str]) -> Plan:
    """The plan with `name=value` settings applied to every spec; specs that become the same run appear once.

    A setting of one penalty, `penalties.variance.weight=0.1`, changes the runs that have it.
    """
    if not settings:
        return plan
    return {
        key: tuple(specs_of({key: tuple(_changed(spec, settings) for spec in specs)}).values())
        for key, specs in plan.items()
    }


def _changed(spec: Spec, settings: Sequence[str]) -> Spec:
    data = spec.to_dict()
    for setting in settings:
        with suppress(NoSuchEntry):  # the run has no such penalty
            data = with_settings(data, [setting])
    return Spec.from_dict(data)
