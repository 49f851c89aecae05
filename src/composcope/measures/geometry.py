"""The geometry that a layer induces on latent space: metric tensor, volume element, factorization."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.factors import Factor
from composcope.measures.grid import on_grid, wraps

Metric = Float[Tensor, "points axes axes"]
# Volumes below this are rounding of single-precision activations, and their logarithms would dominate every mean.
FLOOR = 1e-6


def differentiable(factors: Sequence[Factor]) -> tuple[int, ...]:
    """Columns of the factors along which there is a derivative: continuous or circular, with more than one value."""
    return tuple(i for i, factor in enumerate(factors) if factor.kind != "categorical" and factor.size > 1)


def metric_tensor(jacobian: Float[Tensor, "points features axes"]) -> Metric:
    """g = J^T J at every point, g_ij = sum_a (da/dt_i)(da/dt_j).

    A sum over features: the metrics of a layer's features taken a chunk at a time add up to the layer's.

    >>> metric_tensor(torch.tensor([[[1.0, 0.0], [2.0, 1.0]]])).tolist()
    [[[5.0, 2.0], [2.0, 1.0]]]
    """
    jacobian = jacobian.double()
    return jacobian.mT @ jacobian


def grid_jacobian(
    activations: Float[Tensor, "points ..."], factors: Sequence[Factor]
) -> Float[Tensor, "points features axes"]:
    """da/dt_i by differences on the grid: central inside, one-sided at the ends, wrapping for circular factors.

    The last axis holds the factors of `differentiable`. On a coarse grid differences smooth what is sharp: for a bump
    of width 1 on the integers, exact derivatives differ by about half in norm.
    """
    table = on_grid(activations.flatten(1), factors)
    axes = [_difference(table, axis, factors[axis]) for axis in differentiable(factors)]
    if not axes:
        return activations.new_zeros(len(activations), activations[0].numel(), 0)
    return torch.stack([axis.reshape(len(activations), -1) for axis in axes], -1)


def _difference(table: Tensor, axis: int, factor: Factor) -> Tensor:
    """The derivative along one axis of a table over the grid, second order inside also where steps differ."""
    positions = torch.tensor(factor.values, dtype=torch.float64)
    if not wraps(factor):
        return torch.gradient(table, spacing=(positions.to(table.dtype),), dim=axis)[0]
    period = torch.tensor([factor.period], dtype=torch.float64)
    positions = torch.cat([positions[-1:] - period, positions, positions[:1] + period])
    size = factor.size
    around = torch.cat([table.narrow(axis, size - 1, 1), table, table.narrow(axis, 0, 1)], axis)
    return torch.gradient(around, spacing=(positions.to(table.dtype),), dim=axis)[0].narrow(axis, 1, size)


def grid_metric(activations: Float[Tensor, "points ..."], factors: Sequence[Factor], chunk: int = 512) -> Metric:
    """g = J^T J with J from `grid_jacobian`, `chunk` features at a time so that memory stays bounded."""
    parts = activations.flatten(1).split(chunk, dim=1)
    metric = metric_tensor(grid_jacobian(parts[0], factors))
    for part in parts[1:]:
        metric = metric + metric_tensor(grid_jacobian(part, factors))
    return metric


def volume_element(metric: Metric) -> Float[Tensor, "points"]:
    """dv = sqrt(det g): the volume, in the layer's space, of a small cell of latent space."""
    return torch.linalg.det(metric.double()).clamp(min=0).sqrt()


@dataclass(frozen=True)
class VolumeSummary:
    """Means of log10 dv over seen and held-out points and `gap`, held-out minus seen; None where there are no points.

    Volumes below `floor` were replaced by `floor`; `floored` counts them.
    """

    seen: float | None
    heldout: float | None
    gap: float | None
    floor: float
    floored: int


def volume_summary(
    volume: Float[Tensor, "points"], heldout: Bool[Tensor, "points"], floor: float = FLOOR
) -> VolumeSummary:
    """mean log10 max(dv, floor) over the seen points, over the held-out points, and the second minus the first.

    >>> volume_summary(torch.tensor([1.0, 1.0, 100.0]), torch.tensor([False, False, True])).gap
    2.0
    """
    logs = volume.double().clamp(min=floor).log10()
    seen = logs[~heldout].mean().item() if (~heldout).any() else None
    inside = logs[heldout].mean().item() if heldout.any() else None
    gap = inside - seen if seen is not None and inside is not None else None
    return VolumeSummary(seen, inside, gap, floor, int((volume < floor).sum()))


@dataclass(frozen=True)
class Factorization:
    """Both averages of 1 - |g_xy| / (|g_xx| + |g_yy|), in [0.5, 1], and how many points had to be left out.

    Both are None with fewer than two factors to differentiate by, or if no point is left.
    """

    mean_of_ratios: float | None
    ratio_of_means: float | None
    left_out: int


def factorization_map(metric: Metric) -> Float[Tensor, "points"]:
    """1 - |g_ij| / (|g_ii| + |g_jj|) at each point, the mean over pairs i < j; NaN where no pair has g_ii + g_jj > 0.

    A pair in which both factors leave the layer as it is has no ratio, and the point's mean is over its other pairs.
    """
    ratios = [1 - metric[:, i, j].abs() / _scale(metric, i, j) for i, j in _pairs(metric)]
    return torch.stack(ratios, -1).nanmean(-1) if ratios else torch.full_like(metric[:, :1].sum((1, 2)), torch.nan)


def factorization(metric: Metric) -> Factorization:
    """Mean over the grid of 1 - |g_xy| / (|g_xx| + |g_yy|)   (paper eq. 7), and the same of the means over the grid.

    The first follows the paper's text; the second, 1 - mean|g_xy| / (mean|g_xx| + mean|g_yy|), its authors' code. For N
    factors each is the mean over pairs. Points with g_xx = g_yy = 0 have no ratio: left out of the first and counted.
    """
    metric = metric.double()
    if not _pairs(metric):
        return Factorization(None, None, 0)
    points = factorization_map(metric)
    defined = ~points.isnan()
    if not defined.any():
        return Factorization(None, None, len(points))
    means = metric.abs().mean(0)
    ratios = torch.stack([1 - means[i, j] / _scale(means[None], i, j)[0] for i, j in _pairs(metric)])
    return Factorization(points[defined].mean().item(), ratios.nanmean().item(), int((~defined).sum()))


def _pairs(metric: Tensor) -> list[tuple[int, int]]:
    return list(combinations(range(metric.shape[-1]), 2))


def _scale(metric: Tensor, i: int, j: int) -> Tensor:
    """|g_ii| + |g_jj|, NaN where that is 0."""
    scale = metric[:, i, i].abs() + metric[:, j, j].abs()
    return scale.masked_fill(scale == 0, torch.nan)
