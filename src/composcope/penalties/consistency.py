"""Compositional consistency: what is drawn for a withheld code must be read as that code."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from composcope.components import register
from composcope.errors import BadInput
from composcope.penalties.base import Batch, DrawingPenalty, Step, TrainingData, Weight
from composcope.penalties.reader import fitted_reader


@register("consistency")
class Consistency(DrawingPenalty):
    """weight * mean over withheld codes z of the sum over factors f of d_f(D(z), z_f), a frozen reader's distance.

    It is given the codes of the withheld combinations, never their images, so the decoder is told which combinations
    it will be asked for. The reader is made from the seen images before training: it pools an image over one axis or
    both, and d_f is the squared distance between the pooled D(z) and the mean of pooled seen images with the value
    z_f, divided by their variance. Factors whose values it cannot tell apart are left out.

    - `weight`: of the distance. As many withheld codes are drawn at random in each step as the batch has samples.
    """

    weight: Weight = 0.003

    def start(self, data: TrainingData) -> Step:
        if not len(data.heldout_codes):
            raise BadInput("consistency: acts on the codes of withheld combinations, and the holdout withholds none")
        reader = fitted_reader(data.codes, data.images, data.code_sizes, data.rng)
        parts = zip(reader.readings, data.heldout_codes.split(list(data.code_sizes), 1), strict=True)
        targets = [factor.index(part) for factor, part in parts if factor.way is not None]
        if not targets:
            raise BadInput("consistency: no factor's value can be read from the pooled seen images; leave it out")

        def step(module: nn.Module, batch: Batch) -> Float[Tensor, ""]:
            rows = torch.randint(len(data.heldout_codes), (len(batch.codes),), generator=data.rng)
            rows = rows.to(data.heldout_codes.device)
            distances = reader.distances(module(data.heldout_codes[rows]))
            right = [
                factor.gather(1, target[rows, None]).mean() for factor, target in zip(distances, targets, strict=True)
            ]
            return self.weight * torch.stack(right).sum()

        return step
