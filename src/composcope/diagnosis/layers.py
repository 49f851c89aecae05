"""What is measured of every layer: geometry, probes, tuning, linear factorization, principal components."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.activations import Layer, Part, Subject
from composcope.factors import Factor
from composcope.measures.geometry import (
    Factorization,
    VolumeSummary,
    differentiable,
    factorization,
    grid_metric,
    volume_element,
    volume_summary,
)
from composcope.measures.gram import centred_gram, gram_matrix
from composcope.measures.linear_factorization import Term, VarianceShares, effect_variances, shares_of
from composcope.measures.manifold import Embedding, pca_from_gram
from composcope.measures.probes import ProbeScore, probes_from_gram
from composcope.measures.tuning import tuning_maps, unit_scores

Method = Literal["exact", "differences"]
Metric = Float[Tensor, "points axes axes"]
SHOWN_UNITS = 16


@dataclass(frozen=True)
class Geometry:
    """A layer's metric tensor over the points, along the named factors, and what follows from it.

    - `method`: "exact" by forward-mode differentiation, or "differences" on the grid.
    """

    method: str
    axes: tuple[str, ...]
    metric: Metric
    volume: Float[Tensor, "points"]
    volumes: VolumeSummary
    factorization: Factorization


@dataclass(frozen=True)
class Tuning:
    """Stripe- and bump-likeness of every unit, their means over units that respond, and the liveliest units' maps.

    - `shown`: the units of largest variance, by number; `maps`: their activations over the grid, (units, x, y, ...).
    """

    stripe: Float[Tensor, "units"]
    bump: Float[Tensor, "units"]
    mean_stripe: float | None
    mean_bump: float | None
    silent: int
    shown: Tensor
    maps: Float[Tensor, "shown ..."]


@dataclass(frozen=True)
class LayerDiagnosis:
    """One layer's numbers; None where they could not be had, for which the diagnosis has a note.

    - `differences`: the geometry by differences on the grid, whatever `geometry` is made from.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    geometry: Geometry | None
    probe: dict[str, ProbeScore] | None
    tuning: Tuning | None
    linear_factorization: VarianceShares | None
    manifold: Embedding | None
    differences: Geometry | None = None


@dataclass(frozen=True)
class Points:
    """The points measured: their latents, which are held out, whether they are the factors' whole grid, in its order.

    - `sample`: the points on which all pairs are compared, fewer than all where there are many.
    """

    latents: Float[Tensor, "n factors"]
    heldout: Bool[Tensor, "n"]
    factors: tuple[Factor, ...]
    full: bool
    sample: Tensor

    @property
    def whole(self) -> bool:
        """Whether the sample is everything."""
        return len(self.sample) == len(self.latents)


def diagnose_layers(
    subject: Subject,
    codes: Tensor,
    points: Points,
    tangents: Tensor | None,
    memory: int = 512 * 2**20,
    seed: int = 0,
    on_step: Callable[[], None] = lambda: None,
) -> dict[str, LayerDiagnosis]:
    """Every layer's measures in two passes over the points: derivatives, then values.

    - `tangents`: the codes' derivatives, for exact geometry; without them it is by differences on the grid.
    """
    exact = {} if tangents is None else subject.metrics(codes, tangents, on_step)
    gathered: dict[str, Gathered] = {}
    found = {}
    for part in subject.parts(codes, memory):
        name = part.layer.name
        gathered.setdefault(name, Gathered(part.layer, points, exact.get(name), memory)).add(part)
        if part.last:
            found[name] = gathered.pop(name).finished(seed)
            on_step()
        del part  # or it would be held while the next are made
    return found


