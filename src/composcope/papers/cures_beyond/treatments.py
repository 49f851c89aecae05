"""The treatments: what is changed about an untreated decoder, in its data, its architecture or its loss."""

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
from composcope.papers.cures_beyond.worlds import BUMPS, World
from composcope.penalties import Entropy, Variance
from composcope.penalties.consistency import Consistency
from composcope.penalties.interaction import Interaction
from composcope.runs.spec import Spec
from composcope.sampling import Everything, Stripes
from composcope.training import Training

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
