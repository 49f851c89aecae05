"""Which decoders are trained on stripes: alone, with ever more bumps, and bumps alone for comparison."""

from dataclasses import dataclass, replace
from functools import cache

from composcope.papers.forced_rendering.base import base_spec
from composcope.papers.forced_rendering.base import sizes_of as base_sizes_of
from composcope.runs.spec import Spec
from composcope.sampling import Stripes
from composcope.study.plan import Plan
from composcope.study.preset import Preset
from composcope.training import Training


@dataclass(frozen=True)
class Sizes:
    """What differs from the base run.

    - `bumps`: how many bumps are added to the stripes, ascending; the last is compared with as many bumps alone.
    - `training`: the paper does not say how long; the paper preset has as many steps as the base run.
    """

    bumps: tuple[int, ...]
    training: Training


SIZES = {
    "quick": Sizes((0, 10, 50, 100), Training(steps=1500, batch=16)),
    "paper": Sizes((0, 10, 50, 100), Training(steps=3150)),
    "tiny": Sizes((0, 10, 20), Training(steps=5, batch=8)),
}


def sizes_of(preset: Preset) -> Sizes:
    """The sizes of a preset; seeds are those of the base run."""
    return SIZES[preset.name]


@dataclass(frozen=True)
class Amount:
    """What a decoder is trained on: all stripes or none, and so many bumps.

    >>> Amount(stripes=True, bumps=50).label, Amount(stripes=False, bumps=100).label
    ('stripes + 50', '100 bumps')
    """

    stripes: bool
    bumps: int

    @property
    def label(self) -> str:
        return f"stripes + {self.bumps}" if self.stripes else f"{self.bumps} bumps"


def stripes_alone(preset: Preset) -> Amount:
    """All stripes and the fewest bumps: none."""
    return Amount(stripes=True, bumps=sizes_of(preset).bumps[0])


def few_bumps(preset: Preset) -> Amount:
    """All stripes and a few bumps."""
    return Amount(stripes=True, bumps=sizes_of(preset).bumps[-2])


def most_bumps(preset: Preset) -> Amount:
    """All stripes and the most bumps."""
    return Amount(stripes=True, bumps=sizes_of(preset).bumps[-1])


def bumps_alone(preset: Preset) -> Amount:
    """The most bumps without stripes."""
    return Amount(stripes=False, bumps=sizes_of(preset).bumps[-1])


@cache
def stripes_spec(preset: Preset, amount: Amount, seed: int) -> Spec:
    """The base run with the bump code, trained on this amount of stripes and bumps instead.

    The paper does not say how a stripe is coded; the absent factor's part of the code is zeros.
    """
    return replace(
        base_spec(preset, "bump", seed),
        sampling=Stripes(stripes=None if amount.stripes else 0, bumps=amount.bumps),
        training=sizes_of(preset).training,
    )


def _plan(preset: Preset, *amounts: Amount) -> Plan:
    seeds = base_sizes_of(preset).seeds
    return {amount: tuple(stripes_spec(preset, amount, seed) for seed in seeds) for amount in amounts}


def increasing_bumps(preset: Preset) -> Plan:
    """All stripes and ever more bumps."""
    return _plan(preset, *(Amount(stripes=True, bumps=bumps) for bumps in sizes_of(preset).bumps))


def all_amounts(preset: Preset) -> Plan:
    """All stripes and ever more bumps, and the most bumps without stripes."""
    return {**increasing_bumps(preset), **_plan(preset, bumps_alone(preset))}


def only_stripes(preset: Preset) -> Plan:
    """All stripes and no bumps."""
    return _plan(preset, stripes_alone(preset))


def with_few(preset: Preset) -> Plan:
    """All stripes and a few bumps."""
    return _plan(preset, few_bumps(preset))


def with_most(preset: Preset) -> Plan:
    """All stripes and the most bumps."""
    return _plan(preset, most_bumps(preset))


ALL_BUMPS = "all bumps"
"""The key of the base runs, those of figure 2, trained on all seen bumps or draws of them."""


def with_and_without(preset: Preset) -> Plan:
    """The most bumps with stripes, as many alone, and the base runs, which the paper compares with."""
    seeds = base_sizes_of(preset).seeds
    base: Plan = {ALL_BUMPS: tuple(base_spec(preset, "bump", seed) for seed in seeds)}
    return {**_plan(preset, most_bumps(preset), bumps_alone(preset)), **base}


def few_and_without(preset: Preset) -> Plan:
    """All stripes and a few bumps, and the most bumps without stripes."""
    return _plan(preset, few_bumps(preset), bumps_alone(preset))
