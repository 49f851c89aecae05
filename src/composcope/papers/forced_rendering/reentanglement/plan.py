"""Which runs: every kind of decoder that fails or composes, at the sizes of the figures that they belong to."""

from composcope.papers.forced_rendering.codes.plan import all_codes
from composcope.papers.forced_rendering.controls.plan import all_controls
from composcope.papers.forced_rendering.lowrank.plan import ablation
from composcope.papers.forced_rendering.stripes.plan import all_amounts, bumps_alone, most_bumps
from composcope.study.plan import Plan
from composcope.study.preset import Preset


def conditions(preset: Preset) -> Plan:
    """Codes, amounts of stripes and bumps, the corner, no hole, and low-rank embeddings."""
    controls = all_controls(preset)
    return {
        **all_codes(preset),
        **all_amounts(preset),
        **{key: controls[key] for key in ("corner", "no hole")},
        **ablation(preset),
    }


def cured_and_not(preset: Preset) -> Plan:
    """Each cure and its untreated control: no hole, both penalties, stripes."""
    every = conditions(preset)
    keys = ("bump", "no hole", "none", "both", bumps_alone(preset), most_bumps(preset))
    return {key: every[key] for key in keys}
