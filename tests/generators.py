"""A world without true images (digits x tint x position, each drawn with a style of its own), and generators of it."""

import torch
from torch.nn.functional import affine_grid, avg_pool2d, grid_sample

import composcope as cs
from composcope.readers.networks import blurred
from composcope.tasks.rotation import digits

DIGITS = (0, 1, 2, 3, 4, 7)
TINTS = {"red": (1.0, 0.25, 0.2), "green": (0.2, 0.9, 0.3), "blue": (0.3, 0.35, 1.0), "white": (0.9, 0.9, 0.9)}
PLACES = (0, 5, 10)
SIZES = (len(DIGITS), len(TINTS), len(PLACES))
HEIGHT, WIDTH = 18, 26


def render(index, rng=None):
    """An image of each combination, in a style of its own: slant, size, stroke, height, light and background."""
    count = len(index)

    def uniform(low, high, *shape):
        return low + (high - low) * torch.rand(count, *shape, generator=rng)

    shape = digits()[list(DIGITS)][index[:, 0]][:, None]
    angle, slant, size = uniform(-0.2, 0.2), uniform(-0.2, 0.2), uniform(0.85, 1.15)
    matrix = torch.zeros(count, 2, 3)
    matrix[:, 0, 0], matrix[:, 0, 1] = angle.cos() * size, -angle.sin() + slant
    matrix[:, 1, 0], matrix[:, 1, 1] = angle.sin(), angle.cos() * size
    turned = grid_sample(shape, affine_grid(matrix, [*shape.shape], align_corners=False), align_corners=False)
    stroke = avg_pool2d(turned, 2).clamp(0, 1) ** uniform(0.6, 1.4, 1, 1, 1)
    canvas = torch.zeros(count, 1, HEIGHT, WIDTH)
    below = torch.randint(4, (count,), generator=rng)
    for row in range(count):
        left = PLACES[index[row, 2]] + 1
        canvas[row, :, below[row] : below[row] + 14, left : left + 14] = stroke[row]
    colour = torch.tensor(list(TINTS.values()))[index[:, 1]][:, :, None, None] * uniform(0.75, 1.0, 1, 1, 1)
    background = uniform(0.0, 0.25, 1, 1, 1).expand(-1, 3, HEIGHT, WIDTH)
    return (
        background + canvas * (colour - background) + 0.01 * torch.randn(count, 3, HEIGHT, WIDTH, generator=rng)
    ).clamp(0, 1)


def held(index):
    """A block of digits and tints that never go together."""
    return (index[:, 0] % 3 == 1) & (index[:, 1] < 2)


def holdout(digit, tint):
    return DIGITS.index(int(digit)) % 3 == 1 and tint in ("red", "green")


def all_index():
    return torch.cartesian_prod(*(torch.arange(size) for size in SIZES))


def examples(each=20, with_heldout=True, seed=0):
    """So many real images of every combination."""
    rng = torch.Generator().manual_seed(seed)
    index = all_index().repeat_interleave(each, 0)
    if not with_heldout:
        index = index[~held(index)]
    columns = {
        "digit": [DIGITS[i] for i in index[:, 0]],
        "tint": [list(TINTS)[i] for i in index[:, 1]],
        "x": [PLACES[i] for i in index[:, 2]],
    }
    return cs.Examples.from_columns(columns, render(index, rng), values={"tint": list(TINTS)})


def conditions(latents):
    """The combination as positions among the factors' values."""
    digit = torch.tensor([DIGITS.index(int(value)) for value in latents[:, 0]])
    place = torch.tensor([PLACES.index(int(value)) for value in latents[:, 2]])
    return torch.stack([digit, latents[:, 1].long(), place], 1)


def only_held(wrong):
    """Right on seen combinations, and this on held-out ones."""

    def generator(index):
        images, hole = render(index), held(index)
        if hole.any():
            images[hole] = wrong(index[hole])
        return images

    return generator


def other(axis):
    """The images with another value of one factor, which was seen with the others' values."""

    def wrong(index):
        changed = index.clone()
        changed[:, axis] = (index[:, axis] + (2 if axis == 1 else 1)) % SIZES[axis]
        return render(changed)

    return wrong


def half(index):
    wrong = torch.rand(len(index)) < 0.5
    return torch.where(wrong[:, None, None, None], other(0)(index), render(index))


def superposed(index):
    return (other(0)(index) + other(1)(index)) / 2


def blank(index):
    return (torch.rand(len(index), 1, 1, 1) * 0.25).expand(-1, 3, HEIGHT, WIDTH)


def noise(index):
    return torch.rand(len(index), 3, HEIGHT, WIDTH)


def soft(index):
    return 0.8 * blurred(render(index), 1.3) + 0.05


def copier(task):
    """A training image of a combination that differs in the tint alone."""

    def copies(index):
        wanted = index.clone()
        wanted[:, 1] = 2
        rows = [(task.index == row).all(1).nonzero()[:, 0] for row in wanted]
        return torch.stack([task.images[row[torch.randint(len(row), ())]] for row in rows])

    return copies


def unlearned(index):
    """Real images of any combination, whatever the condition."""
    return render(torch.stack([torch.randint(size, (len(index),)) for size in SIZES], 1))


def generators(task):
    """Eleven by name, the kind that each is, and the factors that are wrong."""
    return {
        "perfect": (render, "composes", set()),
        "digit wrong": (only_held(other(0)), "mixes up factors", {"digit"}),
        "tint wrong": (only_held(other(1)), "mixes up factors", {"tint"}),
        "x wrong": (only_held(other(2)), "mixes up factors", {"x"}),
        "half right": (only_held(half), "mixes up factors", {"digit"}),
        "superposed": (only_held(superposed), "superposes", None),
        "blank": (only_held(blank), "draws nothing", None),
        "noise": (only_held(noise), "does something else", None),
        "blurred": (only_held(soft), "composes", set()),
        "copies": (only_held(copier(task)), "repeats", None),
        "not learned": (unlearned, "has not learned", None),
    }
