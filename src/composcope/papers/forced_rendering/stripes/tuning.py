"""What figures 4f and 15 show: what single units respond to, layer by layer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.activations.recording import record
from composcope.diagnosis.layers import LayerDiagnosis
from composcope.factors import Factor
from composcope.measures.tuning import tuning_maps, tuning_marginals, unit_scores
from composcope.papers.forced_rendering.base import heldout_map
from composcope.papers.forced_rendering.layers import Measure, Network, nan_if_none, profiles
from composcope.runs.run import Run
from composcope.study.evidence import Evidence
from composcope.study.panel import Rows
from composcope.study.plan import Key, label_of


def middle_responses(outputs: Float[Tensor, "n channels ..."]) -> Float[Tensor, "n channels"]:
    """The units at the middle of a layer's maps, one per channel: a sample chosen without looking at what they do."""
    return outputs if outputs.ndim == 2 else outputs[:, :, outputs.shape[2] // 2, outputs.shape[3] // 2]


def spaced(scores: Float[Tensor, "units"], quantiles: Sequence[float]) -> list[int]:
    """The units at these quantiles of the score, each once; units without a score are left out."""
    order = scores.nan_to_num(torch.inf).argsort(stable=True)[: int((~scores.isnan()).sum())].tolist()
    return list(dict.fromkeys(order[round(quantile * (len(order) - 1))] for quantile in quantiles)) if order else []


def stripe_likeness(layer: LayerDiagnosis) -> float:
    """Mean stripe-likeness over the layer's units that respond; NaN if none does."""
    return nan_if_none(layer.tuning.mean_stripe if layer.tuning else None)


def bump_likeness(layer: LayerDiagnosis) -> float:
    """Mean bump-likeness over the layer's units that respond; NaN if none does."""
    return nan_if_none(layer.tuning.mean_bump if layer.tuning else None)


def additive_share(layer: LayerDiagnosis) -> float:
    """Share of a layer's variance that is a part for x plus a part for y: 1 for stripes and crosses, less for bumps."""
    return nan_if_none(layer.linear_factorization.main_effects if layer.linear_factorization else None)


def middle_units(layer: LayerDiagnosis) -> Tensor:
    """Indices of the units of `middle_responses`; all units of a layer without maps."""
    count = layer.shape[0]
    if len(layer.shape) == 1:
        return torch.arange(count)
    _, height, width = layer.shape
    return torch.arange(count) * height * width + (height // 2) * width + width // 2


def _of_middle(layer: LayerDiagnosis, name: str) -> float:
    """The mean score of the middle units that respond; a silent unit has a stripe-likeness of exactly 0."""
    if layer.tuning is None:
        return torch.nan
    units = middle_units(layer)
    active = layer.tuning.stripe[units] + layer.tuning.bump[units] > 0
    scores: Tensor = getattr(layer.tuning, name)[units][active]
    return scores.double().mean().item()


def sample_stripe(layer: LayerDiagnosis) -> float:
    """Mean stripe-likeness of the sample units, those at the middle of the maps; NaN if none responds."""
    return _of_middle(layer, "stripe")


def sample_bump(layer: LayerDiagnosis) -> float:
    """Mean bump-likeness of the sample units, those at the middle of the maps; NaN if none responds."""
    return _of_middle(layer, "bump")


def bump_units(layer: LayerDiagnosis) -> float:
    """Share of the units that respond which are more bump-like than stripe-like."""
    if layer.tuning is None:
        return torch.nan
    responding = len(layer.tuning.bump) - layer.tuning.silent
    return (layer.tuning.bump > layer.tuning.stripe).sum().item() / responding if responding else torch.nan


LIKENESS: Mapping[str, Measure] = {
    "stripe-likeness, sample": sample_stripe,
    "bump-likeness, sample": sample_bump,
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
    """A unit's activation over (x, y), and how stripe-like and bump-like it is; `index`: its channel."""

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


@torch.no_grad()
def sample_units(run: Run, quantiles: Sequence[float]) -> dict[str, list[Unit]]:
    """Of every layer's sample units, those at these quantiles from the most stripe-like to the most bump-like."""
    factors = run.spec.task.factors
    responses: dict[str, list[Tensor]] = {}
    for codes in run.spec.encoding.encode(run.split.latents, factors).split(128):  # in bounded memory
        outputs, _ = record(run.drawer, codes)
        for name, output in outputs.items():
            responses.setdefault(name, []).append(middle_responses(output))
    return {
        name: _at(name, torch.cat(parts), factors, quantiles) for name, parts in responses.items() if name != "code"
    }


def _at(layer: str, responses: Tensor, factors: Sequence[Factor], quantiles: Sequence[float]) -> list[Unit]:
    scores, maps = unit_scores(responses, factors), tuning_maps(responses, factors)
    chosen = spaced((scores.bump - scores.stripe).masked_fill(scores.silent, torch.nan), quantiles)
    return [Unit(layer, unit, maps[unit], scores.stripe[unit].item(), scores.bump[unit].item()) for unit in chosen]


@dataclass(frozen=True)
class Tunings:
    """Some sample units of every layer after the code, by kind of run and layer, and the mean likeness of units.

    Some kinds of runs may have only the likeness.
    """

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
                "channels shown": " ".join(str(unit.index) for unit in self.units.get(key, {}).get(layer, [])),
                "seeds": len(next(iter(network.trained.values()))),
            }
            for key, network in self.likeness.items()
            for index, layer in enumerate(network.layers)
        ]


def typical(evidence: Evidence) -> Tunings:
    """One sample unit per layer: the median."""
    return _tunings(evidence, (0.5,))


def stripe_and_bump(evidence: Evidence) -> Tunings:
    """The first and the last kind of run, two sample units per layer: a quarter from either end."""
    return _tunings(evidence, (0.25, 0.75))


def _tunings(evidence: Evidence, quantiles: Sequence[float]) -> Tunings:
    keys = list(evidence)
    return Tunings(
        units={key: sample_units(evidence.first(key), quantiles) for key in dict.fromkeys((keys[0], keys[-1]))},
        likeness=dict(zip(evidence, profiles(evidence, LIKENESS).networks, strict=True)),
        heldout=heldout_map(evidence.any_run),
    )
