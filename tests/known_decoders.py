"""Tasks of every form, and decoders whose behaviour on held-out combinations is known by construction.

A decoder here is its images over the task's grid: what it draws where it has seen, and what it draws in the hole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad

import composcope as cs
from composcope.diagnosis.points import grid_split
from composcope.diagnosis.superposition import additive_cross
from composcope.factors import latent_grid
from composcope.measures.grid import grid_index
from composcope.verdict import Verdict, classify
from composcope.verdict.references import fit_additive, nearest, neighbours

HUES = torch.tensor([[1.0, 0.1, 0.1], [0.1, 0.9, 0.2], [0.2, 0.3, 1.0], [0.9, 0.8, 0.1]])


def oracle_images(
    truth: Tensor, latents: Tensor, heldout: Tensor, factors: Sequence[cs.Factor], cross: Tensor | None = None
) -> dict[str, Tensor]:
    """What each known-answer decoder draws: the truth on seen points and, on held-out points,

    - *composer*: the truth; *blank*: nothing; *additive cross*: the sum of the stripes, if given;
    - *additive*: the main effects of the factors, fitted on seen points; NaN where a value is not seen;
    - *nearest seen*: the first of the seen images at the least distance in grid steps;
    - *superposer*: for each factor the mean of the seen images that differ from the point in that factor alone, summed.
    """
    index = grid_index(latents, factors)
    held, seen = heldout.nonzero()[:, 0], truth[~heldout]
    images = {"composer": truth.clone()}
    for name in ("nearest seen", "superposer", "blank"):
        images[name] = truth.masked_fill(heldout[:, None, None, None], 0.0)
    model = fit_additive(truth, index, ~heldout, factors)
    added = model.predicted(index).reshape(truth.shape)
    images["additive"] = torch.where(heldout[:, None, None, None], added, truth)
    if cross is not None:
        images["additive cross"] = torch.where(heldout[:, None, None, None], cross, truth)
    for row, closest in nearest(index[heldout], index[~heldout], factors):
        if len(closest):
            images["nearest seen"][held[row]] = seen[closest[0]]
    for row, beside in neighbours(index[heldout], index[~heldout]):
        for members in beside:
            if len(members):
                images["superposer"][held[row]] += seen[members].mean(0)
    return images


def mask(shape: int, x: float, y: float, radius: float, side: int) -> Tensor:
    """A square, a disc, a triangle or a bar, drawn with soft edges."""
    v, u = torch.meshgrid(torch.arange(side) - y, torch.arange(side) - x, indexing="ij")
    distance = {
        0: torch.maximum(u.abs(), v.abs()),
        1: (u.square() + v.square()).sqrt(),
        2: torch.maximum(u.abs() * 1.6 + v * 0.8, -v),
        3: torch.maximum(u.abs() * 0.6, v.abs() * 2.5),
    }[shape]
    return (radius + 0.5 - distance).clamp(0, 1)


def table(factors: list[cs.Factor], draw: Callable[..., Tensor], **more: object) -> cs.TableTask:
    """A table of the images that `draw` makes of factor values, given by name."""
    grid = latent_grid(factors)
    names = [factor.name for factor in factors]
    images = [draw(**dict(zip(names, row, strict=True))) for row in grid.tolist()]
    return cs.TableTask(grid, torch.stack(images), factors, **more)


def sprites(side: int = 16, places: int = 5, shapes: int = 3) -> cs.TableTask:
    """Three factors: shape, x and y; grey."""
    spots = torch.linspace(3.5, side - 4.5, places).tolist()
    return table(
        [
            cs.Factor("shape", range(shapes), "categorical"),
            cs.Factor("x", range(places)),
            cs.Factor("y", range(places)),
        ],
        lambda shape, x, y: mask(int(shape), spots[int(x)], spots[int(y)], 2.5, side)[None],
    )


def coloured(side: int = 16, background: tuple[float, ...] = (0.3, 0.1, 0.5), places: int = 4) -> cs.TableTask:
    """Four factors, RGB, on a coloured background: shape, hue, x and y."""
    spots = torch.linspace(3.5, side - 4.5, places).tolist()
    ground = torch.tensor(background)[:, None, None]

    def draw(shape: float, hue: float, x: float, y: float) -> Tensor:
        covered = mask(int(shape), spots[int(x)], spots[int(y)], 2.5, side)
        return ground + covered * (HUES[int(hue)][:, None, None] - ground)

    return table(
        [
            cs.Factor("shape", range(3), "categorical"),
            cs.Factor("hue", range(3), "categorical"),
            cs.Factor("x", range(places)),
            cs.Factor("y", range(places)),
        ],
        draw,
    )


def signed(side: int = 16, places: int = 5) -> cs.TableTask:
    """Three factors, images in [-1, 1]: scale, x and y."""
    spots = torch.linspace(3.5, side - 4.5, places).tolist()
    return table(
        [cs.Factor("scale", (1.0, 2.0, 3.0, 4.0)), cs.Factor("x", range(places)), cs.Factor("y", range(places))],
        lambda scale, x, y: 2 * mask(0, spots[int(x)], spots[int(y)], scale - 0.5, side)[None] - 1,
    )


def rooms(side: int = 16) -> cs.TableTask:
    """Five factors, RGB, no background: floor, wall, hue, shape and scale of an object."""

    def draw(floor: float, wall: float, hue: float, shape: float, scale: float) -> Tensor:
        image = (0.7 * HUES[int(wall)] + 0.3)[:, None, None].repeat(1, side, side)
        image[:, 10 * side // 16 :] = (0.5 * HUES[int(floor)])[:, None, None]
        covered = mask(int(shape), side / 2 - 0.5, 9.0 * side / 16, scale * side / 16, side)
        return image + covered * (HUES[int(hue)][:, None, None] - image)

    kinds = {"floor": 3, "wall": 3, "hue": 3, "shape": 3}
    factors = [cs.Factor(name, range(size), "categorical") for name, size in kinds.items()]
    return table([*factors, cs.Factor("scale", (2.5, 3.5, 4.5))], draw)


@dataclass(frozen=True)
class Case:
    """A task, what is held out, and the factor that a decoder gets wrong."""

    task: cs.Task
    holdout: cs.Holdout
    wrong: str

    def split(self) -> cs.Split:
        return grid_split(self.task, self.holdout)


def blurred(images: Tensor, sigma: float) -> Tensor:
    steps = torch.arange(-4, 5).float()
    profile = torch.exp(-(steps / sigma).square() / 2)
    kernel = (profile[:, None] * profile / profile.sum() ** 2).expand(images.shape[1], 1, 9, 9)
    return conv2d(pad(images, (4, 4, 4, 4), mode="replicate"), kernel, groups=images.shape[1])


def shifted(images: Tensor, down: int, right: int) -> Tensor:
    """Moved by whole pixels; what comes in at the border is as the border was."""
    reach = max(abs(down), abs(right))
    wide = pad(images, (reach,) * 4, mode="replicate")
    return wide.roll((down, right), (2, 3))[:, :, reach:-reach, reach:-reach]


def one_wrong(truth: Tensor, case: Case, heldout: Tensor, latents: Tensor) -> Tensor:
    """Every factor right but one, which takes the value after next (or the other one of two)."""
    factors = case.task.factors
    axis = [factor.name for factor in factors].index(case.wrong)
    factor, other = factors[axis], latents.clone()
    other[:, axis] = factor.tensor()[(factor.index(latents[:, axis]) + (1 if factor.size == 2 else 2)) % factor.size]
    return torch.where(heldout[:, None, None, None], case.task.foreground(case.task.render(other)), truth)


PURE = {
    "composer": "composes",
    "composer, blurred": "composes",
    "composer, shifted": "composes",
    "composer, noisy": "composes",
    "composer, faded": "composes",
    "composer, offset": "composes",
    "superposer": "superposes",
    "superposer, blurred": "superposes",
    "superposer, noisy": "superposes",
    "nearest seen": "repeats",
    "nearest seen, noisy": "repeats",
    "additive": "adds",
    "additive, blurred": "adds",
    "additive everywhere": "adds",
    "blank": "draws nothing",
    "grey": "does something else",
    "noise": "does something else",
    "one factor wrong": "mixes up factors",
    "one factor wrong, blurred": "mixes up factors",
    "one factor wrong, noisy": "mixes up factors",
    "underfitted": "has not learned",
    "mean image": "has not learned",
}
"""Every decoder that does one thing, and what it is to be called."""

MIXTURES = {
    "70 % composer + 30 % superposer": ("composer", "superposer"),
    "70 % composer + 30 % one factor wrong": ("composer", "one factor wrong"),
    "70 % nearest seen + 30 % blank": ("nearest seen", "blank"),
}


def foregrounds(case: Case, seed: int) -> dict[str, Tensor]:
    """The foregrounds that every decoder draws over the grid of the case."""
    parts = case.split()
    rng = torch.Generator().manual_seed(seed)
    held = parts.mask[:, None, None, None]
    truth = case.task.foreground(case.task.render(parts.latents))
    base = oracle_images(truth, parts.latents, parts.mask, case.task.factors)
    base["one factor wrong"] = one_wrong(truth, case, parts.mask, parts.latents)
    level = truth.square().mean().sqrt()
    noise = lambda share: share**0.5 * level * torch.randn(truth.shape, generator=rng)  # noqa: E731
    made = {}
    for name, images in base.items():
        made[name] = images
        made[f"{name}, blurred"] = blurred(images, 1.0)
        made[f"{name}, shifted"] = shifted(images, 1, -1)
        made[f"{name}, noisy"] = images + noise(0.1)
        made[f"{name}, faded"] = 0.6 * images
        made[f"{name}, offset"] = images + 0.15
    made["grey"] = torch.where(held, 6**0.5 * level, truth)
    made["noise"] = torch.where(held, noise(2.0), truth)
    model = fit_additive(truth, grid_index(parts.latents, case.task.factors), ~parts.mask, case.task.factors)
    made["additive everywhere"] = model.predicted(grid_index(parts.latents, case.task.factors)).reshape(truth.shape)
    made["mean image"] = truth.mean(0, keepdim=True).expand_as(truth)
    made["underfitted"] = 0.25 * blurred(truth, 2.0) + 0.75 * made["mean image"]
    for name, (first, second) in MIXTURES.items():
        chosen = torch.zeros_like(parts.mask)
        rows = parts.mask.nonzero()[:, 0]
        chosen[rows[torch.randperm(len(rows), generator=rng)[: round(0.3 * len(rows))]]] = True
        made[name] = torch.where(chosen[:, None, None, None], base[second], base[first])
    return made


def judged(case: Case, images: Tensor) -> Verdict:
    """The verdict on foregrounds over the case's grid."""
    parts = case.split()
    truth = case.task.foreground(case.task.render(parts.latents))
    return classify(
        images, truth, parts.latents, parts.mask, case.task.factors, additive_cross(case.task, parts.latents)
    )


class Lookup(nn.Module):
    """Known images for one-hot codes."""

    def __init__(self, case: Case, foreground: Tensor) -> None:
        super().__init__()
        parts = case.split()
        images = case.task.background - foreground if case.task.dark else case.task.background + foreground
        self.register_buffer("codes", cs.OneHot().encode(parts.latents, case.task.factors))
        self.register_buffer("images", images)

    def forward(self, codes: Tensor) -> Tensor:
        return self.images[(codes @ self.codes.T).argmax(1)]


def combination(case: Case, **values: float) -> int:
    """The row of a combination on the case's grid."""
    latents = case.split().latents
    names = [factor.name for factor in case.task.factors]
    wanted = torch.tensor([[values[name] for name in names]])
    same = grid_index(latents, case.task.factors) == grid_index(wanted, case.task.factors)
    return int(same.all(1).nonzero()[0, 0])
