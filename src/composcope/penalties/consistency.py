"""Compositional consistency: what is drawn for a withheld code must be read as that code."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from composcope.components import register
from composcope.errors import BadInput
from composcope.penalties.base import Batch, DrawingPenalty, Step, TrainingData, Weight
from composcope.penalties.reader import trained_reader


@register("consistency")
class Consistency(DrawingPenalty):
    """weight * mean over withheld codes z of the sum over factors f of -log p_f(z_f | D(z)), p_f by a frozen reader.

    It is given the codes of withheld combinations and never their images, so a decoder trained with it knows which
    combinations it will be asked for. The reader tells each factor's value from an image; it is trained on the seen
    images before the decoder is, and pools over an image axis so as to read positions that it has not seen together.

    - `weight`: of the cross-entropy. As many withheld codes are drawn at random in each step as the batch has samples.
    """

    weight: Weight = 0.01

    def start(self, data: TrainingData) -> Step:
        if not len(data.heldout_codes):
            raise BadInput("consistency: acts on the codes of withheld combinations, and the holdout withholds none")
        reader, values = trained_reader(data.codes, data.images, data.code_sizes, data.rng)
        parts = data.heldout_codes.split(list(data.code_sizes), 1)
        targets = [factor.index(part) for factor, part in zip(values, parts, strict=True)]

        def step(module: nn.Module, batch: Batch) -> Float[Tensor, ""]:
            rows = torch.randint(len(data.heldout_codes), (len(batch.codes),), generator=data.rng)
            rows = rows.to(data.heldout_codes.device)
            readings = reader(module(data.heldout_codes[rows]))
            losses = [cross_entropy(logits, target[rows]) for logits, target in zip(readings, targets, strict=True)]
            return self.weight * torch.stack(losses).sum()

        return step
