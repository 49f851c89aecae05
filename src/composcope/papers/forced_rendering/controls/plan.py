"""Which runs: the bump code with the hole in the middle, in a corner and without one, and the reverse map."""

from composcope.decoders.image_encoder import ImageEncoder
from composcope.holdouts import Nothing
from composcope.papers.forced_rendering.base import base_spec, sizes_of
from composcope.papers.forced_rendering.codes.plan import bump_alone
from composcope.study.plan import Plan
from composcope.study.preset import Preset


def all_controls(preset: Preset) -> Plan:
    """Three holdouts, and the map from images to codes."""
    sizes = sizes_of(preset)
    encoder = ImageEncoder(width=sizes.width)
    return {
        "square": bump_alone(preset)["bump"],
        "corner": tuple(base_spec(preset, "bump", seed, sizes.corner) for seed in sizes.seeds),
        "no hole": tuple(base_spec(preset, "bump", seed, Nothing()) for seed in sizes.seeds),
        "image encoder": tuple(base_spec(preset, "bump", seed, decoder=encoder) for seed in sizes.few),
    }


def with_and_without_hole(preset: Preset) -> Plan:
    """The hole in the middle, and no hole."""
    plan = all_controls(preset)
    return {key: plan[key] for key in ("square", "no hole")}


def square_and_corner(preset: Preset) -> Plan:
    """The hole in the middle and in a corner."""
    plan = all_controls(preset)
    return {key: plan[key] for key in ("square", "corner")}
