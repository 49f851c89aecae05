"""A generator under study: conditions made by an encoding, images drawn a few at a time, none of them twice."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from composcope.activations.adapters import Decode, Encode, Inputs, encoded
from composcope.activations.recording import Pick, evaluating, picked
from composcope.activations.subject import home
from composcope.encodings import Encoding
from composcope.errors import BadInput
from composcope.factors import Latents
from composcope.tasks.base import Images
from composcope.tasks.examples import Examples

BATCH = 64  # images per call of the generator


class Sampler:
    """Draws images of combinations.

    What the encoding returns is given to the generator as it is: tensors, a list of strings, any batch object. A tuple
    becomes its arguments, and a dict one argument, or keywords with `inputs = "keywords"`.
    """

    def __init__(
        self, generator: Decode, task: Examples, encoding: Encode, inputs: Inputs, pick: Pick, device: Any
    ) -> None:
        if isinstance(generator, type) or not callable(generator):
            raise BadInput(f"a torch.nn.Module or a function is needed; got {generator!r:.60}")
        self.inputs, self.pick = inputs, pick
        if device is not None and isinstance(generator, nn.Module):
            generator = copy.deepcopy(generator).to(device)
        owner = generator if isinstance(generator, nn.Module) else getattr(generator, "__self__", None)
        self.generator, self.task, self.encoding = generator, task, encoding
        self.module = owner if isinstance(owner, nn.Module) else nn.Module()
        self.device, _ = home(self.module, device)

    def draw(self, latents: Latents, seed: int) -> Images:
        """One image of each row, at most `BATCH` of them."""
        with evaluating(self.module, self.device), torch.no_grad():
            torch.manual_seed(seed)  # otherwise every call would begin with the same noise
            images = self._called(latents)
        shape = (len(latents), *self.task.image_shape)
        if tuple(images.shape) != shape:
            raise BadInput(
                f"the generator's images have shape {tuple(images.shape)} for {len(latents)} conditions; the examples' "
                f"need {shape}"
            )
        broken = int((~images.flatten(1).isfinite()).any(1).sum())
        if broken:
            raise BadInput(f"{broken} of {len(images)} images of the generator have pixels that are not finite")
        return images

    def _called(self, latents: Latents) -> Tensor:
        if isinstance(self.encoding, Encoding):
            codes, layout = encoded(self.encoding, latents, self.task.factors, self.inputs)
            made = layout.call(self.generator, codes.to(self.device))
        else:
            made = self._given(self.encoding(latents.clone()))
        image = picked(made, self.pick) if self.pick is not None or not isinstance(made, np.ndarray) else made
        tensor = torch.from_numpy(image) if isinstance(image, np.ndarray) else image
        return tensor.detach().float().cpu()

    def _given(self, conditions: Any) -> Any:
        call: Callable[..., Any] = self.generator
        if isinstance(conditions, Mapping):
            parts = {name: self._sent(part) for name, part in conditions.items()}
            return call(**parts) if self.inputs == "keywords" else call(parts)
        if isinstance(conditions, tuple):
            return call(*map(self._sent, conditions))
        return call(self._sent(conditions))

    def _sent(self, part: Any) -> Any:
        return part.to(self.device) if isinstance(part, Tensor) else part
