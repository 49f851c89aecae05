"""One reader per factor: trained by us on real images, or the user's own classifier."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from composcope.components import nearest
from composcope.errors import BadInput
from composcope.factors import Factor, combination_numbers
from composcope.readers.networks import BATCH, CHUNK, Network, OnStep, Scale, train_network
from composcope.tasks.base import Images

GivenReader = nn.Module | Callable[..., Any]
"""Images -> for each factor the scores of its values (n, values), or the value's position (n,)."""


Reading = Callable[[Images], Int[Tensor, "n factors"]]
"""Images -> the position of the value that each factor has in them."""


class FactorReaders:
    """Our own: one network per factor."""

    def __init__(self, networks: Sequence[Network], scale: Scale) -> None:
        self.networks, self.scale = networks, scale

    @torch.no_grad()
    def __call__(self, images: Images) -> Int[Tensor, "n factors"]:
        if not len(images):
            return torch.empty(0, len(self.networks), dtype=torch.long)
        parts = []
        for some in images.split(CHUNK):
            scaled = self.scale(some)
            parts.append(torch.stack([network(scaled).argmax(1) for network in self.networks], 1))
        return torch.cat(parts)


def competing(index: Int[Tensor, "n factors"], sizes: Sequence[int]) -> list[Bool[Tensor, "n values"]]:
    """For each factor, which of its values occur together with the other factors' values of each image.

    A reader that is told only these apart gains nothing from what goes with what: where digit 3 is never red, red does
    not say that it is no 3. Without this a reader trained on seen combinations misreads nearly all held-out ones.
    """
    masks = []
    for axis, size in enumerate(sizes):
        others = [other for other in range(len(sizes)) if other != axis]
        context = combination_numbers(index[:, others], [sizes[other] for other in others])
        context = context.unique(return_inverse=True)[1] if len(others) else torch.zeros(len(index), dtype=torch.long)
        together = torch.zeros(int(context.max()) + 1, size, dtype=torch.bool)
        together[context, index[:, axis]] = True
        masks.append(together[context])
    return masks


def train_each(
    images: Images, index: Int[Tensor, "n factors"], factors: Sequence[Factor], seed: int, on_step: OnStep
) -> FactorReaders:
    """A network per factor, each combination as often as any other, however many images it has.

    - `index`: the position of each factor's value; `on_step`: called with the steps done and expected, of all factors.
    """
    scale = Scale.of(images)
    scaled = torch.cat([scale(some) for some in images.split(CHUNK)])
    sizes = [factor.size for factor in factors]
    combination = combination_numbers(index, sizes)
    rarity = 1 / combination.unique(return_inverse=True, return_counts=True)[2].float()
    weights = rarity[combination.unique(return_inverse=True)[1]]
    networks: list[Network] = []
    past = 0
    for axis, allowed in enumerate(competing(index, sizes)):
        usable = weights * (allowed.sum(1) > 1)  # an image whose value has no rival teaches nothing
        usable = usable if bool(usable.any()) else weights
        offsets = torch.zeros(allowed.shape).masked_fill(~allowed, -torch.inf)

        def batch(rng: torch.Generator, axis: int = axis, usable: Tensor = usable, offsets: Tensor = offsets) -> Any:
            rows = torch.multinomial(usable, BATCH, replacement=True, generator=rng)
            return scaled[rows], index[rows, axis], offsets[rows]

        ahead = len(sizes) - axis
        last = 0

        def stepped(done: int, expected: int, past: int = past, ahead: int = ahead) -> None:
            nonlocal last
            last = done
            on_step(past + done, past + ahead * expected)

        rng = torch.Generator().manual_seed(seed * 1009 + axis)
        shape = (scaled.shape[1], scaled.shape[2], scaled.shape[3])
        networks.append(train_network(shape, sizes[axis], batch, rng, stepped))
        past += last
    return FactorReaders(networks, scale)


class OwnReader:
    """The user's classifier, asked for every factor and checked."""

    def __init__(self, reader: GivenReader, factors: Sequence[Factor]) -> None:
        self.reader, self.factors = reader, tuple(factors)

    @torch.no_grad()
    def __call__(self, images: Images) -> Int[Tensor, "n factors"]:
        if not len(images):
            return torch.empty(0, len(self.factors), dtype=torch.long)
        return torch.cat([self._read(some) for some in images.split(CHUNK)])

    def _read(self, images: Images) -> Int[Tensor, "n factors"]:
        training = self.reader.training if isinstance(self.reader, nn.Module) else False
        if isinstance(self.reader, nn.Module):
            self.reader.eval()
        try:
            made = self.reader(images.clone())
        finally:
            if isinstance(self.reader, nn.Module):
                self.reader.train(training)
        parts = self._by_factor(made)
        return torch.stack([self._values(factor, parts[factor.name], len(images)) for factor in self.factors], 1)

    def _by_factor(self, made: Any) -> Mapping[str, Any]:
        names = [factor.name for factor in self.factors]
        if isinstance(made, Mapping):
            for name in made:
                if name not in names:
                    raise BadInput(f"reader: there is no factor {name!r}{nearest(str(name), names)}; there are {names}")
            missing = [name for name in names if name not in made]
            if missing:
                raise BadInput(f"reader: it reads {', '.join(map(str, made))}; {missing[0]!r} is missing")
            return made
        parts = list(made) if isinstance(made, tuple | list) else [made]
        if len(parts) != len(names):
            raise BadInput(
                f"reader: a dict of scores by factor, or a tuple in the order {', '.join(names)} is needed; it returns "
                f"{len(parts)} value{'' if len(parts) == 1 else 's'}"
            )
        return dict(zip(names, parts, strict=True))

    def _values(self, factor: Factor, part: Any, count: int) -> Int[Tensor, "n"]:
        scores = part.detach().cpu() if isinstance(part, Tensor) else torch.as_tensor(np.asarray(part))
        if scores.shape == (count, factor.size) and not (scores.isnan()).any():
            return scores.argmax(1)
        positions = scores.shape == (count,) and not scores.is_floating_point()
        if positions and int(scores.min()) >= 0 and int(scores.max()) < factor.size:
            return scores.long()
        raise BadInput(
            f"reader: {factor.name} has {factor.size} values ({factor.describe()}); for {count} images it needs scores "
            f"of shape ({count}, {factor.size}) or positions 0..{factor.size - 1}, not {tuple(scores.shape)}"
        )
