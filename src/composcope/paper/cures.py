"""The cures: what composes where bumps alone do not. Stripes in the data, or factors rendered in pixel space."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from composcope.decoders.cnn import CNN
from composcope.decoders.lowrank import LowRank
from composcope.decoders.pixelwise import Pixelwise
from composcope.encodings import OneHot
from composcope.experiments.run import Result, outputs
from composcope.experiments.spec import Spec
from composcope.factors import Latents
from composcope.holdouts import Corner, Square, split
from composcope.penalties import Entropy, Variance
from composcope.sampling import Everything, Stripes
from composcope.tasks.base import Images
from composcope.tasks.bump import BumpTask
from composcope.training import Training

HOLES = {16: Square(4, 11), 28: Square(6, 22)}


@dataclass(frozen=True)
class Samples:
    """Held-out images of one run, and the truth."""

    latents: Latents
    truth: Images
    images: Images


def specs(size: int = 16, seed: int = 0) -> dict[str, dict[str, Spec]]:
    """The runs by group and name; a group shares its task and holdout, and its first run is the one that fails."""
    stripes = Spec(
        task=BumpTask(size),
        holdout=HOLES[size],
        encoding=OneHot(),
        decoder=CNN(depth=3, width=24),
        sampling=Stripes(stripes=0, bumps=100),
        training=Training(steps=2000, batch=16),
        seed=seed,
    )
    lowrank = Spec(
        task=BumpTask(size, sigma=1.5, polarity="bright"),
        holdout=Corner(round(0.375 * size)),
        encoding=OneHot(),
        decoder=LowRank(),
        sampling=Everything(),
        training=Training(epochs=600, weight_decay=1e-4),
        seed=seed,
    )
    pixelwise = replace(
        lowrank,
        task=BumpTask(size, polarity="bright"),
        holdout=Corner(size // 2),
        decoder=Pixelwise(depth=2, width=128),
        training=Training(steps=3000, batch=16, weight_decay=1e-4),
    )
    return {
        "stripes": {
            "100 bumps": stripes,
            "all seen bumps": replace(stripes, sampling=Everything()),
            "stripes only": replace(stripes, sampling=Stripes()),
            "stripes + 100 bumps": replace(stripes, sampling=Stripes(bumps=100)),
        },
        "low rank": {
            "low rank, no penalty": lowrank,
            "low rank, both penalties": replace(lowrank, penalties=(Entropy(0.1), Variance(0.01))),
        },
        "pixel-wise": {
            "CNN, all seen bumps": replace(pixelwise, decoder=CNN(depth=3, width=24), training=stripes.training),
            "pixel-wise": pixelwise,
        },
    }


def samples(result: Result, count: int = 5) -> Samples:
    """Held-out combinations spread evenly over the hole, the same for every run that shares task and holdout."""
    task, parts = result.spec.task, split(result.spec.task, result.spec.holdout)
    order = torch.randperm(len(parts.heldout), generator=torch.Generator().manual_seed(1))[:count]
    latents = parts.heldout[order.sort().values]
    images = outputs(result.module, result.spec.encoding.encode(latents, task.factors))
    return Samples(latents, task.render(latents), images)


def table(results: dict[str, Sequence[Result]]) -> list[dict[str, object]]:
    """One row a run's name: means over seeds of the errors, and the least accuracy among them."""
    rows: list[dict[str, object]] = []
    for name, runs in results.items():
        errors = [run.measures["error"] for run in runs]
        mean = {key: sum(error[key] for error in errors) / len(errors) for key in errors[0]}
        rows.append(
            {
                "run": name,
                "seeds": len(runs),
                "seen MSE": mean["seen_mse"],
                "held-out MSE": mean["heldout_mse"],
                "blank MSE": mean["blank_mse"],
                "accuracy": mean["accuracy"],
                "worst seed": min(error["accuracy"] for error in errors),
                "best seed": max(error["accuracy"] for error in errors),
            }
        )
    return rows
