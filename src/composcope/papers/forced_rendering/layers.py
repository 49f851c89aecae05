"""What is read from a network layer by layer, from the code to the image: probes, factorization, gap in volume."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, Self, TypeVar, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diagnosis.layers import LayerDiagnosis, geometry_of, true_geometry
from composcope.errors import BadInput
from composcope.measures.geometry import grid_metric
from composcope.measures.probes import linear_probes
from composcope.papers.forced_rendering.base import CODES
from composcope.runs.run import Run
from composcope.study.evidence import Evidence
from composcope.study.joining import pick_by_seed
from composcope.study.panel import Rows
from composcope.study.plan import Key, label_of
from composcope.study.statistics import interval

OTHERS = "other decoders"
IMAGE = "image"


def own_probe(layer: LayerDiagnosis) -> float:
    """R^2 of the linear readouts on the points they were fitted to, as the authors score them; the mean over x and y.

    It is 1 for any layer with more units than points.
    """
    return _mean([score.in_sample for score in (layer.probe or {}).values()])


def crossed_probe(layer: LayerDiagnosis) -> float:
    """R^2 of the linear readouts on points they were not fitted to, the mean over x and y."""
    return _mean([score.cross_validated for score in (layer.probe or {}).values()])


def heldout_probe(layer: LayerDiagnosis) -> float:
    """R^2 on held-out points of the linear readouts fitted on seen points, the mean over x and y."""
    return _mean([score.heldout for score in (layer.probe or {}).values()])


def factorization(layer: LayerDiagnosis) -> float:
    """Mean over the grid of 1 - |g_xy| / (|g_xx| + |g_yy|)   (paper eq. 7)."""
    return _mean([layer.geometry.factorization.mean_of_ratios if layer.geometry else None])


def grid_factorization(layer: LayerDiagnosis) -> float:
    """1 - mean|g_xy| / mean(|g_xx| + |g_yy|) by differences on the grid, as the authors compute it."""
    return _mean([layer.differences.factorization.ratio_of_means if layer.differences else None])


def volume_gap(layer: LayerDiagnosis) -> float:
    """Mean log10 volume over held-out points minus that over seen points."""
    return _mean([layer.geometry.volumes.gap if layer.geometry else None])


def grid_volume_gap(layer: LayerDiagnosis) -> float:
    """The same by differences on the grid, as the authors take derivatives."""
    return _mean([layer.differences.volumes.gap if layer.differences else None])


def _mean(values: Sequence[float | None]) -> float:
    """The mean; NaN if a value is missing or there is none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else torch.nan


Measure = Callable[[LayerDiagnosis], float]
PROBES: Mapping[str, Measure] = {
    "probe R2, in sample": own_probe,
    "probe R2, cross-validated": crossed_probe,
    "probe R2, seen to held-out": heldout_probe,
}
FACTORIZATION: Mapping[str, Measure] = {
    "factorization, ratio of means": grid_factorization,
    "factorization, mean of ratios": factorization,
}
PROFILE: Mapping[str, Measure] = {**PROBES, **FACTORIZATION}

Curves = Float[Tensor, "seeds layers"]


def by_layer(run: Run, measure: Measure) -> Float[Tensor, "layers"]:
    """A measure from the code to the image."""
    return torch.tensor([measure(layer) for layer in run.diagnosis.layers.values()], dtype=torch.float64)


def by_layer_untrained(run: Run, measure: Measure) -> Float[Tensor, "layers"]:
    """The same for the network before training."""
    untrained = run.diagnosis.untrained or {}
    values = [measure(untrained[name]) if name in untrained else torch.nan for name in run.diagnosis.layers]
    return torch.tensor(values, dtype=torch.float64)


def before_image(run: Run, measure: Measure, untrained: bool = False) -> Float[Tensor, "layers"]:
    """A measure of the input and the hidden layers, or of those of the network before training."""
    values = by_layer_untrained(run, measure) if untrained else by_layer(run, measure)
    return values[[name != IMAGE for name in run.diagnosis.layers]]


def at_last_hidden(run: Run, measure: Measure) -> float:
    """A measure of the last layer before the image."""
    return before_image(run, measure)[-1].item()


def image_gap(run: Run) -> float:
    """|mean log10 volume of held-out images minus that of seen ones|."""
    return abs(by_layer(run, volume_gap)[-1].item())


def largest_fall(curve: Float[Tensor, "layers"]) -> float:
    """The largest fall of the curve from one layer to the next.

    >>> round(largest_fall(torch.tensor([1.0, 0.9, 0.6, 0.7])), 2)
    0.3
    """
    return float(-curve.diff().min())


def steadiness(curve: Float[Tensor, "layers"]) -> float:
    """The net fall over the total variation: 1 if the curve only falls, -1 if it only rises, NaN if it is flat.

    >>> steadiness(torch.tensor([1.0, 0.75, 0.5])), steadiness(torch.tensor([1.0, 0.5, 0.75]))
    (1.0, 0.3333333432674408)
    """
    steps = curve.diff()
    return float(-steps.sum() / steps.abs().sum())


def layer_trend(curve: Float[Tensor, "layers"]) -> float:
    """Rank correlation of a curve with the layer's index: -1 if it only falls; NaN if it is flat.

    >>> layer_trend(torch.tensor([1.0, 0.9, 0.5]))
    -1.0
    """
    if curve.unique().numel() == 1:
        return math.nan
    from scipy import stats

    return float(stats.spearmanr(range(len(curve)), curve.numpy()).statistic)


