"""The overview "cures": what composes where bumps alone do not, by stripes in the data or factors in pixel space.

All of its runs are those of other figures. No claim rests on it.
"""

import torch

from composcope.decoders.tokens import Pixelwise
from composcope.papers.forced_rendering.depths.figures import others
from composcope.papers.forced_rendering.drawing_cures import draw_cures
from composcope.papers.forced_rendering.lowrank.figures import none_and_both
from composcope.papers.forced_rendering.stripes.figures import all_amounts, bumps_alone, most_bumps, stripes_alone
from composcope.runs.run import Run
from composcope.runs.spec import Spec
from composcope.study.claim import Claim
from composcope.study.evidence import Evidence
from composcope.study.numbers import Numbers, Row, Rows
from composcope.study.panel import Panel
from composcope.study.plan import Plan, Preset, label_of

SHOWN = 6  # held-out combinations of each block


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


def cures(evidence: Evidence) -> Numbers:
    """The errors of every run; of the first seed, block by block, some held-out images below the truth."""

    def numbers(run: Run) -> Row:
        names = ("seen_mse", "heldout_mse", "blank_mse", "accuracy")
        return {name: run.error[name] for name in names}

    return evidence.numbers("run", numbers, common={"blocks": [_block(evidence, p) for p in blocks(evidence.preset)]})


def _block(evidence: Evidence, plan: Plan) -> Row:
    """Images of kinds of run that share task and holdout, at combinations chosen at random, always the same."""
    first = evidence.first(next(iter(plan)))
    heldout = first.split.mask.nonzero()[:, 0]
    order = torch.randperm(len(heldout), generator=torch.Generator().manual_seed(1))[:SHOWN]
    points = heldout[order.sort().values]
    return {
        "points": first.split.latents[points],
        "truth": first.truth[points],
        "images": {label_of(key): evidence.first(key).draw()[points] for key in plan},
    }


def cure_table(numbers: Numbers) -> Rows:
    """One row per kind of run: means over seeds of the errors, and the range of the accuracy."""
    rows: Rows = []
    for kind in numbers.kinds:
        runs = numbers.of(kind)
        mean = {name: sum(run[name] for run in runs) / len(runs) for name in runs[0] if name not in ("run", "seed")}
        accuracies = numbers.column("accuracy", kind)
        rows.append(
            {
                "run": kind,
                "seeds": len(runs),
                "seen MSE": mean["seen_mse"],
                "held-out MSE": mean["heldout_mse"],
                "blank MSE": mean["blank_mse"],
                "within 1 pixel": mean["accuracy"],
                "worst seed": min(accuracies),
                "best seed": max(accuracies),
            }
        )
    return rows


PANELS = (
    Panel(
        name="cures",
        title="The failure and its cures",
        see=(
            "Held-out images below the truth; a plus marks the true position of the bump. On the right, the share of"
            " all held-out bumps within 1 pixel of the true position, the mean over seeds. Each row has its own grey"
            " scale."
        ),
        plan=every_block,
        numbers=cures,
        table=cure_table,
        draw=draw_cures,
        no_claim="An overview of our own; the claims rest on figures 3 and 4, which show the same runs.",
        first_seed="images",
    ),
)

CLAIMS: tuple[Claim, ...] = ()
