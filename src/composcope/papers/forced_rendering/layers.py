"""What is read from a network layer by layer: probes, factorization and volume, for figures 2 and 11 to 14."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.func import jvp

from composcope.diagnosis.layers import Geometry, LayerDiagnosis
from composcope.experiments.run import Run
from composcope.measures.geometry import FLOOR, differentiable, metric_tensor, volume_element, volume_summary
from composcope.measures.geometry import factorization as factorization_of
from composcope.measures.grid import on_grid
from composcope.measures.probes import linear_probes
from composcope.papers.forced_rendering.base import CODES
from composcope.study.evidence import Evidence
from composcope.study.panel import Rows
from composcope.study.statistics import interval

OTHERS = "other decoders"


def crossed_probe(layer: LayerDiagnosis) -> float:
    """R^2 of the linear readouts on points they were not fitted to, the mean over x and y."""
    return _mean([score.cross_validated for score in (layer.probe or {}).values()])


def heldout_probe(layer: LayerDiagnosis) -> float:
    """R^2 on held-out points of the linear readouts fitted on seen points, the mean over x and y."""
    return _mean([score.heldout for score in (layer.probe or {}).values()])


def factorization(layer: LayerDiagnosis) -> float:
    """Mean over the grid of 1 - |g_xy| / (|g_xx| + |g_yy|)   (paper eq. 7)."""
    return _mean([layer.geometry.factorization.mean_of_ratios if layer.geometry else None])


def volume_gap(layer: LayerDiagnosis) -> float:
    """Mean log10 volume over held-out points less that over seen points."""
    return _mean([layer.geometry.volumes.gap if layer.geometry else None])


def _mean(values: Sequence[float | None]) -> float:
    """NaN where one is missing, or all."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else torch.nan


Measure = Callable[[LayerDiagnosis], float]
PROBES: Mapping[str, Measure] = {
    "probe R2, cross-validated": crossed_probe,
    "probe R2, seen to held-out": heldout_probe,
}
FACTORIZATION: Mapping[str, Measure] = {"factorization": factorization}
PROFILE: Mapping[str, Measure] = {**PROBES, **FACTORIZATION}

Curves = Float[Tensor, "seeds layers"]


def by_layer(run: Run, measure: Measure) -> Float[Tensor, "layers"]:
    """A measure from the code to the image."""
    return torch.tensor([measure(layer) for layer in run.diagnosis.layers.values()], dtype=torch.float64)


def by_layer_untrained(run: Run, measure: Measure) -> Float[Tensor, "layers"]:
    """The same of the network before training."""
    twin = run.diagnosis.untrained or {}
    values = [measure(twin[name]) if name in twin else torch.nan for name in run.diagnosis.layers]
    return torch.tensor(values, dtype=torch.float64)


def largest_fall(curve: Float[Tensor, "layers"]) -> float:
    """The most that the curve falls from one layer to the next.

    >>> round(largest_fall(torch.tensor([1.0, 0.9, 0.6, 0.7])), 2)
    0.3
    """
    return float(-curve.diff().min())


def unevenness(curve: Float[Tensor, "layers"]) -> float:
    """The largest fall from one layer to the next over the mean absolute step; 1 if it falls evenly, NaN if flat.

    >>> unevenness(torch.tensor([1.0, 0.75, 0.5])), unevenness(torch.tensor([1.0, 1.0, 0.5]))
    (1.0, 2.0)
    """
    steps = curve.diff()
    return float(-steps.min() / steps.abs().mean())


@dataclass(frozen=True)
class Network:
    """A network's curves over its layers, by measure, and those of the same network before training.

    - `group`: "bump", "rate" or "other decoders"; `label`: its name there.
    """

    group: str
    label: str
    layers: tuple[str, ...]
    trained: Mapping[str, Curves]
    untrained: Mapping[str, Curves]


@dataclass(frozen=True)
class Profiles:
    """Networks of several depths, layer by layer, by measure, and each measure of the true images themselves."""

    networks: tuple[Network, ...]
    truth: Mapping[str, float]

    @property
    def measures(self) -> tuple[str, ...]:
        return tuple(self.networks[0].trained)

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(network.group for network in self.networks))

    def table(self) -> Rows:
        """One row a network: each measure at the image, with its interval over seeds, untrained, and by layer."""
        return [self._row(network) for network in self.networks]

    def _row(self, network: Network) -> dict[str, object]:
        row: dict[str, object] = {
            "network": f"{network.group}, {network.label}",
            "seeds": len(network.trained[self.measures[0]]),
            "layers": len(network.layers),
        }
        for measure in self.measures:
            curves, control = network.trained[measure], network.untrained[measure]
            mean, low, high = (_or_nan(value) for value in interval(curves[:, -1].tolist()))
            row |= {f"{measure}: image": mean, f"{measure}: low": low, f"{measure}: high": high}
            row |= {f"{measure}: untrained": control[:, -1].mean().item(), f"{measure}: truth": self.truth[measure]}
            row |= {f"{measure}: by layer": " ".join(f"{value:.3f}" for value in curves.mean(0))}
        return row


def _or_nan(value: float | None) -> float:
    """NaN for nothing."""
    return torch.nan if value is None else value


