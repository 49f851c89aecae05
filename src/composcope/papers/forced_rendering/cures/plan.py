"""Which runs the overview shows: stripes in the data, or factors rendered in pixel space. All of other experiments."""

from composcope.decoders.tokens import Pixelwise
from composcope.papers.forced_rendering.depths.plan import others
from composcope.papers.forced_rendering.lowrank.plan import none_and_both
from composcope.papers.forced_rendering.stripes.plan import all_amounts, bumps_alone, most_bumps, stripes_alone
from composcope.runs.spec import Spec
from composcope.study.plan import Plan
from composcope.study.preset import Preset


def blocks(preset: Preset) -> tuple[Plan, ...]:
    """The runs by block; a block shares its task and holdout, and of several runs the first fail."""
    amounts, lowrank = all_amounts(preset), none_and_both(preset)
    fewest, most = stripes_alone(preset), most_bumps(preset)
    return (
        {
            f"{most.bumps} bumps alone": amounts[bumps_alone(preset)],
            f"stripes + {fewest.bumps} bumps" if fewest.bumps else "stripes alone": amounts[fewest],
            f"stripes + {most.bumps} bumps": amounts[most],
        },
        {"low rank, no penalty": lowrank["none"], "low rank, both penalties": lowrank["both"]},
        {"pixel by pixel": _pixelwise(preset)},
    )


def _pixelwise(preset: Preset) -> tuple[Spec, ...]:
    """The network that draws one pixel at a time, of figures 2 and 11 to 14."""
    return next(specs for specs in others(preset).values() if isinstance(specs[0].decoder, Pixelwise))


def every_block(preset: Preset) -> Plan:
    """The runs of all blocks."""
    return {name: specs for block in blocks(preset) for name, specs in block.items()}
