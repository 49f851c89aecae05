"""Terms added to the loss."""

from abc import abstractmethod

from jaxtyping import Float
from torch import Tensor, nn

from composcope.components import Component


class Penalty(Component):
    """A number computed from the module and added to the loss at every step. A penalty of your own gives `loss`."""

    @abstractmethod
    def loss(self, module: nn.Module) -> Float[Tensor, ""]: ...
