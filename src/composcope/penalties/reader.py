"""A network that reads each factor's value from an image, and is meant to read unseen combinations too."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from composcope.decoders.base import Codes, Images
from composcope.errors import BadInput
from composcope.fastconv import Conv3x3
from composcope.randomness import seeded

WIDTH, STEPS, BATCH, RATE = 16, 400, 32, 5e-3
# One of so many images is left out of the reader's training, to choose how each factor is read.
LEFT_OUT = 5
# A factor with more distinct codes is not a list of values; its training set is drawn from a continuum.
MOST_VALUES = 1024


@dataclass(frozen=True)
class Values:
    """The distinct codes of one factor in the training set. An absent factor's code is one of them, if it occurs."""

    codes: Float[Tensor, "values size"]

    @classmethod
    def of(cls, codes: Float[Tensor, "n size"]) -> "Values":
        values = codes.unique(dim=0)
        if len(values) > MOST_VALUES:
            raise BadInput(
                f"consistency: a factor has {len(values)} distinct codes in the training set, and a reader tells at "
                f"most {MOST_VALUES} values apart; use a task whose factors have listed values"
            )
        return cls(values)

    def index(self, codes: Float[Tensor, "n size"]) -> Int[Tensor, "n"]:
        """Which value each code is: the nearest."""
        return torch.cdist(codes, self.codes).argmin(1)


class AxisReader(nn.Module):
    """Two 3x3 convolutions, then for each factor a linear layer on their maps, pooled over one image axis or both.

    Pooled over rows, the maps say at which column something is, whatever its row, so that x is read the same at every
    y. Pooled over both axes, they say what is there, wherever it is. Each factor is read in one of these three ways:
    the one that reads images best that the reader was not trained on.
    """

    def __init__(self, channels: int, size: Sequence[int], values: Sequence[int], width: int = WIDTH) -> None:
        super().__init__()
        height, columns = size
        self.features = nn.Sequential(Conv3x3(channels, width, relu=True), Conv3x3(width, width, relu=True))
        self.heads = nn.ModuleList(
            nn.ModuleList(nn.Linear(width * cells, count) for cells in (columns, height, 1)) for count in values
        )
        self.chosen = [0] * len(values)

    def pooled(self, images: Images) -> list[Float[Tensor, "n features"]]:
        """The maps pooled over rows, over columns and over both, by their maximum."""
        maps = self.features(images)
        return [maps.amax(2).flatten(1), maps.amax(3).flatten(1), maps.amax((2, 3))]

    def every_reading(self, images: Images) -> list[list[Float[Tensor, "n values"]]]:
        """Each factor read in each of the three ways."""
        pooled = self.pooled(images)
        return [[head(part) for head, part in zip(heads, pooled, strict=True)] for heads in self._heads()]

    def forward(self, images: Images) -> list[Float[Tensor, "n values"]]:
        """A logit per value of each factor."""
        pooled = self.pooled(images)
        return [heads[way](pooled[way]) for heads, way in zip(self._heads(), self.chosen, strict=True)]

    def _heads(self) -> list[nn.ModuleList]:
        return [heads for heads in self.heads if isinstance(heads, nn.ModuleList)]


def trained_reader(
    codes: Codes, images: Images, code_sizes: Sequence[int], rng: torch.Generator
) -> tuple[AxisReader, list[Values]]:
    """A reader trained on these images by cross-entropy and then frozen, and the values of each factor."""
    values = [Values.of(part) for part in codes.split(list(code_sizes), 1)]
    targets = [factor.index(part) for factor, part in zip(values, codes.split(list(code_sizes), 1), strict=True)]
    order = torch.randperm(len(images), generator=rng).to(images.device)
    left_out, used = order[: len(order) // LEFT_OUT], order[len(order) // LEFT_OUT :]
    with seeded(int(torch.randint(2**31, (), generator=rng)), "reader"):
        reader = AxisReader(images.shape[1], images.shape[2:], [len(factor.codes) for factor in values])
    reader.to(images.device).train()
    optimizer = torch.optim.Adam(reader.parameters(), RATE)
    for _ in range(STEPS):
        rows = used[torch.randint(len(used), (BATCH,), generator=rng).to(used.device)]
        readings = reader.every_reading(images[rows])
        losses = [
            cross_entropy(logits, target[rows])
            for ways, target in zip(readings, targets, strict=True)
            for logits in ways
        ]
        optimizer.zero_grad()
        torch.stack(losses).sum().backward()
        optimizer.step()
    reader.eval().requires_grad_(False)
    scored = left_out if len(left_out) else used
    with torch.no_grad():
        readings = reader.every_reading(images[scored])
    for factor, (ways, target) in enumerate(zip(readings, targets, strict=True)):
        errors = torch.stack([cross_entropy(logits, target[scored]) for logits in ways])
        reader.chosen[factor] = int(errors.argmin())
    return reader, values
