"""What is measured of each layer: geometry, probes, tuning, linear factorization, principal components."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.func import jvp

from composcope.activations import Layer, Part, Subject
from composcope.diagnosis.points import Points
from composcope.factors import Factor, Latents
from composcope.measures.geometry import (
    Factorization,
    VolumeSummary,
    differentiable,
    factorization,
    grid_metric,
    metric_tensor,
    volume_element,
    volume_summary,
)
from composcope.measures.kernels import centred_gram, centred_spectrum, gram_matrix
from composcope.measures.linear_factorization import Term, VarianceShares, shares_of
from composcope.measures.manifold import Curvature, Embedding, curvature, pca_from_gram
from composcope.measures.probes import ProbeScore, probes_from_gram
from composcope.measures.tuning import tuning_maps, unit_scores
from composcope.tasks.base import Task

Method = Literal["exact", "differences"]
Metric = Float[Tensor, "points axes axes"]
# Units per layer whose maps are kept: enough to look at, small enough to store for every run.
SHOWN_UNITS = 16
# Numbers of one layer (points times units) from which tuning and linear factorization are computed, at most. Of larger
# layers a sample of the units is taken, of fewer numbers, which is still hundreds of units: few enough that a pass over
# the points records those of all layers.
MAX_SCORED, SAMPLE_SCORED = 50_000_000, 5_000_000
# Points at which derivatives are taken, at most: all of a grid of two factors, a sample of ten thousand combinations.
MAX_DIFFERENTIATED = 4096


@dataclass(frozen=True)
class Geometry:
    """A layer's metric tensor over the points (of a large grid a sample), along the factors `axes`, and what follows.

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
    """Stripe- and bump-likeness of every unit, their means over units that respond, and the most variable units' maps.

    - `shown`: indices of the units of largest variance; `maps`: their activations over the grid, (units, x, y, ...).
    - `silent`: how many units are constant over the grid.
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
    """One layer's numbers; None where they could not be measured, for which the diagnosis has a note.

    - `more`: quantities that have no field of their own, by key (see `diagnosis/quantities.py`).
    - `differences`: the geometry by differences on the grid, if it was requested beside the exact one.
    - `curvature`: of the layer's manifold along each factor that has distances.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    geometry: Geometry | None
    probe: dict[str, ProbeScore] | None
    tuning: Tuning | None
    linear_factorization: VarianceShares | None
    manifold: Embedding | None
    more: dict[str, Any] = field(default_factory=dict)
    differences: Geometry | None = None
    curvature: Curvature | None = None


def geometry_of(metric: Metric, method: Method, factors: Sequence[Factor], heldout: Bool[Tensor, "points"]) -> Geometry:
    """The volume element and the factorization of a metric over the points."""
    axes = tuple(factors[axis].name for axis in differentiable(factors))
    volume = volume_element(metric)
    return Geometry(method, axes, metric, volume, volume_summary(volume, heldout), factorization(metric))


def true_geometry(task: Task, latents: Latents, heldout: Bool[Tensor, "n"]) -> Geometry:
    """The geometry of a perfect decoder's image, exact: `task.render` is differentiated along each factor."""
    axes = differentiable(task.factors)
    slopes = []
    for axis in axes:
        along = torch.zeros_like(latents)
        along[:, axis] = 1
        slopes.append(jvp(task.render, (latents,), (along,))[1].flatten(1))
    return geometry_of(metric_tensor(torch.stack(slopes, -1)), "exact", task.factors, heldout)


