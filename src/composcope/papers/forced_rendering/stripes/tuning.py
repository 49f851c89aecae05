"""What figures 4e, 4f and 15 show: what single units respond to, in the first layer and layer by layer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from composcope.activations.recording import record
from composcope.diagnosis.layers import LayerDiagnosis
from composcope.experiments.run import Run, build
from composcope.measures.tuning import tuning_marginals
from composcope.papers.forced_rendering.bands import own_axis_share
from composcope.papers.forced_rendering.base import heldout_map
from composcope.papers.forced_rendering.layers import Measure, Network, nan_if_none, profiles
from composcope.sampling import single_values
from composcope.study.evidence import Evidence
from composcope.study.panel import Rows
from composcope.study.plan import Key, label_of


def untrained_drawer(run: Run) -> nn.Module:
    """The part of the run's module that draws images, as it was before training."""
    name = next(name for name, part in run.module.named_modules() if part is run.drawer)
    return build(run.spec).get_submodule(name)


@torch.no_grad()
def first_layer(
    run: Run, drawer: nn.Module, latents: Float[Tensor, "n factors"]
) -> Float[Tensor, "n channels height width"]:
    """The first layer's channels for these latents; NaN is an absent factor."""
    outputs, _ = record(drawer, run.spec.encoding.encode(latents, run.spec.task.factors))
    return next(output for name, output in outputs.items() if name != "code")


def channel_bands(run: Run, trained: bool = True) -> float | None:
    """The own-axis share of the first layer's channels for every value of x and of y alone, after or before training.

    The first layer's response to one value alone is the counterpart of a low-rank decoder's embedding of that value.
    """
    drawer = run.drawer if trained else untrained_drawer(run)
    alone = first_layer(run, drawer, single_values(run.spec.task))
    of_x, of_y = alone.split([factor.size for factor in run.spec.task.factors])
    return own_axis_share(of_x.flatten(0, 1), of_y.flatten(0, 1))


@dataclass(frozen=True)
class Channels:
    """The first run's most active first-layer channels for x alone, y alone and both; the own-axis share by seed."""

    maps: Float[Tensor, "inputs channels height width"]
    indices: tuple[int, ...]
    seeds: tuple[int, ...]
    bands: tuple[float, ...]
    bands_before: tuple[float, ...]


@dataclass(frozen=True)
class FirstLayers:
    """First-layer channels of every kind of run at a held-out point; `inputs` describes the rows."""

    inputs: tuple[str, ...]
    channels: dict[Key, Channels]

    def table(self) -> Rows:
        return [
            {"trained on": label_of(key), "seed": seed, "share along own axis": after, "before training": before}
            for key, channels in self.channels.items()
            for seed, after, before in zip(channels.seeds, channels.bands, channels.bands_before, strict=True)
        ]


def first_layers(evidence: Evidence, shown: int = 5) -> FirstLayers:
    """At the middle of the hole."""
    heldout = evidence.any_run.split.heldout
    x, y = heldout.median(0).values.tolist()
    latents = torch.tensor([[x, torch.nan], [torch.nan, y], [x, y]])
    inputs = (f"x = {x:g}\nalone", f"y = {y:g}\nalone", f"x = {x:g},\ny = {y:g}")
    return FirstLayers(inputs, {key: _channels(runs, latents, shown) for key, runs in evidence.items()})


def _channels(runs: Sequence[Run], latents: Tensor, shown: int) -> Channels:
    maps = first_layer(runs[0], runs[0].drawer, latents)
    most_active = maps.flatten(2).var(2).sum(0).topk(min(shown, maps.shape[1])).indices
    return Channels(
        maps=maps[:, most_active],
        indices=tuple(most_active.tolist()),
        seeds=tuple(run.spec.seed for run in runs),
        bands=tuple(nan_if_none(channel_bands(run)) for run in runs),
        bands_before=tuple(nan_if_none(channel_bands(run, trained=False)) for run in runs),
    )


def stripe_likeness(layer: LayerDiagnosis) -> float:
    """Mean stripe-likeness over the layer's units that respond; NaN if none does."""
    return nan_if_none(layer.tuning.mean_stripe if layer.tuning else None)


