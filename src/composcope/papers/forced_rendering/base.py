"""Presets, the run that most experiments of the paper vary (dark bumps, a square hole, a CNN), and its errors."""

from dataclasses import dataclass, replace
from functools import cache

import torch
from jaxtyping import Bool
from torch import Tensor

from composcope.decoders.base import Decoder
from composcope.decoders.cnn import CNN
from composcope.encodings import Bump, Encoding, OneHot, Positional, Rate
from composcope.factors import Latents
from composcope.holdouts import Corner, Holdout, Square
from composcope.measures.grid import on_grid
from composcope.runs.run import Run
from composcope.runs.spec import Spec
from composcope.sampling import Draws, Everything, Sampling
from composcope.study.plan import AUTHORS_SETTING, Plan, Preset, of_preset, only
from composcope.tasks.bump import BumpTask
from composcope.training import Training

# A claim that was restated after results had been seen is judged by seeds that were not among them: those below 10 were
# used while claims were written first, 10 to 15 of the quick preset when some were restated.
QUICK_SEEDS = tuple(range(20, 25))
# So were 0 to 19 at the authors' size.
PAPER_SEEDS = tuple(range(20, 26))

QUICK = Preset(
    "quick",
    "every figure and claim at reduced size, 16x16 mostly",
    label="16x16",
    labels={12: "N = 10 to 20", 16: "222 angles", 17: "222 angles"},
    first_seed=QUICK_SEEDS[0],
)
PAPER = Preset(
    "paper",
    "the authors' sizes and lengths: many hours on two cores, resumable",
    label=AUTHORS_SETTING,
    # Where no code is published, the settings follow the text, which leaves the training length, the coding of
    # stripes, the size of the corner and how probes are scored open.
    labels={
        **dict.fromkeys((4, 10, 11, 13, 14, 19, 22, 23, 25, 28, 32), "the text's setting"),
        12: "N = 10 to 50",
        24: "28x28, our control",
        29: "28x28, trained longer",
        33: "28x28, our question",
    },
    first_seed=PAPER_SEEDS[0],
)
TINY = Preset("tiny", "for tests: shows only that everything runs", label="8x8")

PRESETS = (QUICK, PAPER, TINY)

CODES: dict[str, Encoding] = {"bump": Bump(), "rate": Rate(), "one-hot": OneHot(), "positional": Positional()}


@dataclass(frozen=True)
class Sizes:
    """What the base run is trained at.

    - `training`: of most codes; `rate_training`: of rate codes, which learn slowly.
    - `seeds`: of runs on which a claim rests; `few_seeds`: of runs that only illustrate.
    """

    size: int
    hole: Square
    corner: Corner
    width: int
    depth: int
    sampling: Sampling
    training: Training
    rate_training: Training
    seeds: tuple[int, ...]
    few_seeds: tuple[int, ...]


QUICK_SIZES = Sizes(
    size=16,
    hole=Square(4, 11),
    corner=Corner(8),
    width=24,
    depth=3,
    sampling=Everything(),
    training=Training(steps=1500, batch=16),
    # Rate codes learn slowly. What is left of a blank image's error on seen images, seeds 0 to 2: at 4000 steps 0.10 to
    # 0.16, at 5000 0.07 to 0.11; at depth 2, 0.18 to 0.28 and, at 6000, 0.09 to 0.18. In the authors' rate networks it
    # is 0.13 to 0.17.
    rate_training=Training(steps=5000, batch=16),
    seeds=QUICK_SEEDS,
    few_seeds=QUICK_SEEDS[:1],
)
SIZES = {
    "quick": QUICK_SIZES,
    # The authors' depth experiment, in which both of their codes were trained alike.
    "paper": Sizes(
        size=28,
        hole=Square(6, 22),
        corner=Corner(11),
        width=64,
        depth=4,
        sampling=Draws(2000),
        training=Training(epochs=50),
        rate_training=Training(epochs=50),
        seeds=PAPER_SEEDS,
        few_seeds=PAPER_SEEDS[:1],
    ),
    "tiny": replace(
        QUICK_SIZES,
        size=8,
        hole=Square(2, 5),
        corner=Corner(4),
        width=4,
        depth=2,
        training=Training(steps=5, batch=8),
        rate_training=Training(steps=5, batch=8),
        seeds=(0, 1),
        few_seeds=(0,),
    ),
}


def cnn(depth: int, width: int) -> CNN:
    """The authors' CNN, whose last layer is initialised like the transposed convolution it is there."""
    return CNN(depth=depth, width=width, last_init="transposed")


@cache
def base_spec(
    preset: Preset, code: str, seed: int, holdout: Holdout | None = None, decoder: Decoder | None = None
) -> Spec:
    """The base run with this code, or a variant with another holdout or decoder."""
    sizes = of_preset(SIZES, preset)
    return Spec(
        task=BumpTask(sizes.size),
        holdout=sizes.hole if holdout is None else holdout,
        encoding=CODES[code],
        decoder=decoder or cnn(sizes.depth, sizes.width),
        sampling=sizes.sampling,
        training=sizes.rate_training if code == "rate" else sizes.training,
        seed=seed,
    )


def all_codes(preset: Preset) -> Plan:
    """The base run with each of the four codes."""
    seeds = of_preset(SIZES, preset).seeds
    return {code: tuple(base_spec(preset, code, seed) for seed in seeds) for code in CODES}


bump_alone = only(all_codes, "bump")
bump_and_rate = only(all_codes, "bump", "rate")  # the paper's two codes


def heldout_map(run: Run) -> Bool[Tensor, "x y"]:
    """What is held out, over the latent plane."""
    return on_grid(run.split.mask, run.spec.task.factors)


def spread_rows(latents: Latents, mask: Bool[Tensor, "n"], across: int = 3) -> list[int]:
    """Indices of `across` x `across` points of the mask, evenly spread; row by row, from the top left."""
    coordinates = []
    for values in latents[mask][:, :2].T:
        grid = values.unique()
        at = ((torch.arange(across) + 0.5) * len(grid) / across).long()
        coordinates.append(grid[at].tolist())
    wanted = [(x, y) for y in reversed(coordinates[1]) for x in coordinates[0]]
    index = {(x, y): row for row, (x, y) in enumerate(latents[:, :2].tolist()) if mask[row]}
    return [index[point] for point in wanted if point in index]


EQUAL = "0 is no difference"
SMALL = "a tenth of a blank image's error: nine tenths of the bump's energy are drawn"
LARGE = "half of a blank image's error; a decoder that composes has as small an error there as on seen images"
FEW = "fewer than half of the images within 1 pixel of the true position; a decoder that composes has all of them"


def seen_share(run: Run) -> float:
    """Seen MSE / blank MSE."""
    return run.error["seen_mse"] / run.error["blank_mse"]


def heldout_share(run: Run) -> float:
    """Held-out MSE / blank MSE."""
    return run.error["heldout_mse"] / run.error["blank_mse"]


def accuracy(run: Run) -> float:
    """Share of held-out images within 1 pixel of the true position."""
    return run.error["accuracy"]