class Gathered:
    """A layer's sums, as its parts come in."""

    def __init__(self, layer: Layer, points: Points, exact: Metric | None, memory: int) -> None:
        axes = len(differentiable(points.factors))
        self.units = max(64, min(4096, memory // (32 * len(points.latents))))
        self.layer, self.points, self.exact = layer, points, exact
        self.gram = torch.zeros(len(points.sample), len(points.sample), dtype=torch.float64)
        self.effects: dict[Term, float] = {}
        self.scores: list[tuple[Tensor, Tensor, Tensor]] = []
        self.shown = torch.zeros(0), torch.zeros(0).long(), torch.zeros(0, len(points.latents))
        wanted = points.full and axes > 0
        self.metric = torch.zeros(len(points.latents), axes, axes, dtype=torch.float64) if wanted else None

    def add(self, part: Part) -> None:
        self.gram += gram_matrix(part.values[self.points.sample])
        if self.metric is not None:
            self.metric += grid_metric(part.values, self.points.factors)
        if not self.points.full:
            return
        for start in range(0, part.values.shape[1], self.units):
            self._add_units(part.values[:, start : start + self.units], part.start + start)

    def _add_units(self, units: Tensor, start: int) -> None:
        """Effects and scores of some units, and the liveliest so far."""
        for term, variances in effect_variances(units, self.points.factors).items():
            self.effects[term] = self.effects.get(term, 0.0) + variances.sum().item()
        scores = unit_scores(units, self.points.factors)
        self.scores.append((scores.stripe.float(), scores.bump.float(), scores.silent))
        spread = torch.cat([self.shown[0], units.var(0)])
        numbers = torch.cat([self.shown[1], torch.arange(start, start + units.shape[1])])
        best = spread.nan_to_num(-1).topk(min(SHOWN_UNITS, len(spread))).indices
        kept = len(self.shown[0])
        best = torch.cat([best[best < kept], best[best >= kept]])
        maps = [self.shown[2][best[best < kept]], units[:, best[best >= kept] - kept].T]
        self.shown = spread[best], numbers[best], torch.cat(maps)

    def finished(self, seed: int) -> LayerDiagnosis:
        points, layer = self.points, self.layer
        known = bool(self.gram.isfinite().all())
        varies = known and bool(centred_gram(self.gram).trace() > 1e-20 * self.gram.trace())
        probe = manifold = None
        if varies and len(points.sample) > 2:
            rows = points.sample
            probe = probes_from_gram(self.gram, points.latents[rows], points.factors, points.heldout[rows], seed=seed)
            manifold = pca_from_gram(self.gram)
        return LayerDiagnosis(
            layer.name,
            layer.kind,
            layer.shape,
            self._geometry(),
            probe,
            self._tuning() if known and self.scores else None,
            shares_of(self.effects) if varies and self.effects else None,
            manifold,
            None if self.metric is None else self._measured("differences", self.metric),
        )

    def _geometry(self) -> Geometry | None:
        """The exact metric, unless the layer moves along an axis of which its derivative knows nothing."""
        exact, method, metric = self.exact, "exact", self.exact
        if self.metric is not None:
            # An exact metric that is 0 along an axis everywhere is suspect: the module may step, not stand still.
            moves = self.metric.diagonal(dim1=1, dim2=2).sum(0) > 0
            blind = exact is None or not exact.isfinite().all()
            if exact is None or blind or (moves & (exact.diagonal(dim1=1, dim2=2).sum(0) == 0)).any():
                method, metric = "differences", self.metric
        return None if metric is None or metric.shape[-1] == 0 else self._measured(method, metric)

    def _measured(self, method: str, metric: Metric) -> Geometry:
        factors = self.points.factors
        volume = volume_element(metric)
        names = tuple(factors[axis].name for axis in differentiable(factors))
        return Geometry(
            method, names, metric, volume, volume_summary(volume, self.points.heldout), factorization(metric)
        )

    def _tuning(self) -> Tuning:
        stripe, bump, silent = (torch.cat(pieces) for pieces in zip(*self.scores, strict=True))
        active = ~silent
        mean_stripe, mean_bump = (s[active].double().mean().item() if active.any() else None for s in (stripe, bump))
        _, shown, maps = self.shown
        maps = tuning_maps(maps.T, self.points.factors)
        return Tuning(stripe, bump, mean_stripe, mean_bump, int(silent.sum()), shown, maps)


def sampled(heldout: Bool[Tensor, "n"], most: int, generator: torch.Generator) -> Tensor:
    """At most `most` of the points, in order, seen and held-out in their proportion."""
    if len(heldout) <= most:
        return torch.arange(len(heldout))
    chosen = []
    for side in (heldout, ~heldout):
        rows = side.nonzero()[:, 0]
        count = min(len(rows), max(1, round(most * len(rows) / len(heldout)))) if len(rows) else 0
        chosen.append(rows[torch.randperm(len(rows), generator=generator)[:count]])
    return torch.cat(chosen).sort().values


def factor_columns(codes: Tensor, latents: Tensor, factors: Sequence[Factor]) -> list[Tensor] | None:
    """Which code units tell which factor: those that are the same wherever its value is. None if some tell several."""
    left = (codes != codes[0]).any(0)
    columns = []
    for axis in range(len(factors)):
        values, member = latents[:, axis].unique(return_inverse=True)
        first = torch.full((len(values),), len(codes)).scatter_reduce(0, member, torch.arange(len(codes)), "amin")
        own = left & (codes == codes[first[member]]).all(0)
        columns.append(own)
        left = left & ~own
    return None if left.any() else columns
