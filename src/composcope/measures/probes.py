"""Whether a linear readout recovers the factors from a layer's activations, also on points it was not fitted on.

A continuous factor is read out as its value, a circular one as (cos, sin), each scored by R^2; a categorical one as
one-hot, scored by the share of points whose largest readout is the right category. A layer wider than the points fits
any of them perfectly on its own points, so the in-sample score is shown only because the paper uses it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from composcope.factors import Factor
from composcope.measures.grid import grid_index
from composcope.measures.kernels import Spectrum, centred_gram, centred_spectrum, gram_matrix

# From none, for exact codes, to one that leaves hardly more than the mean; relative to the largest variance.
RIDGES = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
# Of the cross-validation: each fit has four fifths of the points.
FOLDS = 5
CUTOFF = 1e-13
"""Directions whose share of the largest variance is below this are rounding, and dropped."""


@dataclass(frozen=True)
class ProbeScore:
    """One factor's readout from one layer: R^2 (continuous, circular) or accuracy (categorical), as `score` says.

    - `in_sample`: plain least squares, scored on the points it was fitted on.
    - `cross_validated`: each point predicted by a fit to the other folds.
    - `heldout`: fitted on the seen points, scored on the held-out points.

    None where the factor does not vary among the points, or there are none.
    """

    score: str
    in_sample: float | None
    cross_validated: float | None
    heldout: float | None


def linear_probes(
    activations: Float[Tensor, "points ..."],
    latents: Float[Tensor, "points factors"],
    factors: Sequence[Factor],
    heldout: Bool[Tensor, "points"],
    seed: int = 0,
) -> dict[str, ProbeScore]:
    """R^2 = 1 - sum (t - t_hat)^2 / sum (t - mean t)^2, with t_hat = W a + b, for every factor.

    The ridge of each fit is the best of `RIDGES` (times the largest variance of a direction) by leave-one-out error on
    the points of that fit, never on those scored. Folds are fixed by `seed`. Cost: one product of the activations with
    themselves, then work in the smaller of points and features.

    >>> x = [Factor("x", range(6))]
    >>> latents = torch.arange(6.0)[:, None]
    >>> linear_probes(3 * latents + 1, latents, x, heldout=latents[:, 0] > 3)["x"].heldout
    1.0
    """
    features = activations.flatten(1) - activations.flatten(1).mean(0)
    if features.shape[1] > len(features):
        return probes_from_gram(gram_matrix(features), latents, factors, heldout, seed)
    return _probes(FeatureFits(features.double()), len(features), latents, factors, heldout, seed)


def probes_from_gram(
    gram: Float[Tensor, "points points"],
    latents: Float[Tensor, "points factors"],
    factors: Sequence[Factor],
    heldout: Bool[Tensor, "points"],
    seed: int = 0,
    spectrum: Spectrum | None = None,
) -> dict[str, ProbeScore]:
    """The same as `linear_probes` from `gram_matrix(activations)`, which adds up over chunks of a very wide layer.

    Only distances between points matter to a linear readout with a ridge: any activations with this Gram matrix do.
    `spectrum` is `centred_spectrum(gram)`, if it is known already.
    """
    fits = GramFits(centred_gram(gram), spectrum or centred_spectrum(gram))
    return _probes(fits, len(gram), latents, factors, heldout, seed)


class Fit(NamedTuple):
    """Centred features as U S V^T: U and S^2 of the points fitted on, and (features at others - mean) V S."""

    left: Float[Tensor, "n directions"]
    variances: Float[Tensor, "directions"]
    projected: Float[Tensor, "m directions"]


Fits = Callable[[Tensor, Tensor], Fit]
"""(mask of the points to fit on, mask of the points to predict) -> Fit."""


@dataclass(frozen=True)
class GramFits:
    """Fits from a centred Gram matrix alone: V S = features^T U, so a projection is a product of the matrix with U."""

    gram: Float[Tensor, "points points"]
    spectrum: Spectrum

    def __call__(self, train: Bool[Tensor, "points"], at: Bool[Tensor, "points"]) -> Fit:
        if train.all():
            variances, left = _kept(self.spectrum)
            return Fit(left, variances, left[at] * variances)
        inside, cross = self.gram[train][:, train], self.gram[at][:, train]
        cross = cross - cross.mean(1, keepdim=True) - inside.mean(0) + inside.mean()
        variances, left = _kept(centred_spectrum(inside))
        return Fit(left, variances, cross @ left)


@dataclass(frozen=True)
class FeatureFits:
    """Fits from features, of which there are not more than points."""

    features: Float[Tensor, "points features"]

    def __call__(self, train: Bool[Tensor, "points"], at: Bool[Tensor, "points"]) -> Fit:
        centre = self.features[train].mean(0)
        features = self.features[train] - centre
        if features.shape[1] > features.shape[0]:
            gram = features @ features.T
            fits = GramFits(gram, centred_spectrum(gram))
            left, variances, _ = fits(*[torch.ones(len(features), dtype=torch.bool)] * 2)
            return Fit(left, variances, (self.features[at] - centre) @ (features.T @ left))
        variances, right = _kept(Spectrum(*torch.linalg.eigh(features.T @ features)))
        scale = variances.sqrt()
        return Fit(features @ right / scale, variances, (self.features[at] - centre) @ right * scale)


def _kept(spectrum: Spectrum) -> Spectrum:
    """The directions that are more than rounding."""
    kept = spectrum.values > CUTOFF * spectrum.values[-1].clamp(min=0)
    return Spectrum(spectrum.values[kept], spectrum.vectors[:, kept])


def _probes(
    fits: Fits, points: int, latents: Tensor, factors: Sequence[Factor], heldout: Tensor, seed: int
) -> dict[str, ProbeScore]:
    if len(latents) != points or len(heldout) != points:
        raise ValueError(f"{points} activations, {len(latents)} latents and {len(heldout)} masks do not match")
    parts = [_targets(latents[:, axis], factor) for axis, factor in enumerate(factors)]
    targets = torch.cat(parts, 1)
    everything = torch.ones_like(heldout)
    own = _readout(fits(everything, everything), targets, (0.0,))
    fold = _fold_of_each(points, min(FOLDS, points), seed)
    crossed = torch.zeros_like(targets)
    for k in fold.unique():
        crossed[fold == k] = _readout(fits(fold != k, fold == k), targets[fold != k], RIDGES)
    split = heldout.any() and (~heldout).sum() > 1
    beyond = _readout(fits(~heldout, heldout), targets[~heldout], RIDGES) if split else targets[:0]
    scores, start = {}, 0
    for factor, part in zip(factors, parts, strict=True):
        columns = slice(start, start + part.shape[1])
        start += part.shape[1]
        scores[factor.name] = ProbeScore(
            "accuracy" if factor.kind == "categorical" else "R2",
            _score(part, own[:, columns], factor),
            _score(part, crossed[:, columns], factor),
            _score(part[heldout], beyond[:, columns], factor) if split else None,
        )
    return scores


def _targets(latents: Float[Tensor, "points"], factor: Factor) -> Float[Tensor, "points columns"]:
    """What a linear readout of the factor should give."""
    if latents.isnan().any():
        raise ValueError(f"factor {factor.name!r} is absent from some points; a probe needs it everywhere")
    if factor.kind == "categorical":
        index = grid_index(latents[:, None], [factor])[:, 0]
        if (index < 0).any():
            raise ValueError(f"some points' {factor.name} is none of {factor.describe()}")
        return torch.nn.functional.one_hot(index, factor.size).double()
    if factor.period is not None:
        angle = 2 * math.pi * latents.double() / factor.period
        return torch.stack([angle.cos(), angle.sin()], 1)
    return latents.double()[:, None]


def _score(truth: Tensor, predicted: Tensor, factor: Factor) -> float | None:
    if len(truth) == 0:
        return None
    if factor.kind == "categorical":
        return (truth.argmax(1) == predicted.argmax(1)).double().mean().item()
    if (truth - truth[0]).abs().max() == 0:
        return None
    return (1 - (truth - predicted).square().sum() / (truth - truth.mean(0)).square().sum()).item()


def _fold_of_each(points: int, folds: int, seed: int) -> Int[Tensor, "points"]:
    order = torch.randperm(points, generator=torch.Generator().manual_seed(seed))
    fold = torch.empty(points, dtype=torch.long)
    fold[order] = torch.arange(points) % folds
    return fold


def _readout(fit: Fit, targets: Float[Tensor, "n columns"], ridges: Sequence[float]) -> Float[Tensor, "m columns"]:
    """Predictions by the linear fit whose ridge has the least leave-one-out error, chosen per column.

    With features = U S V^T the fit is V S / (S^2 + ridge) U^T targets. The intercept is not penalised.
    """
    left, variances, projected = fit
    mean = targets.mean(0)
    if len(variances) == 0:
        return mean.expand(len(projected), -1)
    spread = targets - mean
    inner = left.T @ spread
    penalties = torch.tensor(ridges, dtype=variances.dtype) * variances.max()
    best = _left_out(fit, spread, inner, penalties).argmin(0)
    return mean + projected @ (inner / (variances[:, None] + penalties[best]))


def _left_out(fit: Fit, spread: Tensor, inner: Tensor, penalties: Tensor) -> Float[Tensor, "ridges columns"]:
    """Mean squared error of each point predicted without it: residual / (1 - leverage), in closed form.

    Where a point has no freedom left (as many directions as points and no ridge) it has no such error: infinite.
    """
    left, variances, _ = fit
    shrunk = penalties / (variances[:, None] + penalties)
    outside = spread - left @ inner
    weighted = (shrunk[:, :, None] * inner[:, None]).flatten(1)
    residual = outside[:, None] + (left @ weighted).unflatten(1, (len(penalties), -1))
    squares = left.square()
    freedom = (1 - 1 / len(left) - squares.sum(1)).clamp(min=0)[:, None] + squares @ shrunk
    errors = (residual / freedom.clamp(min=1e-300)[:, :, None]).square().mean(0)
    errors[(freedom <= 1e-9).any(0) & (penalties == 0)] = torch.inf
    return errors