def group_and_label(key: Key, run: Run) -> tuple[str, str]:
    """The group of a plan's key and what it is called there, from its attributes `group` and `label_in_group`.

    A key without a group is one of the other decoders and is named with its code: "transformer (bump)".
    """
    group: str | None = getattr(key, "group", None)
    if group is not None:
        return group, str(getattr(key, "label_in_group", label_of(key)))
    names = [name for name, encoding in CODES.items() if encoding == run.spec.encoding]
    return OTHERS, f"{label_of(key)} ({', '.join(names) or run.spec.encoding.kind})"


@dataclass(frozen=True)
class Network:
    """A network's curves over its layers, by measure, and those of the same network before training.

    - `group`: "bump", "rate" or "other decoders"; `label`: its name there; `place`: its position in the plan.
    - `seeds`: those of the curves' rows.
    """

    group: str
    label: str
    layers: tuple[str, ...]
    trained: Mapping[str, Curves]
    untrained: Mapping[str, Curves]
    seeds: tuple[int, ...] = ()
    place: int = 0

    @property
    def last_hidden(self) -> int:
        """The index of the last layer before the image."""
        return max(index for index, name in enumerate(self.layers) if name != IMAGE)

    def joined(self, other: "Network") -> "Network":
        """The curves of the seeds of both."""
        rows, both = pick_by_seed(self.seeds, other.seeds), (self, other)
        return replace(
            self,
            trained={name: torch.stack([both[of].trained[name][row] for of, row in rows]) for name in self.trained},
            untrained={
                name: torch.stack([both[of].untrained[name][row] for of, row in rows]) for name in self.untrained
            },
            seeds=tuple(both[of].seeds[row] for of, row in rows),
        )


@runtime_checkable
class Placed(Protocol):
    """One network's part of a figure, with its position in the plan."""

    @property
    def group(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def place(self) -> int: ...
    @property
    def seeds(self) -> tuple[int, ...]: ...
    def joined(self, other: Self) -> Self: ...


P = TypeVar("P", bound=Placed)


def join_networks(first: Sequence[P], second: Sequence[P]) -> tuple[P, ...]:
    """The networks of both, in the plan's order."""
    if not all(network.seeds for network in (*first, *second)):
        raise BadInput("numbers that an older composcope wrote do not name their seeds, and cannot be joined")
    by_name: dict[tuple[str, str], P] = {}
    for network in (*first, *second):
        name = (network.group, network.label)
        by_name[name] = by_name[name].joined(network) if name in by_name else network
    return tuple(sorted(by_name.values(), key=lambda network: network.place))


@dataclass(frozen=True)
class Profiles:
    """Measures of several networks, layer by layer, and each measure of the true images themselves."""

    networks: tuple[Network, ...]
    truth: Mapping[str, float]

    @property
    def measures(self) -> tuple[str, ...]:
        return tuple(self.networks[0].trained)

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(network.group for network in self.networks))

    def joined(self, other: "Profiles") -> "Profiles":
        networks = join_networks(self.networks, other.networks)
        # The truth's probes are cross-validated with the seed of the first run.
        source = min(self, other, key=lambda part: (part.networks[0].place, part.networks[0].seeds[0]))
        return Profiles(networks, source.truth)

    def seed_counts(self) -> list[int]:
        return [len(network.seeds) for network in self.networks]

    def table(self) -> Rows:
        """One row per network: each measure at the last hidden layer, with its interval, untrained, and by layer."""
        return [self._row(network) for network in self.networks]

    def _row(self, network: Network) -> dict[str, object]:
        row: dict[str, object] = {
            "network": f"{network.group}, {network.label}",
            "seeds": len(network.trained[self.measures[0]]),
            "layers": len(network.layers),
        }
        last = network.last_hidden
        for measure in self.measures:
            curves, control = network.trained[measure], network.untrained[measure]
            mean, low, high = map(nan_if_none, interval(curves[:, last].tolist()))
            row |= {f"{measure}: last hidden": mean, f"{measure}: low": low, f"{measure}: high": high}
            row |= {f"{measure}: untrained": control[:, last].mean().item()}
            row |= {f"{measure}: image": curves[:, -1].mean().item(), f"{measure}: true images": self.truth[measure]}
            row |= {f"{measure}: by layer": " ".join(f"{value:.3f}" for value in curves.mean(0))}
        return row


def nan_if_none(value: float | None) -> float:
    """The value, or NaN if there is none."""
    return torch.nan if value is None else value


def profiles(evidence: Evidence, measures: Mapping[str, Measure] = PROFILE) -> Profiles:
    """Every network's measures from the code to the image."""
    truth = true_images(evidence.any_run)
    return Profiles(
        tuple(_network(key, runs, measures, place) for place, (key, runs) in enumerate(evidence.items()) if runs),
        {name: measure(truth) for name, measure in measures.items()},
    )


probes = partial(profiles, measures=PROBES)
factorizations = partial(profiles, measures=FACTORIZATION)


def _network(key: Key, runs: Sequence[Run], measures: Mapping[str, Measure], place: int) -> Network:
    return Network(
        *group_and_label(key, runs[0]),
        tuple(runs[0].diagnosis.layers),
        {name: torch.stack([by_layer(run, measure) for run in runs]) for name, measure in measures.items()},
        {name: torch.stack([by_layer_untrained(run, measure) for run in runs]) for name, measure in measures.items()},
        tuple(run.spec.seed for run in runs),
        place,
    )


def true_images(run: Run) -> LayerDiagnosis:
    """The true images as if they were a layer: what a perfect decoder ends with."""
    task, latents, heldout = run.spec.task, run.split.latents, run.split.mask
    probe = linear_probes(run.truth, latents, task.factors, heldout, seed=run.spec.seed)
    geometry = true_geometry(task, latents, heldout)
    differences = geometry_of(grid_metric(run.truth.flatten(1), task.factors), "differences", task.factors, heldout)
    return LayerDiagnosis(
        "true images", "", task.image_shape, geometry, probe, None, None, None, differences=differences
    )
