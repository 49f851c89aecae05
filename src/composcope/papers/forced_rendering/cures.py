"""The overview "cures": what composes where bumps alone do not, by stripes in the data or factors in pixel space.

All of its runs are those of other figures. No claim rests on it.
"""

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from composcope.decoders.tokens import Pixelwise
from composcope.factors import Latents
from composcope.papers.forced_rendering.depths.figures import others
from composcope.papers.forced_rendering.lowrank.figures import none_and_both
from composcope.papers.forced_rendering.stripes.figures import all_amounts, bumps_alone, most_bumps, stripes_alone
from composcope.runs.run import Run
from composcope.runs.spec import Spec
from composcope.study.claim import Claim
from composcope.study.drawing import MARK, figure, show_image
from composcope.study.evidence import Evidence
from composcope.study.numbers import Numbers, Row, Rows
from composcope.study.panel import Panel
from composcope.study.plan import Plan, Preset, label_of
from composcope.tasks.base import Images

SHOWN = 6  # held-out combinations of each block
SPACE = 0.25  # between blocks, in rows
LABEL, NOTE, CELL = 1.45, 0.85, 0.62  # inches: names on the left, accuracies on the right, one image


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


def draw_cures(numbers: Numbers) -> Figure:
    """Each block of rows: the truth, then one row per kind of run; a plus marks the true position of the bump."""
    blocks = numbers.common["blocks"]
    columns = max(len(block["points"]) for block in blocks)
    rows = [1 + len(block["images"]) for block in blocks]
    heights = [height for count in rows for height in [*[1.0] * count, SPACE]][:-1]
    page = figure(CELL * columns + LABEL + NOTE, 1.04 * CELL * sum(heights) + 0.25)
    grid = page.add_gridspec(len(heights), columns, height_ratios=heights)
    row = 0
    for block in blocks:
        for label, images, note in _lines(numbers, block):
            panels = [page.add_subplot(grid[row, column]) for column in range(len(images))]
            _draw_images(panels, images, None if label == "truth" else block["points"])
            panels[0].set_ylabel(label, rotation=0, ha="right", va="center")
            panels[-1].annotate(note, (1.1, 0.5), xycoords="axes fraction", va="center")
            row += 1
        row += 1  # the space between blocks
    return page


def _lines(numbers: Numbers, block: Row) -> list[tuple[str, Images, str]]:
    """What each row of a block shows: its label, its images, and the mean accuracy over seeds."""
    lines = [("truth", block["truth"], "within\n1 pixel")]
    for kind, images in block["images"].items():
        accuracies = numbers.column("accuracy", kind)
        lines.append((kind, images, f"{sum(accuracies) / len(accuracies):.0%}"))
    return lines


def _draw_images(panels: list[Axes], images: Images, positions: Latents | None) -> None:
    """A row of images on one grey scale, with a plus at the positions if there are any."""
    low, high = grey_range(images)
    for axes, image in zip(panels, images, strict=True):
        show_image(axes, image, low, high)
    if positions is not None:
        for axes, (x, y) in zip(panels, positions[:, :2].tolist(), strict=True):
            axes.plot(x, y, "+", color=MARK, markersize=5, markeredgewidth=0.8)


def grey_range(images: Images) -> tuple[float, float]:
    """Black and white: 0 and 1, or beyond if 2 % of the pixels are, so that a bright background hides nothing."""
    low, high = torch.quantile(images.flatten(), torch.tensor([0.02, 0.98])).tolist()
    return min(0.0, low), max(1.0, high)


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
