"""The classes of images, the thresholds between them, and which class each image belongs to."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from composcope.factors import Factor
from composcope.measures.error import LEARNED
from composcope.measures.grid import grid_steps
from composcope.verdict.references import nearest
from composcope.verdict.residuals import ToCombinations, World, pixels, to_additive, to_cross, to_superposition

KINDS = {
    "composer": "composes",
    "additive cross": "adds",
    "nearest seen": "repeats",
    "superposer": "superposes",
    "blank": "draws nothing",
    "other": "does something else",
    "wrong combination": "mixes up factors",
    "additive": "adds",
}
"""Every class of images, and what a decoder is said to do if its held-out images are mostly of this kind."""

NOT_LEARNED = "has not learned"
"""The kind of a decoder that fails on what it saw: nothing can be said about composition."""

# Below a tenth of the truth's energy there is nothing to classify: a fit to what is left would fit noise. An image that
# is faint but correct has more: half the amplitude is a quarter of the energy.
BLANK_ENERGY = 0.1
# An image of which even the best reference leaves more than half of the energy is more unlike it than like it. The
# known-answer decoders leave next to 0 and noise leaves nearly 1, so the exact value matters little.
MAX_RESIDUAL = 0.5
# Two combinations whose images differ by less than this share of the energy cannot be told apart: a circle has no
# orientation. The product of an image with thousands of others is in single precision, which is exact to about 1e-6.
TIE = 1e-4
# The additive prediction is fitted to the decoder's own outputs and thus has its small flaws too, which the true images
# lack; the superposer has many weights besides. They must be better than the others by these shares of the energy.
LEADS = {"additive": 0.003, "superposer": 0.01}
# A decoder has learned if at least half of its seen images show their own combination, give or take one step of an
# ordered factor, which is an error of the drawing rather than of the factor.
MIN_RECOGNISED = 0.5


# Images of another combination always have the same factor wrong, though others could have been, if it is so in 95 % of
# them and a quarter of them had the choice, or show a combination that is farther away than the nearest seen one.
ALWAYS, CHOICE = 0.95, 0.25


@dataclass(frozen=True)
class Placed:
    """Images among the references.

    - `classes`: of each image; `residuals`: the share of its energy that each reference leaves, NaN where there is
      none.
    - `shown`: the combination that an image shows, as positions on the grid; -1 if it shows none.
    - `resembled`: the same, but an image's own combination also where another reference than a combination is nearer
      still, if the true image leaves no more than a quarter of its energy.
    - `error`, `energy`: of each image, its squared distance from its own true image with the decoder's defect, and the
      energy of that.
    """

    classes: list[str]
    residuals: dict[str, Float[Tensor, "n"]]
    index: Int[Tensor, "n factors"]
    shown: Int[Tensor, "n factors"]
    resembled: Int[Tensor, "n factors"]
    error: Float[Tensor, "n"]
    energy: Float[Tensor, "n"]


def place(world: World, rows: Int[Tensor, "n"], comparison: ToCombinations) -> Placed:
    """Classify the images at these rows by the reference with the least residual; the first of equally good ones wins.

    - `comparison`: from `to_combinations`, of the same rows.

    The order is that of the residuals below; `LEADS` says by how much the fitted references must be better.
    """
    target, index = pixels(world, rows), world.index[rows]
    own = (world.candidates == rows[:, None]).int().argmax(1)
    best, other = _best_other(comparison.residuals, own, index, world.index[world.candidates])
    residuals = {"composer": comparison.residuals.gather(1, own[:, None])[:, 0].double()}
    residuals["nearest seen"], choice = _to_nearest(world, rows, comparison.residuals)
    residuals["wrong combination"] = other.double()
    cross = to_cross(world, rows, target)
    if cross is not None:
        residuals["additive cross"] = cross
    residuals["additive"] = to_additive(world, rows, target)
    residuals["superposer"] = to_superposition(world, rows, target)
    classes = _classes(residuals, target.square().sum(1, dtype=torch.float64), comparison.own_energy, world.floor)
    combination = _shown(classes, index, world.index[world.candidates[best]])
    if _one_factor(classes, index, combination, choice):
        classes = ["wrong combination" if name == "nearest seen" else name for name in classes]
    resembles = residuals["composer"] <= torch.minimum(residuals["wrong combination"] + TIE, torch.tensor(LEARNED))
    empty = torch.tensor([name == "blank" for name in classes], dtype=torch.bool)
    resembled = torch.where((resembles & ~empty)[:, None], index, combination)
    return Placed(classes, residuals, index, combination, resembled, comparison.own_error, comparison.own_energy)


def _best_other(
    residuals: Float[Tensor, "n m"],
    own: Int[Tensor, "n"],
    index: Int[Tensor, "n factors"],
    candidates: Int[Tensor, "m factors"],
) -> tuple[Int[Tensor, "n"], Float[Tensor, "n"]]:
    """The best of the other combinations and its residual; of indistinguishable ones that with most values right."""
    others = residuals.scatter(1, own[:, None], torch.inf)
    least = others.amin(1)
    shared = torch.zeros_like(others, dtype=torch.int16)
    for axis in range(index.shape[1]):
        shared += (index[:, axis, None] == candidates[None, :, axis]).short()
    shared[others > least[:, None] + TIE] = -1
    return shared.argmax(1), least


def _to_nearest(
    world: World, rows: Int[Tensor, "n"], residuals: Float[Tensor, "n m"]
) -> tuple[Float[Tensor, "n"], Bool[Tensor, "n"]]:
    """The least residual from the nearest seen points, and whether these differ from the point in different factors."""
    column = torch.full((len(world.seen),), -1)
    column[world.candidates] = torch.arange(len(world.candidates))
    seen = (world.seen & (column >= 0)).nonzero()[:, 0]
    least = torch.full((len(rows),), torch.nan, dtype=torch.float64)
    choice = torch.zeros(len(rows), dtype=torch.bool)
    for row, beside in nearest(world.index[rows], world.index[seen], world.factors):
        if len(beside):
            least[row] = residuals[row, column[seen[beside]]].min()
            differs = world.index[seen[beside]] != world.index[rows[row]]
            choice[row] = len(differs.unique(dim=0)) > 1
    return least, choice


def _classes(
    residuals: dict[str, Tensor], energy: Float[Tensor, "n"], own_energy: Float[Tensor, "n"], floor: float
) -> list[str]:
    """The class with the least residual; blank or other if too little is drawn or explained, apart from the floor."""
    names = list(residuals)
    table = torch.stack([residuals[name] + LEADS.get(name, 0.0) for name in names]).nan_to_num(torch.inf, torch.inf)
    best = (table <= table.amin(0) + TIE).int().argmax(0)
    least = torch.stack(list(residuals.values())).gather(0, best[None])[0].nan_to_num(torch.inf)
    blank = energy - floor < BLANK_ENERGY * own_energy
    far = least * energy - floor > MAX_RESIDUAL * (energy - floor)
    return [
        "blank" if empty else "other" if lost else names[winner]
        for empty, lost, winner in zip(blank.tolist(), far.tolist(), best.tolist(), strict=True)
    ]


def _shown(
    classes: Sequence[str], index: Int[Tensor, "n factors"], other: Int[Tensor, "n factors"]
) -> Int[Tensor, "n factors"]:
    """The image's own combination, another, or none."""
    composed = torch.tensor([name == "composer" for name in classes], dtype=torch.bool)[:, None]
    displaced = torch.tensor([name in ("nearest seen", "wrong combination") for name in classes])[:, None]
    return torch.where(composed, index, torch.where(displaced, other, -1))