def diagnose_layers(
    subject: Subject,
    codes: Tensor,
    points: Points,
    tangents: Tensor | None,
    memory: int = 512 * 2**20,
    seed: int = 0,
    on_step: Callable[[], None] = lambda: None,
    both: bool = False,
) -> dict[str, LayerDiagnosis]:
    """Every layer's measures: from derivatives, and from values.

    - `tangents`: the codes' derivatives, for exact geometry; without them it is by differences on the grid.
    - `both`: geometry by differences too, as the field `differences`.
    - `memory`: in bytes; one half for activations, the other for what is computed from them.
    """
    memory //= 2
    rows = differentiated(points)
    exact = {} if tangents is None else subject.metrics(codes[rows], tangents[:, rows], on_step)
    begun: dict[str, LayerAccumulator] = {}
    finished = {}
    whole = {name: needs_differences(points, exact.get(name), both) for name in subject.layers}
    units = {name: units_at_all_points(layer, points, whole[name]) for name, layer in subject.layers.items()}
    for part in subject.parts(codes, memory - memory // 4, units):
        name = part.layer.name
        if name not in begun:
            begun[name] = LayerAccumulator(part.layer, points, rows, exact.get(name), memory, both)
            if len(units[name]) < part.layer.features:
                every = {name: torch.arange(part.layer.features)}
                for more in subject.parts(codes[points.sample], memory // 4, every):
                    begun[name].compare(more.values)
        begun[name].add(part, compare=len(units[name]) == part.layer.features)
        if part.last:
            finished[name] = begun.pop(name).finished(seed)
            on_step()
        del part  # otherwise it would stay in memory while the next ones are made
    return finished


def needs_differences(points: Points, exact: Metric | None, both: bool) -> bool:
    """Whether a layer's geometry is taken from differences on the grid, too, for which all its values are needed.

    A derivative of 0 everywhere along an axis is suspect: the layer may be constant, or a step function whose
    derivative is 0 though its values change. Only differences on the grid can tell, so they are made as well.
    """
    flat = exact is not None and bool((exact.diagonal(dim1=1, dim2=2) == 0).all(0).any())
    wanted = both or exact is None or flat or not bool(exact.isfinite().all())
    return points.full and bool(differentiable(points.factors)) and wanted


def units_at_all_points(layer: Layer, points: Points, whole: bool) -> Tensor:
    """The units that are needed at all points; the others only at those that are compared in pairs."""
    if whole or points.whole:
        return torch.arange(layer.features)
    # Without the whole grid there are no maps to score; one unit, so that the layer has its turn.
    return chosen_units(layer.features, len(points.latents)) if points.full else torch.arange(1)


def differentiated(points: Points) -> Tensor:
    """The points at which derivatives are taken: all, or those that are compared in pairs."""
    return torch.arange(len(points.latents)) if len(points.latents) <= MAX_DIFFERENTIATED else points.sample


def chosen_units(features: int, points: int) -> Tensor:
    """The units whose maps over the grid are scored: all of them unless these are very many numbers."""
    if features * points <= MAX_SCORED:
        return torch.arange(features)
    most = max(SHOWN_UNITS, SAMPLE_SCORED // points)
    return torch.randperm(features, generator=torch.Generator().manual_seed(0))[:most].sort().values


class LayerAccumulator:
    """A layer's sums over features: what every measure needs of it, so that wide layers may come in parts."""

    def __init__(
        self, layer: Layer, points: Points, rows: Tensor, exact: Metric | None, memory: int, both: bool = False
    ) -> None:
        axes = len(differentiable(points.factors))
        self.both = both
        # Units at a time, so that their copies in double precision (about 4 of 8 bytes) fit into the memory.
        self.units = max(64, min(4096, memory // (32 * len(points.latents))))
        self.layer, self.points, self.rows, self.exact = layer, points, rows, exact
        self.chosen = chosen_units(layer.features, len(points.latents))
        self.gram = torch.zeros(len(points.sample), len(points.sample), dtype=torch.float64)
        self.effects: dict[Term, float] = {}
        self.scores: list[tuple[Tensor, Tensor, Tensor]] = []
        self.shown = torch.zeros(0), torch.zeros(0).long(), torch.zeros(0, len(points.latents))
        needed = needs_differences(points, exact, both)
        self.metric = torch.zeros(len(points.latents), axes, axes, dtype=torch.float64) if needed else None

    def compare(self, values: Float[Tensor, "sample features"]) -> None:
        """Add some features at the points that are compared in pairs."""
        self.gram += gram_matrix(values)

    def add(self, part: Part, compare: bool = True) -> None:
        """Add some features at all points; `compare`: at those that are compared in pairs, too."""
        if compare:
            self.compare(part.values if self.points.whole else part.values[self.points.sample])
        if self.metric is not None:
            self.metric += grid_metric(part.values, self.points.factors)
        if not self.points.full:
            return
        wanted = torch.isin(part.units, self.chosen)
        for some in wanted.nonzero()[:, 0].split(self.units):
            every = len(some) == int(some[-1] - some[0]) + 1
            self._add_units(part.values[:, some[0] : some[-1] + 1] if every else part.values[:, some], part.units[some])

    def _add_units(self, units: Tensor, names: Tensor) -> None:
        """Add the effects and scores of some units, given with their numbers, and keep the most variable so far."""
        scores = unit_scores(units, self.points.factors)
        for term, variances in scores.effects.items():
            self.effects[term] = self.effects.get(term, 0.0) + variances.sum().item()
        self.scores.append((scores.stripe.float(), scores.bump.float(), scores.silent))
        spread = torch.cat([self.shown[0], torch.stack(list(scores.effects.values())).sum(0).float()])
        numbers = torch.cat([self.shown[1], names])
        best = spread.nan_to_num(-1).topk(min(SHOWN_UNITS, len(spread))).indices
        kept = len(self.shown[0])
        best = torch.cat([best[best < kept], best[best >= kept]])
        maps = [self.shown[2][best[best < kept]], units[:, best[best >= kept] - kept].T]
        self.shown = spread[best], numbers[best], torch.cat(maps)

    def finished(self, seed: int) -> LayerDiagnosis:
        points, layer = self.points, self.layer
        finite = bool(self.gram.isfinite().all())
        # A layer that is constant to rounding has no variance to explain, and a probe of it would fit noise.
        varies = finite and bool(centred_gram(self.gram).trace() > 1e-20 * self.gram.trace())
        probe = manifold = curved = None
        if varies and len(points.sample) > 2:
            rows = points.sample
            spectrum = centred_spectrum(self.gram)
            probe = probes_from_gram(
                self.gram, points.latents[rows], points.factors, points.heldout[rows], seed=seed, spectrum=spectrum
            )
            manifold = pca_from_gram(self.gram, spectrum=spectrum)
            if points.full and points.whole:
                curved = curvature(self.gram, points.factors)
        return LayerDiagnosis(
            layer.name,
            layer.kind,
            layer.shape,
            self._geometry(),
            probe,
            self._tuning() if finite and self.scores else None,
            shares_of(self.effects) if varies and self.effects else None,
            manifold,
            differences=self._differences() if self.both else None,
            curvature=curved,
        )

    def _geometry(self) -> Geometry | None:
        """The exact metric, unless the layer changes along an axis where its derivative is 0 or not finite."""
        exact, metric = self.exact, self.exact
        method: Method = "exact"
        if self.metric is not None:
            changes = self.metric.diagonal(dim1=1, dim2=2).sum(0) > 0
            unusable = exact is None or not exact.isfinite().all()
            if exact is None or unusable or (changes & (exact.diagonal(dim1=1, dim2=2).sum(0) == 0)).any():
                method, metric = "differences", self.metric
        if metric is None or metric.shape[-1] == 0:
            return None
        heldout = self.points.heldout if method == "differences" else self.points.heldout[self.rows]
        return geometry_of(metric, method, self.points.factors, heldout)

    def _differences(self) -> Geometry | None:
        if self.metric is None:
            return None
        return geometry_of(self.metric, "differences", self.points.factors, self.points.heldout)

    def _tuning(self) -> Tuning:
        stripe, bump, silent = (torch.cat(pieces) for pieces in zip(*self.scores, strict=True))
        active = ~silent
        mean_stripe, mean_bump = (s[active].double().mean().item() if active.any() else None for s in (stripe, bump))
        _, units, maps = self.shown
        maps = tuning_maps(maps.T, self.points.factors)
        return Tuning(stripe, bump, mean_stripe, mean_bump, int(silent.sum()), units, maps)
