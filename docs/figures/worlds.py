"""Draws figures/worlds.png for docs/worlds.md: python docs/figures/worlds.py"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import torch
from matplotlib import pyplot as plt

import composcope as cs

SHOWN, ABSENT = 9, 4
SPRITES = cs.SpriteTask(16, x=range(5, 11), y=range(5, 11), shapes=("square", "disc", "triangle", "heart"), scales=(3,))
SIZES = cs.SpriteTask(16, shapes=("square", "triangle", "ring", "heart"), scales=(2.5, 3.5, 4.5))
COLOURED = cs.SpriteTask(
    32,
    shapes=("heart", "dome", "triangle"),
    scales=(9.5,),
    rotations=(0, 30, 60),
    colours=("red", "green", "blue"),
    polarity="bright",
)
WORLDS = {
    "bumps\nx, y": (cs.BumpTask(16, sigma=1.5), [["y"], ["x"]]),
    "bumps\nx, y, brightness": (
        cs.BumpTask(16, sigma=1.5, brightness=(0.25, 0.5, 1.0), absent="max"),
        [["y"], ["brightness"], ["y", "brightness"]],
    ),
    "sprites\nx, y, shape": (SPRITES, [["y"], ["shape"], ["y", "shape"], ["x", "y"]]),
    "sprites, mean\nx, y, shape": (
        cs.SpriteTask(16, SPRITES.x, SPRITES.y, SPRITES.shapes, SPRITES.scales, absent="mean"),
        [["y"], ["shape"], ["y", "shape"], ["x", "y"]],
    ),
    "sprites\nshape, scale": (SIZES, [["scale"], ["shape"]]),
    "sprites\nshape, rotation, colour": (COLOURED, [["shape"], ["rotation"], ["colour"], ["rotation", "colour"]]),
    "digits\nangle, digit": (cs.RotationTask((1, 2, 4, 7), 12, 14, "max"), [["angle"], ["digit"]]),
}


def main() -> None:
    figure, axes = plt.subplots(len(WORLDS), SHOWN + ABSENT, figsize=(11, 1.12 * len(WORLDS)))
    for ax in axes.flat:
        ax.axis("off")
    for row, (name, (task, patterns)) in zip(axes, WORLDS.items(), strict=True):
        grid, names = task.grid(), [factor.name for factor in task.factors]
        some = grid[torch.randperm(len(grid), generator=torch.Generator().manual_seed(1))[:SHOWN]]
        for ax, image in zip(row, task.render(some), strict=False):
            show(ax, image)
        row[0].text(-0.15, 0.5, name, transform=row[0].transAxes, ha="right", va="center", fontsize=8)
        middle = grid[[len(grid) // 2 + len(grid) // 11]]
        for ax, gone in zip(row[SHOWN:], patterns, strict=False):
            absent = torch.tensor([[each in gone for each in names]])
            show(ax, task.render(middle.masked_fill(absent, torch.nan))[0])
            ax.set_title(f"no {', '.join(gone)}", fontsize=6, pad=2)
    figure.subplots_adjust(0.13, 0.01, 0.99, 0.97, wspace=0.12, hspace=0.28)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=110)


def show(ax: plt.Axes, image: torch.Tensor) -> None:
    """Row 0 at the bottom, in a frame."""
    ax.imshow(image.permute(1, 2, 0).expand(-1, -1, 3).clamp(0, 1), origin="lower", interpolation="nearest")
    ax.axis("on")
    ax.set(xticks=[], yticks=[])
    for side in ax.spines.values():
        side.set(linewidth=0.4, color="0.6")


if __name__ == "__main__":
    main()
