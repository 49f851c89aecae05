"""Figure 1, the failure: a decoder told x and y apart still cannot draw combinations it has not seen."""

from dataclasses import dataclass, replace

from jaxtyping import Bool, Float
from torch import Tensor

from composcope.decoders.cnn import CNN
from composcope.encodings import Bump, OneHot
from composcope.experiments.run import Result, outputs
from composcope.experiments.spec import Spec
from composcope.factors import Latents
from composcope.holdouts import Square, split
from composcope.measures.error import mse
from composcope.sampling import Everything
from composcope.tasks.base import Images
from composcope.tasks.bump import BumpTask
from composcope.training import Training


@dataclass(frozen=True)
class Failure:
    """What the figure shows of one run: errors over the grid, and held-out images beside the truth."""

    title: str
    error_map: Float[Tensor, "x y"]
    heldout_map: Bool[Tensor, "x y"]
    blank_mse: float
    latents: Latents
    truth: Images
    images: Images


def specs() -> list[Spec]:
    """A 28 x 28 image with the middle 17 x 17 combinations withheld, for two population codes."""
    bump = Spec(
        task=BumpTask(28),
        holdout=Square(6, 22),
        encoding=Bump(),
        decoder=CNN(depth=4, width=32),
        sampling=Everything(),
        training=Training(steps=2500, batch=16),
    )
    return [bump, replace(bump, encoding=OneHot())]


def numbers(result: Result, samples: int = 4) -> Failure:
    """The figure's numbers; the samples lie on the hole's diagonal, from its edge to its middle and on."""
    task, parts = result.spec.task, split(result.spec.task, result.spec.holdout)
    truth = task.render(parts.latents)
    images = outputs(result.module, result.spec.encoding.encode(parts.latents, task.factors))
    sizes = tuple(factor.size for factor in task.factors)
    diagonal = (parts.mask & (parts.latents[:, 0] == parts.latents[:, 1])).nonzero().flatten()
    chosen = diagonal[[round(len(diagonal) * (place + 0.5) / samples - 0.5) for place in range(samples)]]
    return Failure(
        title=f"{type(result.spec.encoding).__name__} code",
        error_map=mse(images, truth).reshape(sizes),
        heldout_map=parts.mask.reshape(sizes),
        blank_mse=result.measures["error"]["blank_mse"],
        latents=parts.latents[chosen],
        truth=truth[chosen],
        images=images[chosen],
    )
