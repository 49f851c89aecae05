"""The penalty role: a term added to the loss, and what it is given before and during training."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from composcope.components import Component
from composcope.decoders.base import Decoder

Weight = Annotated[float, Field(ge=0)]


@dataclass(frozen=True)
class Batch:
    """The samples of one training step.

    - `codes`, `images`: what the step trains on. An absent factor's code is as the encoding makes it.
    - `outputs`: what the module gave for them; None if the decoder has a loss of its own (`Decoder.loss`).
    """

    codes: Float[Tensor, "n ..."]
    images: Float[Tensor, "n ..."]
    outputs: Float[Tensor, "n ..."] | None


@dataclass(frozen=True)
class TrainingData:
    """What a penalty may know before training starts. Images of held-out combinations are not part of it.

    - `codes`, `images`: the whole training set. `heldout_codes`: the codes of the held-out combinations.
    - `code_sizes`: how many columns of a code belong to each factor, in order. `rng`: the penalty's own randomness.
    """

    codes: Float[Tensor, "n ..."]
    images: Float[Tensor, "n ..."]
    heldout_codes: Float[Tensor, "heldout ..."]
    code_sizes: tuple[int, ...]
    rng: torch.Generator


Step = Callable[[nn.Module, Batch], Float[Tensor, ""]]
"""A penalty during training: the scalar that it adds to the loss of one step."""


class Penalty(Component):
    """A scalar added to the loss at every step. A custom penalty implements `loss`.

    `loss` may take the module alone, `loss(self, module)`, if it needs no batch. A penalty that prepares something
    before training, or that needs the codes of held-out combinations, overrides `start` instead.
    """

    def loss(self, module: nn.Module, batch: Batch) -> Float[Tensor, ""]:
        """The scalar for one step."""
        raise NotImplementedError(f"{type(self).__name__} implements neither loss nor start")

    def start(self, data: TrainingData) -> Step:
        """Prepare for training on these data; what is returned is called at every step. By default `loss` itself."""
        return self.loss if _takes_batch(self.loss) else self._of_the_module_alone

    def check(self, decoder: Decoder) -> None:
        """Raise ValueError if the decoder has nothing that the penalty acts on."""

    def _of_the_module_alone(self, module: nn.Module, batch: Batch) -> Float[Tensor, ""]:
        loss: Callable[[nn.Module], Tensor] = self.loss  # type: ignore[assignment]
        return loss(module)


class DrawingPenalty(Penalty):
    """A penalty on what the module draws from codes."""

    def check(self, decoder: Decoder) -> None:
        if not decoder.draws_codes:
            raise ValueError(f"{self} acts on images drawn from codes, and {type(decoder).__name__} is given images")


def _takes_batch(loss: Callable[..., Tensor]) -> bool:
    try:
        inspect.signature(loss).bind(None, None)
    except TypeError:
        return False
    return True