def profiles(evidence: Evidence, measures: Mapping[str, Measure] = PROFILE) -> Profiles:
    """Every network's measures from the code to the image."""
    truth = true_images(evidence.first(next(iter(evidence))))
    return Profiles(
        tuple(_network(name, runs, measures) for name, runs in evidence.items()),
        {key: measure(truth) for key, measure in measures.items()},
    )


probes = partial(profiles, measures=PROBES)
factorizations = partial(profiles, measures=FACTORIZATION)


def _network(name: str, runs: Sequence[Run], measures: Mapping[str, Measure]) -> Network:
    return Network(
        *group_and_label(name, runs[0]),
        tuple(runs[0].diagnosis.layers),
        {key: torch.stack([by_layer(run, measure) for run in runs]) for key, measure in measures.items()},
        {key: torch.stack([by_layer_untrained(run, measure) for run in runs]) for key, measure in measures.items()},
    )


def true_images(run: Run) -> LayerDiagnosis:
    """The true images taken for a layer: what a perfect decoder ends with."""
    task, latents, heldout = run.spec.task, run.split.latents, run.split.mask
    axes = differentiable(task.factors)
    along = torch.eye(latents.shape[1])[list(axes)]
    slopes = [jvp(task.render, (latents,), (one.expand_as(latents),))[1].flatten(1) for one in along]
    metric = metric_tensor(torch.stack(slopes, -1))
    volume = volume_element(metric)
    shape = Geometry(
        "exact",
        tuple(task.factors[axis].name for axis in axes),
        metric,
        volume,
        volume_summary(volume, heldout),
        factorization_of(metric),
    )
    probe = linear_probes(run.truth, latents, task.factors, heldout, seed=run.spec.seed)
    return LayerDiagnosis("true images", "", task.image_shape, shape, probe, None, None, None)


def group_and_label(name: str, run: Run) -> tuple[str, str]:
    """ "bump, depth 3" -> "bump" and "depth 3"; a name without a code is one of the other decoders."""
    code, comma, depth = name.partition(", ")
    codes_by_name = [word for word, encoding in CODES.items() if encoding == run.spec.encoding]
    return (code, depth) if comma else (OTHERS, f"{name} ({', '.join(codes_by_name) or run.spec.encoding.kind})")


@dataclass(frozen=True)
class VolumeMaps:
    """One network's volume element over (x, y), layer by layer.

    - `maps`: log10 dv less its mean over seen points, of the least seed; volumes under `floor` are taken as it.
    - `gaps`: mean over held-out points less that over seen ones, for every seed. `seen`: the means taken off the maps.
    - `floored`: points under the floor, of the least seed. `method`: how the derivatives were taken.
    """

    group: str
    label: str
    layers: tuple[str, ...]
    maps: Float[Tensor, "layers x y"]
    gaps: Curves
    seen: Float[Tensor, "layers"]
    heldout: Bool[Tensor, "x y"]
    floor: float
    floored: int
    method: str


@dataclass(frozen=True)
class Volumes:
    """Volume maps of several networks."""

    networks: tuple[VolumeMaps, ...]

    def table(self) -> Rows:
        """One row a network: the gap between held-out and seen points at the image, its interval, and by layer."""
        rows: Rows = []
        for network in self.networks:
            mean, low, high = (_or_nan(value) for value in interval(network.gaps[:, -1].tolist()))
            rows.append(
                {
                    "network": f"{network.group}, {network.label}",
                    "seeds": len(network.gaps),
                    "gap of log10 volume at the image": mean,
                    "low": low,
                    "high": high,
                    "gap by layer": " ".join(f"{gap:+.2f}" for gap in network.gaps.mean(0)),
                    "mean log10 volume on seen points by layer": " ".join(f"{value:.2f}" for value in network.seen),
                    "floor": network.floor,
                    "points under the floor": network.floored,
                    "derivatives": network.method,
                }
            )
        return rows


def volumes(evidence: Evidence) -> Volumes:
    """Every network's volume maps from the code to the image."""
    return Volumes(tuple(_volume_maps(name, runs) for name, runs in evidence.items()))


def _volume_maps(name: str, runs: Sequence[Run]) -> VolumeMaps:
    first, factors = runs[0], runs[0].spec.task.factors
    shapes = [layer.geometry for layer in first.diagnosis.layers.values()]
    known = [shape for shape in shapes if shape is not None]
    return VolumeMaps(
        *group_and_label(name, first),
        tuple(first.diagnosis.layers),
        torch.stack([on_grid(_relative_logs(shape, first.split.mask), factors) for shape in shapes]),
        torch.stack([by_layer(run, volume_gap) for run in runs]),
        torch.tensor([_or_nan(shape.volumes.seen if shape else None) for shape in shapes], dtype=torch.float64),
        on_grid(first.split.mask, factors),
        known[0].volumes.floor if known else FLOOR,
        sum(shape.volumes.floored for shape in known),
        " and ".join(sorted({shape.method for shape in known})),
    )


def _relative_logs(shape: Geometry | None, heldout: Bool[Tensor, "points"]) -> Float[Tensor, "points"]:
    """log10 max(dv, floor) less its mean over seen points; NaN where a layer has no geometry."""
    if shape is None:
        return torch.full((len(heldout),), torch.nan, dtype=torch.float64)
    logs = shape.volume.double().clamp(min=shape.volumes.floor).log10()
    return logs - _or_nan(shape.volumes.seen)
