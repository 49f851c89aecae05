"""The worlds, images of two or three factors with combinations held out, and the treatments that are tried in them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from composcope.decoders.cnn import CNN
from composcope.decoders.flow_matching import FlowMatching
from composcope.decoders.lowrank import LowRank
from composcope.decoders.mlp import MLP
from composcope.decoders.per_factor import Additive, Product
from composcope.decoders.spatial_broadcast import SpatialBroadcast
from composcope.decoders.tokens import Pixelwise
from composcope.encodings import OneHot
from composcope.holdouts import Box, Holdout
from composcope.penalties import Entropy, Variance
from composcope.penalties.consistency import Consistency
from composcope.penalties.interaction import Interaction
from composcope.runs.spec import Spec
from composcope.sampling import Everything, Stripes
from composcope.tasks.base import Task
from composcope.tasks.bump import BumpTask
from composcope.tasks.rotation import RotationTask
from composcope.tasks.sprites import SpriteTask
from composcope.training import Training

BUMPS, BRIGHTNESS = "bumps: x, y", "bumps: x, y, brightness"
SPRITES, SCALES, DIGITS = "sprites: x, y, shape", "sprites: shape, scale", "digits: angle, digit"
SHAPES = ("square", "disc", "triangle", "cross", "ring", "heart")


@dataclass(frozen=True)
class World:
    """A task and its holdout; an absent factor is drawn as the maximum over all of its values."""

    name: str
    task: Task
    holdout: Holdout


QUICK_WORLDS = (
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
TINY_WORLDS = (World(BUMPS, BumpTask(8), Box({"x": (3, 4), "y": (3, 4)})),)

SINGLE = Stripes(fraction=1.0)
SUBSETS = Stripes(fraction=1.0, subsets="all proper subsets")


@dataclass(frozen=True)
class Treatment:
    """What is changed in the untreated spec, as fields that may depend on the world.

    - `worlds`: the worlds that it is tried in, by name; all by default. The most expensive are tried in one.
    """

    name: str
    changes: Callable[[World], dict[str, Any]]
    worlds: tuple[str, ...] | None = None

    def tried_in(self, world: World) -> bool:
        return self.worlds is None or world.name in self.worlds


def _fields(**changes: Any) -> Callable[[World], dict[str, Any]]:
    return lambda world: changes


def _product(**changes: Any) -> Callable[[World], dict[str, Any]]:
    network = MLP(depth=2, width=64)
    return lambda world: {
        "decoder": Product(network, polarity="dark" if world.task.dark else "bright"),
        **changes,
    }


CONTROL = "none"
FLOW = FlowMatching()
TREATMENTS = (
    Treatment(CONTROL, _fields()),
    Treatment("single factors", _fields(sampling=SINGLE)),
    Treatment("all proper subsets", _fields(sampling=SUBSETS)),
    Treatment("pixel-wise", _fields(decoder=Pixelwise(depth=2, width=64))),
    Treatment("spatial broadcast", _fields(decoder=SpatialBroadcast(depth=3, width=24))),
    Treatment(
        "low rank, penalties",
        _fields(
            decoder=LowRank(init="authors", activate_embedding=True),
            penalties=(Entropy(0.1), Variance(0.01)),
        ),
    ),
    Treatment("additive", _fields(decoder=Additive(MLP(depth=2, width=64)))),
    Treatment("product", _product()),
    Treatment("product, single factors", _product(sampling=SINGLE)),
    Treatment("consistency", _fields(penalties=(Consistency(),))),
    Treatment("interaction penalty", _fields(penalties=(Interaction(),)), (BUMPS,)),
    Treatment("flow matching", _fields(decoder=FLOW), (BUMPS,)),
    Treatment("flow matching, single factors", _fields(decoder=FLOW, sampling=SINGLE), (BUMPS,)),
    Treatment("flow matching, coordinates", _fields(decoder=FlowMatching(coordinates=True)), (BUMPS,)),
)


def untreated(world: World, steps: int, seed: int) -> Spec:
    """A CNN with one-hot codes, trained on every seen combination."""
    return Spec(
        task=world.task,
        holdout=world.holdout,
        encoding=OneHot(),
        decoder=CNN(depth=3, width=24),
        sampling=Everything(),
        training=Training(steps=steps, batch=32, lr=2e-3, schedule="cosine"),
        seed=seed,
    )


def treated(world: World, treatment: Treatment, steps: int, seed: int) -> Spec:
    """The untreated spec with the treatment's changes; as many steps of as many images."""
    return replace(untreated(world, steps, seed), **treatment.changes(world))
