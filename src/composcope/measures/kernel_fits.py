"""Gaussian kernels fitted to outputs: factorized (one length per factor) and radial (one length for all).

Lengths are chosen on points that are neither fitted on nor scored. A radial kernel is the factorized one with equal
lengths, so the factorized fit can only be better where lengths are chosen, not where they are scored.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.factors import Factor
from composcope.measures.kernels import centred_gram, gram_matrix, product_kernel

Family = Literal["factorized", "radial"]
LENGTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


@dataclass(frozen=True)
class KernelFit:
    """A Gaussian kernel's lengths, their score on the points on which they were chosen, and on other points."""

    family: Family
    lengths: dict[str, float]
    chosen_score: float
    score: float


def fit_outputs(
    outputs: Float[Tensor, "n ..."],
    latents: Float[Tensor, "n factors"],
    heldout: Bool[Tensor, "n"],
    factors: Sequence[Factor],
    family: Family,
    generator: torch.Generator,
    lengths: Sequence[float] = LENGTHS,
    ridge: float = 1e-6,
) -> KernelFit:
    """R^2 on held-out points of f(t) = mean + sum_j alpha_j prod_i exp(-(t_i - t_ji)^2 / (2 l_i^2)) over seen t_j.

    - `outputs`: images or activations over all points; `lengths`: candidates, in steps of the grid.
    - `generator`: draws the quarter of the seen points on which lengths are chosen; then all seen points are fitted.

    Points at the same latents count once (their mean). Categories are compared for equality.
    """
    points, values = _unique(latents[~heldout].double(), outputs[~heldout].flatten(1).double())
    targets = outputs[heldout].flatten(1).double()
    if len(points) < 4 or len(targets) < 2:
        raise ValueError(
            f"a kernel fit needs 4 distinct seen and 2 held-out points; got {len(points)} and {len(targets)}"
        )
    positions = torch.cat([points, latents[heldout].double()])
    gram = gram_matrix(torch.cat([values, targets]) - values.mean(0))
    seen, scored_on = torch.arange(len(points)), torch.arange(len(points), len(positions))
    order = torch.randperm(len(points), generator=generator)
    choose, fit = order[: len(order) // 4], order[len(order) // 4 :]
    best, chosen = _best(
        lambda candidate: _regress(gram, positions, fit, choose, factors, candidate, ridge), factors, family, lengths
    )
    score = _regress(gram, positions, seen, scored_on, factors, chosen, ridge)
    return KernelFit(family, chosen, best, score)


def _best(
    score: Callable[[dict[str, float]], float], factors: Sequence[Factor], family: Family, lengths: Sequence[float]
) -> tuple[float, dict[str, float]]:
    """The best score and its lengths, by factor, in steps of the grid; categories have none.

    One length for all factors is tried first. From the best of these a factorized kernel changes one factor's length at
    a time, twice round, so that the cost grows with the number of factors and not with its power.
    """
    names = [factor.name for factor in factors if factor.kind != "categorical"]
    best, chosen = max(((score(c), c) for c in (dict.fromkeys(names, x) for x in lengths)), key=lambda pair: pair[0])
    for name in [*names, *names] if family == "factorized" and len(names) > 1 else ():
        for length in lengths:
            candidate = {**chosen, name: length}
            if length != chosen[name] and (candidate_score := score(candidate)) > best:
                best, chosen = candidate_score, candidate
    return best, chosen


def _width(factor: Factor, length: float) -> float:
    """The width w of `likeness`, whose exponent is d^2 / (4 w^2): the length in latent units / sqrt 2."""
    return length * factor.step / 2**0.5


def _unique(points: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Distinct points, and the mean of the values at each."""
    distinct, member = points.unique(dim=0, return_inverse=True)
    counts = torch.bincount(member, minlength=len(distinct))
    sums = torch.zeros(len(distinct), values.shape[1], dtype=values.dtype).index_add(0, member, values)
    return distinct, sums / counts[:, None]


def _regress(
    gram: Tensor,
    positions: Tensor,
    fit: Tensor,
    at: Tensor,
    factors: Sequence[Factor],
    lengths: dict[str, float],
    ridge: float,
) -> float:
    """R^2 at the points `at` of the kernel regression through the points `fit`, all features together.

    The prediction is B times the fitted values with rows of B summing to 1, so its error needs only the outputs' Gram
    matrix: tr(G_aa - 2 B G_fa + B G_ff B^T). That spares a solve for every feature.
    """
    widths = {f.name: _width(f, lengths[f.name]) for f in factors if f.name in lengths}
    kernel = product_kernel(positions[fit], factors, widths)
    kernel.diagonal().add_(ridge)
    across = product_kernel(positions[fit], factors, widths, others=positions[at])
    root, failed = torch.linalg.cholesky_ex(kernel)
    if failed:  # a Gaussian of the distance round a circle need not be positive definite
        return float("-inf")
    weights = torch.cholesky_solve(across, root).T
    weights = weights + (1 - weights.sum(1, keepdim=True)) / len(fit)  # what the kernel leaves goes to the mean
    modelled = weights @ gram[fit][:, fit]
    missed = gram[at, at].sum() - 2 * (weights * gram[at][:, fit]).sum() + (modelled * weights).sum()
    spread = centred_gram(gram[at][:, at]).trace()
    return (1 - missed / spread).item() if spread > 0 else float("-inf")