def bump_likeness(layer: LayerDiagnosis) -> float:
    """Mean bump-likeness over the layer's units that respond; NaN if none does."""
    return nan_if_none(layer.tuning.mean_bump if layer.tuning else None)


def additive_share(layer: LayerDiagnosis) -> float:
    """Share of a layer's variance that is a part for x plus a part for y: 1 for stripes and crosses, less for bumps."""
    return nan_if_none(layer.linear_factorization.main_effects if layer.linear_factorization else None)


def bump_units(layer: LayerDiagnosis) -> float:
    """Share of the units that respond which are more bump-like than stripe-like."""
    if layer.tuning is None:
        return torch.nan
    responding = len(layer.tuning.bump) - layer.tuning.silent
    return (layer.tuning.bump > layer.tuning.stripe).sum().item() / responding if responding else torch.nan


LIKENESS: Mapping[str, Measure] = {
    "stripe-likeness": stripe_likeness,
    "bump-likeness": bump_likeness,
    "additive share": additive_share,
    "bump-like units": bump_units,
}


def early(run: Run) -> LayerDiagnosis:
    """The first layer after the code."""
    return list(run.diagnosis.layers.values())[1]


def late(run: Run) -> LayerDiagnosis:
    """The last layer before the image."""
    return list(run.diagnosis.layers.values())[-2]


@dataclass(frozen=True)
class Unit:
    """A unit's activation over (x, y), and how stripe-like and bump-like it is."""

    layer: str
    index: int
    map: Float[Tensor, "x y"]
    stripe: float
    bump: float

    @property
    def curves(self) -> tuple[Float[Tensor, "x"], Float[Tensor, "y"]]:
        """Mean activation over y, by x; and over x, by y."""
        along_x, along_y = tuning_marginals(self.map[None])
        return along_x[0], along_y[0]


def sample_units(layer: LayerDiagnosis, quantiles: Sequence[float]) -> list[Unit]:
    """Of the layer's most active units, those at these quantiles from the most stripe-like to the most bump-like."""
    tuning = layer.tuning
    if tuning is None:
        return []
    order = (tuning.bump - tuning.stripe)[tuning.shown].argsort(stable=True)
    chosen = [int(order[round(quantile * (len(order) - 1))]) for quantile in quantiles]
    units = [(rank, int(tuning.shown[rank])) for rank in chosen]
    return [
        Unit(layer.name, index, tuning.maps[rank], tuning.stripe[index].item(), tuning.bump[index].item())
        for rank, index in units
    ]


@dataclass(frozen=True)
class Tunings:
    """Sample units of every layer after the code, by kind of run and layer, and the mean likeness of all units."""

    units: dict[Key, dict[str, list[Unit]]]
    likeness: dict[Key, Network]
    heldout: Bool[Tensor, "x y"]

    def table(self) -> Rows:
        return [
            {
                "trained on": label_of(key),
                "layer": layer,
                **{measure: curves[:, index].nanmean().item() for measure, curves in network.trained.items()},
                **{
                    f"{measure} before training": curves[:, index].nanmean().item()
                    for measure, curves in network.untrained.items()
                },
                "units shown": " ".join(str(unit.index) for unit in self.units[key].get(layer, [])),
                "seeds": len(next(iter(network.trained.values()))),
            }
            for key, network in self.likeness.items()
            for index, layer in enumerate(network.layers)
        ]


def typical(evidence: Evidence) -> Tunings:
    """One unit per layer: the median."""
    return _tunings(evidence, (0.5,))


def stripe_and_bump(evidence: Evidence) -> Tunings:
    """Two units per layer: the middle of its stripe-like half and of its bump-like half."""
    return _tunings(evidence, (0.25, 0.75))


def _tunings(evidence: Evidence, quantiles: Sequence[float]) -> Tunings:
    return Tunings(
        units={key: _units(evidence.first(key), quantiles) for key in evidence},
        likeness=dict(zip(evidence, profiles(evidence, LIKENESS).networks, strict=True)),
        heldout=heldout_map(evidence.any_run),
    )


def _units(run: Run, quantiles: Sequence[float]) -> dict[str, list[Unit]]:
    return {name: sample_units(layer, quantiles) for name, layer in run.diagnosis.layers.items() if name != "code"}
