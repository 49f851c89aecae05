"""What single units respond to: their maps over the latent grid, and whether those look like stripes or like bumps."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.factors import Factor
from composcope.measures.grid import on_grid
from composcope.measures.linear_factorization import Term, effect_variances


def tuning_maps(activations: Float[Tensor, "points ..."], factors: Sequence[Factor]) -> Float[Tensor, "units ..."]:
    """A unit's activation over the grid: (units, size of the first factor, size of the second, ...)."""
    return on_grid(activations.flatten(1), factors).movedim(-1, 0)


def tuning_marginals(maps: Float[Tensor, "units ..."]) -> tuple[Float[Tensor, "units _"], ...]:
    """m_i(t) = mean of the map over all factors but the i-th: one tuning curve per unit, for each factor.

    >>> [curve.tolist() for curve in tuning_marginals(torch.tensor([[[0.0, 2.0], [4.0, 6.0]]]))]
    [[[1.0, 5.0]], [[2.0, 4.0]]]
    """
    axes = range(1, maps.ndim)
    return tuple(maps.mean([other for other in axes if other != axis]) if maps.ndim > 2 else maps for axis in axes)


@dataclass(frozen=True)
class UnitScores:
    """Per unit: stripe-likeness and bump-likeness in [0, 1] (at most 1 together), and the main effects' shares.

    - `silent`: units that are constant over the grid; their scores are 0.
    - `effects`: the units' `effect_variances`, from which the scores were made.
    """

    stripe: Float[Tensor, "units"]
    bump: Float[Tensor, "units"]
    main: Float[Tensor, "units factors"]
    silent: Bool[Tensor, "units"]
    effects: dict[Term, Float[Tensor, "units"]]


def unit_scores(activations: Float[Tensor, "points ..."], factors: Sequence[Factor], chunk: int = 256) -> UnitScores:
    """bump = L (R2_product - R2_single) / (1 - R2_single),   stripe = R2_single (1 - bump).

    - R2_single: share of the map's variance that one factor alone explains (the largest main effect).
    - R2_product: squared correlation of the map with the product of its own marginals, background (median) removed.
    - L: whether the map is localised along every factor: 1 if each marginal is above half its peak on a quarter of the
      values or fewer, 0 if some is on a half or more, linear between; the least over factors.

    So a map of one factor scores (1, 0) whatever its profile, a localised bump (0, 1), an additive cross about
    (1/2, 0), noise about (0, 0). A dip counts as a bump.
    """
    parts = [_chunk_scores(part.double(), factors) for part in activations.flatten(1).split(chunk, dim=1)]
    stripe, bump, main, silent = (torch.cat(pieces) for pieces in zip(*(part[:4] for part in parts), strict=True))
    effects = {term: torch.cat([part[4][term] for part in parts]) for term in parts[0][4]}
    return UnitScores(stripe, bump, main, silent, effects)


def _chunk_scores(
    units: Float[Tensor, "points units"], factors: Sequence[Factor]
) -> tuple[Tensor, Tensor, Tensor, Tensor, dict[Term, Tensor]]:
    effects = effect_variances(units, factors)
    total = torch.stack(list(effects.values())).sum(0)
    silent = total <= 1e-14 * units.square().mean(0)
    safe = total.masked_fill(silent, 1.0)
    main = torch.stack([effects[(factor.name,)] for factor in factors], 1) / safe[:, None]
    main = main.masked_fill(silent[:, None], 0.0)
    single = main.amax(1)
    fitted, localised = _product_fit(tuning_maps(units, factors))
    gain = (fitted - single) / (1 - single).clamp(min=1e-9)
    bump = (localised * gain).clamp(0, 1).masked_fill(silent | (single > 1 - 1e-9), 0.0)
    return single * (1 - bump), bump, main, silent, effects


def _product_fit(maps: Float[Tensor, "units ..."]) -> tuple[Float[Tensor, "units"], Float[Tensor, "units"]]:
    """Squared correlation of each map with the product of its marginals, and how localised those are.

    Only the background is taken from the maps themselves: all else follows from their marginals and their square.
    """
    units, flat = len(maps), maps.flatten(1)
    points = flat.shape[1]
    background = _medians(flat)
    rises = flat.amax(1) - background >= background - flat.amin(1)
    sign = torch.where(rises, 1.0, -1.0).to(maps.dtype)
    marginals = [sign[:, None] * (curve - background[:, None]) for curve in tuning_marginals(maps)]
    moment = maps
    product_sum, product_square, localised = torch.ones(3, units, dtype=maps.dtype)
    for curve in marginals:
        # sums over the grid of map * product, product and product^2, one factor at a time: the product is never made
        moment = torch.bmm(curve[:, None], moment.reshape(units, curve.shape[1], -1))[:, 0]
        product_sum = product_sum * curve.sum(1)
        product_square = product_square * curve.square().sum(1)
        wide = (curve > curve.amax(1, keepdim=True) / 2).double().mean(1)
        localised = torch.minimum(localised, ((0.5 - wide) / 0.25).clamp(0, 1))
    mean = flat.mean(1)
    a, b = (flat - mean[:, None]).square().sum(1), product_square - product_sum.square() / points
    covariance = moment[:, 0] - mean * product_sum  # a shift or a sign of the map changes no squared correlation
    scale = a * b
    return torch.where(scale > 0, covariance.square() / scale.clamp(min=1e-300), 0.0), localised


def _medians(rows: Float[Tensor, "n values"]) -> Float[Tensor, "n"]:
    """`rows.median(1)`, several times faster; NaN where a row has one.

    Where more than half of a row is its least value, as after a ReLU, that is its median. NumPy's selection, which is
    vectorised but slow where many values are equal, does the others.
    """
    middle = (rows.shape[1] - 1) // 2
    medians = rows.amin(1)
    others = (rows == medians[:, None]).sum(1) <= middle
    medians[others] = torch.from_numpy(np.partition(rows[others].numpy(), middle, axis=1)[:, middle])
    return medians.masked_fill(rows.amax(1).isnan(), torch.nan)
