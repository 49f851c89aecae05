"""Which runs: the base run with each of the four codes."""

from composcope.papers.forced_rendering.base import CODES, base_spec, sizes_of
from composcope.study.plan import Plan
from composcope.study.preset import Preset


def all_codes(preset: Preset) -> Plan:
    """All four codes."""
    return {code: tuple(base_spec(preset, code, seed) for seed in sizes_of(preset).seeds) for code in CODES}


def bump_and_rate(preset: Preset) -> Plan:
    """The paper's two codes."""
    return _only(preset, "bump", "rate")


def bump_alone(preset: Preset) -> Plan:
    """The bump code alone."""
    return _only(preset, "bump")


def local_codes(preset: Preset) -> Plan:
    """The codes in which only a few units respond to a value."""
    return _only(preset, "bump", "one-hot")


def distributed_codes(preset: Preset) -> Plan:
    """The codes in which every unit changes with the value."""
    return _only(preset, "rate", "positional")


def no_runs(preset: Preset) -> Plan:
    """No runs at all."""
    return {}


def _only(preset: Preset, *codes: str) -> Plan:
    plan = all_codes(preset)
    return {code: plan[code] for code in codes}