def _one_factor(
    classes: Sequence[str],
    index: Int[Tensor, "n factors"],
    combination: Int[Tensor, "n factors"],
    choice: Bool[Tensor, "n"],
) -> bool:
    """Whether the images of another combination always have the same one factor wrong, though they had a choice.

    A decoder that repeats the nearest seen image changes now one factor, now another, as the hole has it; one that
    always changes the same factor has that factor wrong, even where the image happens to be a nearest seen one. Where
    every nearest seen image differs in that factor, those that are farther than it tell: nothing is repeated there.
    """
    displaced = torch.tensor([name in ("nearest seen", "wrong combination") for name in classes])
    farther = torch.tensor([name == "wrong combination" for name in classes])
    if not displaced.any() or (choice | farther)[displaced].double().mean() < CHOICE:
        return False
    wrong = (index != combination)[displaced]
    alone = wrong & (wrong.sum(1) == 1)[:, None]
    return bool(alone.double().mean(0).max() >= ALWAYS)


def recognised(images: Placed, factors: Sequence[Factor]) -> Float[Tensor, "n"]:
    """1 for images that resemble their own combination, give or take one step of each ordered factor; else 0.

    For seen images. Their neighbours on all sides were seen, too, and a bump that is a little too broad is a good
    superposition of them; it resembles its own combination all the same.
    """
    close = torch.ones(len(images.resembled), dtype=torch.bool)
    for axis, factor in enumerate(factors):
        close &= within_one_step(images.index[:, axis], images.resembled[:, axis], factor)
    return close.double()


def within_one_step(true: Int[Tensor, "n"], other: Int[Tensor, "n"], factor: Factor) -> Bool[Tensor, "n"]:
    """Whether the value shown is the true one or, for an ordered factor, next to it; no for a value of -1."""
    if factor.kind == "categorical":
        return true == other
    steps = grid_steps(torch.arange(factor.size)[:, None], torch.arange(factor.size)[:, None], [factor])
    return (other >= 0) & (steps[true, other] <= 1)
