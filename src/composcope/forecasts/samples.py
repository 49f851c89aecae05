"""The training set as a regression sees it: scaled codes, foregrounds, and how often each occurs."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.holdouts import split
from composcope.randomness import generator
from composcope.runs.spec import Spec

CHUNK = 1024  # images at a time
# Of more distinct samples, as continuous factors give, so many are drawn: regressions with one weight per code unit
# need no more, and a forecast has to be cheap.
MOST_SAMPLES = 2000
# Combinations whose codes give the scale.
MOST_SCALED = 20_000


@dataclass(frozen=True)
class Samples:
    """Distinct training samples, at most `MOST_SAMPLES`.

    - `codes`: divided by `scale`, s^2 = mean |code|^2 / number of factors over the grid, so that one factor's part has
      a mean square of 1; `counts`: how often each is in the training set.
    - `foregrounds`: the object on a background of zero, one row of pixels per sample.
    """

    codes: Float[Tensor, "n code"]
    foregrounds: Float[Tensor, "n pixels"]
    counts: Float[Tensor, "n"]
    scale: float


def training_samples(spec: Spec) -> Samples:
    """What a run of this spec is trained on, in double precision."""
    task, encoding = spec.task, spec.encoding
    latents = spec.sampling.sample(task, spec.holdout, generator(spec.seed, "sampling"))
    codes, first, counts = _distinct(encoding.encode(latents, task.factors).double())
    if len(codes) > MOST_SAMPLES:
        drawn = torch.randperm(len(codes), generator=generator(spec.seed, "forecast"))[:MOST_SAMPLES].sort().values
        codes, first, counts = codes[drawn], first[drawn], counts[drawn] * (counts.sum() / counts[drawn].sum())
    chosen = latents[first]
    scale = _scale(spec)
    foregrounds = torch.cat([task.foreground(task.render(part)).double().flatten(1) for part in chosen.split(CHUNK)])
    return Samples(codes / scale, foregrounds, counts, scale)


def _scale(spec: Spec) -> float:
    """s, from the codes of all combinations, or of some of very many."""
    latents = split(spec.task, spec.holdout).latents
    if len(latents) > MOST_SCALED:
        latents = latents[torch.randperm(len(latents), generator=generator(spec.seed, "scale"))[:MOST_SCALED]]
    codes = spec.encoding.encode(latents, spec.task.factors).double()
    return (codes.square().sum(1).mean() / len(spec.task.factors)).sqrt().clamp(min=1e-12).item()


def _distinct(codes: Float[Tensor, "n code"]) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct rows, the first sample that has each, and how many do."""
    rows, member, counts = codes.unique(dim=0, return_inverse=True, return_counts=True)
    first = torch.full((len(rows),), len(codes)).scatter_reduce(0, member, torch.arange(len(codes)), "amin")
    return rows, first, counts.double()


def fit_score(predicted: Float[Tensor, "n pixels"], samples: Samples) -> float:
    """R^2 = 1 - sum |y - f|^2 / sum |y - mean y|^2 over the training set; 0 where all images are the same."""
    weights = samples.counts[:, None]
    mean = (weights * samples.foregrounds).sum(0) / weights.sum()
    spread = (weights * (samples.foregrounds - mean).square()).sum().item()
    error = (weights * (samples.foregrounds - predicted).square()).sum().item()
    return 1 - error / spread if spread > 0 else 0.0
