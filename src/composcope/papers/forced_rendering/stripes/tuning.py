"""What single units respond to after training on stripes: first-layer channels, and tuning over (x, y) by layer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from composcope.activations.recording import record
from composcope.diagnosis.layers import LayerDiagnosis
from composcope.experiments.run import build
from composcope.measures.tuning import tuning_marginals
from composcope.paper.bands import own_axis_share
from composcope.paper.codes import heldout_map
from composcope.paper.evidence import Evidence, Rows, Run
from composcope.paper.layers import Measure, Network, profiles
from composcope.sampling import single_values


@torch.no_grad()
def first_layer(
    run: Run, module: nn.Module, latents: Float[Tensor, "n factors"]
) -> Float[Tensor, "n channels height width"]:
    """The first layer's channels for these latents; NaN is an absent factor."""
    drawer = run.spec.decoder.drawer(module)
    assert drawer is not None
    values, _ = record(drawer, run.spec.encoding.encode(latents, run.spec.task.factors))
    return next(value for name, value in values.items() if name != "code")


def channel_bands(run: Run, trained: bool = True) -> float | None:
    """The own-axis share of the first layer's channels for every value of x and of y alone, after or before training.

    What the first layer makes of one value alone is the counterpart of a low-rank decoder's embedding of that value.
    """
    module = run.result.module if trained else build(run.spec)
    alone = first_layer(run, module, single_values(run.spec.task))
    of_x, of_y = alone.split([factor.size for factor in run.spec.task.factors])
    return own_axis_share(of_x.flatten(0, 1), of_y.flatten(0, 1))


@dataclass(frozen=True)
class Channels:
    """One run's liveliest first-layer channels for x alone, y alone and both; the own-axis share in each seed."""

    maps: Float[Tensor, "inputs channels height width"]
    numbers: tuple[int, ...]
    seeds: tuple[int, ...]
    bands: tuple[float, ...]
    bands_before: tuple[float, ...]


@dataclass(frozen=True)
class FirstLayers:
    """First-layer channels of every kind of run at a held-out place; `inputs` says what was fed, row by row."""

    inputs: tuple[str, ...]
    channels: dict[str, Channels]

    def table(self) -> Rows:
        return [
            {"trained on": name, "seed": seed, "share along own axis": after, "before training": before}
            for name, found in self.channels.items()
            for seed, after, before in zip(found.seeds, found.bands, found.bands_before, strict=True)
        ]


def first_layers(evidence: Evidence, shown: int = 5) -> FirstLayers:
    """At the middle of the hole."""
    heldout = evidence.first(next(iter(evidence))).parts.heldout
    x, y = heldout.median(0).values.tolist()
    latents = torch.tensor([[x, torch.nan], [torch.nan, y], [x, y]])
    inputs = (f"x = {x:g}\nalone", f"y = {y:g}\nalone", f"x = {x:g},\ny = {y:g}")
    return FirstLayers(inputs, {name: _channels(runs, latents, shown) for name, runs in evidence.items()})


def _channels(runs: Sequence[Run], latents: Tensor, shown: int) -> Channels:
    maps = first_layer(runs[0], runs[0].result.module, latents)
    liveliest = maps.flatten(2).var(2).sum(0).topk(min(shown, maps.shape[1])).indices
    return Channels(
        maps=maps[:, liveliest],
        numbers=tuple(liveliest.tolist()),
        seeds=tuple(run.spec.seed for run in runs),
        bands=tuple(_or_nan(channel_bands(run)) for run in runs),
        bands_before=tuple(_or_nan(channel_bands(run, trained=False)) for run in runs),
    )


def _or_nan(value: float | None) -> float:
    return torch.nan if value is None else value


def stripe_likeness(layer: LayerDiagnosis) -> float:
    """The mean over a layer's units that respond; NaN if none does."""
    return _or_nan(layer.tuning.mean_stripe if layer.tuning else None)


def bump_likeness(layer: LayerDiagnosis) -> float:
    """The mean over a layer's units that respond; NaN if none does."""
    return _or_nan(layer.tuning.mean_bump if layer.tuning else None)


def additive_share(layer: LayerDiagnosis) -> float:
    """Share of a layer's variance that is a part for x plus a part for y: 1 for stripes and crosses, less for bumps."""
    return _or_nan(layer.linear_factorization.main_effects if layer.linear_factorization else None)


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
    """A unit's activation over (x, y), and how stripe- and bump-like it is."""

    layer: str
    number: int
    map: Float[Tensor, "x y"]
    stripe: float
    bump: float

    @property
    def curves(self) -> tuple[Float[Tensor, "x"], Float[Tensor, "y"]]:
        """Mean activation over y, by x; and over x, by y."""
        along_x, along_y = tuning_marginals(self.map[None])
        return along_x[0], along_y[0]


def sample_units(layer: LayerDiagnosis, quantiles: Sequence[float]) -> list[Unit]:
    """Of the layer's liveliest units, those at these quantiles between the most stripe-like and the most bump-like."""
    tuning = layer.tuning
    if tuning is None:
        return []
    order = (tuning.bump - tuning.stripe)[tuning.shown].argsort(stable=True)
    chosen = [int(order[round(quantile * (len(order) - 1))]) for quantile in quantiles]
    numbers = [int(tuning.shown[place]) for place in chosen]
    return [
        Unit(layer.name, number, tuning.maps[place], tuning.stripe[number].item(), tuning.bump[number].item())
        for place, number in zip(chosen, numbers, strict=True)
    ]


@dataclass(frozen=True)
class Tunings:
    """Sample units of every layer after the code, by kind of run and layer, and the likeness of all units."""

    units: dict[str, dict[str, list[Unit]]]
    likeness: dict[str, Network]
    heldout: Bool[Tensor, "x y"]

    def table(self) -> Rows:
        return [
            {
                "trained on": name,
                "layer": layer,
                **{measure: curves[:, place].nanmean().item() for measure, curves in network.trained.items()},
                **{
                    f"{measure} before training": curves[:, place].nanmean().item()
                    for measure, curves in network.untrained.items()
                },
                "units shown": " ".join(str(unit.number) for unit in self.units[name].get(layer, [])),
                "seeds": len(next(iter(network.trained.values()))),
            }
            for name, network in self.likeness.items()
            for place, layer in enumerate(network.layers)
        ]


def typical(evidence: Evidence) -> Tunings:
    """One unit a layer: the median."""
    return _tunings(evidence, (0.5,))


def stripe_and_bump(evidence: Evidence) -> Tunings:
    """Two units a layer: the middle of its stripe-like half and of its bump-like half."""
    return _tunings(evidence, (0.25, 0.75))


def _tunings(evidence: Evidence, quantiles: Sequence[float]) -> Tunings:
    return Tunings(
        units={name: _units(evidence.first(name), quantiles) for name in evidence},
        likeness=dict(zip(evidence, profiles(evidence, LIKENESS).networks, strict=True)),
        heldout=heldout_map(evidence.first(next(iter(evidence)))),
    )


def _units(run: Run, quantiles: Sequence[float]) -> dict[str, list[Unit]]:
    return {name: sample_units(layer, quantiles) for name, layer in run.diagnosis.layers.items() if name != "code"}
