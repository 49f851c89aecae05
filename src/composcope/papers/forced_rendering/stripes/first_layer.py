"""What figure 4e shows: what the first layer's units respond to, and its maps for one value alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from composcope.activations.recording import record
from composcope.measures.tuning import UnitScores, tuning_maps, unit_scores
from composcope.papers.forced_rendering.bands import own_axis_share
from composcope.papers.forced_rendering.layers import nan_if_none
from composcope.papers.forced_rendering.stripes.tuning import middle_responses, spaced
from composcope.runs.run import Run, build
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


def first_units(run: Run, trained: bool = True) -> UnitScores:
    """What the first layer's units respond to over (x, y), after or before training."""
    drawer = run.drawer if trained else untrained_drawer(run)
    return unit_scores(first_layer(run, drawer, run.split.latents), run.spec.task.factors)


def single_factor_share(run: Run, trained: bool = True) -> float:
    """The share of a first-layer unit's variance over (x, y) that x alone or y alone explains.

    Mean over the units that respond. 1 for stripes, 1/2 for an even cross.
    """
    scores = first_units(run, trained)
    return scores.main.amax(1)[~scores.silent].mean().item()


@dataclass(frozen=True)
class Channels:
    """The first layer of one kind of run: what its units respond to over (x, y), and its maps for single inputs.

    - `units`: the activation over (x, y) of some units of the first run, from the least to the most stripe-like;
      `unit_shares`: the share of their variance that one factor explains.
    - `maps`: the first run's most active channels for x alone, y alone and both.
    - `shares`, `bands`: the single-factor share of units and the own-axis share of maps, by seed.
    """

    units: Float[Tensor, "units x y"]
    unit_shares: tuple[float, ...]
    maps: Float[Tensor, "inputs channels height width"]
    indices: tuple[int, ...]
    seeds: tuple[int, ...]
    shares: tuple[float, ...]
    shares_before: tuple[float, ...]
    bands: tuple[float, ...]
    bands_before: tuple[float, ...]


@dataclass(frozen=True)
class FirstLayers:
    """First-layer channels of every kind of run at a held-out point; `inputs` describes the rows."""

    inputs: tuple[str, ...]
    channels: dict[Key, Channels]

    def table(self) -> Rows:
        return [
            {
                "trained on": label_of(key),
                "seed": seed,
                "units: share of one factor": channels.shares[n],
                "units: before training": channels.shares_before[n],
                "maps: share along own axis": channels.bands[n],
                "maps: before training": channels.bands_before[n],
            }
            for key, channels in self.channels.items()
            for n, seed in enumerate(channels.seeds)
        ]


def first_layers(evidence: Evidence, shown: int = 5) -> FirstLayers:
    """At the middle of the hole."""
    heldout = evidence.any_run.split.heldout
    x, y = heldout.median(0).values.tolist()
    latents = torch.tensor([[x, torch.nan], [torch.nan, y], [x, y]])
    inputs = (f"x = {x:g}\nalone", f"y = {y:g}\nalone", f"x = {x:g},\ny = {y:g}")
    return FirstLayers(inputs, {key: _channels(runs, latents, shown) for key, runs in evidence.items()})


def _channels(runs: Sequence[Run], latents: Tensor, shown: int) -> Channels:
    first, factors = runs[0], runs[0].spec.task.factors
    maps = first_layer(first, first.drawer, latents)
    most_active = maps.flatten(2).var(2).sum(0).topk(min(shown, maps.shape[1])).indices
    responses = middle_responses(first_layer(first, first.drawer, first.split.latents))
    scores = unit_scores(responses, factors)
    chosen = spaced(scores.main.amax(1).masked_fill(scores.silent, torch.nan), torch.linspace(0.1, 0.9, shown).tolist())
    return Channels(
        units=tuning_maps(responses[:, chosen], factors),
        unit_shares=tuple(scores.main.amax(1)[chosen].tolist()),
        maps=maps[:, most_active],
        indices=tuple(most_active.tolist()),
        seeds=tuple(run.spec.seed for run in runs),
        shares=tuple(single_factor_share(run) for run in runs),
        shares_before=tuple(single_factor_share(run, trained=False) for run in runs),
        bands=tuple(nan_if_none(channel_bands(run)) for run in runs),
        bands_before=tuple(nan_if_none(channel_bands(run, trained=False)) for run in runs),
    )
