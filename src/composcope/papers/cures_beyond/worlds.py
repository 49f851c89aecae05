"""The worlds: images of two or three factors, and combinations that are withheld."""

from dataclasses import dataclass

from composcope.holdouts import Box, Holdout
from composcope.tasks.base import Task
from composcope.tasks.bump import BumpTask
from composcope.tasks.rotation import RotationTask
from composcope.tasks.sprites import SpriteTask

BUMPS, BRIGHTNESS = "bumps: x, y", "bumps: x, y, brightness"
SPRITES, SCALES, DIGITS = "sprites: x, y, shape", "sprites: shape, scale", "digits: angle, digit"
SHAPES = ("square", "disc", "triangle", "cross", "ring", "heart")


@dataclass(frozen=True)
class World:
    """A task and its holdout; an absent factor is drawn as the maximum over all of its values."""

    name: str
    task: Task
    holdout: Holdout


QUICK = (
    World(BUMPS, BumpTask(12), Box({"x": (4, 8), "y": (4, 8)})),
    World(
        BRIGHTNESS,
        BumpTask(12, brightness=(0.25, 0.5, 0.75, 1.0), absent="max"),
        Box({"x": (4, 8), "y": (4, 8)}),
    ),
    World(
        SPRITES,
        SpriteTask(16, x=tuple(range(3, 13)), y=tuple(range(3, 13)), shapes=SHAPES[:3], scales=(2.25,)),
        Box({"x": (5, 10), "y": (5, 10)}),
    ),
    World(
        SCALES,
        SpriteTask(16, shapes=SHAPES, scales=(2.0, 2.5, 3.0, 3.5, 4.0, 4.5)),
        Box({"shape": (2, 4), "scale": (2.5, 3.5)}),
    ),
    World(
        DIGITS,
        RotationTask(digits=tuple(range(8)), angles=24, side=14, absent="max"),
        Box({"angle": (90, 210), "digit": (2, 5)}),
    ),
)
TINY = (World(BUMPS, BumpTask(8), Box({"x": (3, 4), "y": (3, 4)})),)
