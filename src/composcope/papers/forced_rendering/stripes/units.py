"""What single units respond to after training on stripes: figures 4e, 4f and 15, and numbers of claims."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from composcope.activations.recording import record
from composcope.diagnosis.layers import LayerDiagnosis
from composcope.factors import Factor
from composcope.measures.tuning import UnitScores, tuning_maps, unit_scores
from composcope.papers.forced_rendering.base import heldout_map
from composcope.papers.forced_rendering.layers import UNTRAINED, nan_if_none, profile_rows
from composcope.papers.forced_rendering.lowrank.figures import own_axis_share
from composcope.runs.run import Run, build
from composcope.sampling import single_values
from composcope.study.evidence import Evidence
from composcope.study.layers import LayerNumber, layer
from composcope.study.numbers import Numbers, Row, Rows
from composcope.study.plan import label_of


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


def first_layers(evidence: Evidence, shown: int = 5) -> Numbers:
    """The first layer of every run: what its units respond to over (x, y), and its maps for x alone, y alone and both.

    Of the first seed some units, from the least to the most stripe-like, and its most active channels at the middle of
    the hole. The shares are the single-factor share of units and the own-axis share of maps.
    """
    heldout = evidence.any_run.split.heldout
    x, y = heldout.median(0).values.tolist()
    latents = torch.tensor([[x, torch.nan], [torch.nan, y], [x, y]])

    def numbers(run: Run) -> Row:
        return {
            "units: share of one factor": single_factor_share(run),
            "units: before training": single_factor_share(run, trained=False),
            "maps: share along own axis": nan_if_none(channel_bands(run)),
            "maps: before training": nan_if_none(channel_bands(run, trained=False)),
        }

    inputs = [f"x = {x:g}\nalone", f"y = {y:g}\nalone", f"x = {x:g},\ny = {y:g}"]
    common = {"inputs": inputs}
    return evidence.numbers("trained on", numbers, lambda run: _channels(run, latents, shown), common)


def _channels(run: Run, latents: Tensor, shown: int) -> Row:
    factors = run.spec.task.factors
    maps = first_layer(run, run.drawer, latents)
    most_active = maps.flatten(2).var(2).sum(0).topk(min(shown, maps.shape[1])).indices
    responses = middle_responses(first_layer(run, run.drawer, run.split.latents))
    scores = unit_scores(responses, factors)
    chosen = spaced(scores.main.amax(1).masked_fill(scores.silent, torch.nan), torch.linspace(0.1, 0.9, shown).tolist())
    return {
        "units": tuning_maps(responses[:, chosen], factors),
        "unit shares": scores.main.amax(1)[chosen].tolist(),
        "maps": maps[:, most_active],
        "channels": most_active.tolist(),
    }


def middle_responses(outputs: Float[Tensor, "n channels ..."]) -> Float[Tensor, "n channels"]:
    """The units at the middle of a layer's maps, one per channel: a sample chosen without looking at what they do."""
    return outputs if outputs.ndim == 2 else outputs[:, :, outputs.shape[2] // 2, outputs.shape[3] // 2]


def spaced(scores: Float[Tensor, "units"], quantiles: Sequence[float]) -> list[int]:
    """The units at these quantiles of the score, each once; units without a score are left out."""
    order = scores.nan_to_num(torch.inf).argsort(stable=True)[: int((~scores.isnan()).sum())].tolist()
    return list(dict.fromkeys(order[round(quantile * (len(order) - 1))] for quantile in quantiles)) if order else []


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


def _bump_units(layer: LayerDiagnosis) -> float:
    """Share of the units that respond which are more bump-like than stripe-like."""
    if layer.tuning is None:
        return torch.nan
    responding = len(layer.tuning.bump) - layer.tuning.silent
    return (layer.tuning.bump > layer.tuning.stripe).sum().item() / responding if responding else torch.nan


# Of all units that respond, or of the sample units among them, those at the middle of the maps; NaN if none responds.
STRIPE, BUMP = layer("tuning.stripe"), layer("tuning.bump")
SAMPLE_STRIPE = LayerNumber(lambda layer: _of_middle(layer, "stripe"))
SAMPLE_BUMP = LayerNumber(lambda layer: _of_middle(layer, "bump"))
# A layer's variance that is a part for x plus a part for y: all of it for stripes and crosses, less for bumps.
ADDITIVE = layer("linear_factorization.main_effects")
LIKENESS = {
    "stripe-likeness, sample": SAMPLE_STRIPE,
    "bump-likeness, sample": SAMPLE_BUMP,
    "stripe-likeness": STRIPE,
    "bump-likeness": BUMP,
    "additive share": ADDITIVE,
    "bump-like units": LayerNumber(_bump_units),
}


@torch.no_grad()
def sample_units(run: Run, quantiles: Sequence[float]) -> dict[str, Rows]:
    """Of every layer's sample units, those at these quantiles from the most stripe-like to the most bump-like.

    Each with its channel, its activation over (x, y), and how stripe-like and bump-like it is.
    """
    factors = run.spec.task.factors
    responses: dict[str, list[Tensor]] = {}
    for codes in run.spec.encoding.encode(run.split.latents, factors).split(128):  # in bounded memory
        outputs, _ = record(run.drawer, codes)
        for name, output in outputs.items():
            responses.setdefault(name, []).append(middle_responses(output))
    return {name: _at(torch.cat(parts), factors, quantiles) for name, parts in responses.items() if name != "code"}


def _at(responses: Tensor, factors: Sequence[Factor], quantiles: Sequence[float]) -> Rows:
    scores, maps = unit_scores(responses, factors), tuning_maps(responses, factors)
    chosen = spaced((scores.bump - scores.stripe).masked_fill(scores.silent, torch.nan), quantiles)
    return [
        {
            "channel": unit,
            "map": maps[unit],
            "stripe": scores.stripe[unit].item(),
            "bump": scores.bump[unit].item(),
        }
        for unit in chosen
    ]


def typical(evidence: Evidence) -> Numbers:
    """One sample unit per layer: the median."""
    return _tunings(evidence, (0.5,))


def stripe_and_bump(evidence: Evidence) -> Numbers:
    """The first and the last kind of run, two sample units per layer: a quarter from either end."""
    return _tunings(evidence, (0.25, 0.75))


def _tunings(evidence: Evidence, quantiles: Sequence[float]) -> Numbers:
    """The mean likeness of units by layer; of the first and the last kind of run some sample units of every layer."""
    keys = list(evidence)
    return Numbers(
        profile_rows(evidence, LIKENESS),
        first={label_of(key): sample_units(evidence.first(key), quantiles) for key in (keys[0], keys[-1])},
        common={"heldout": heldout_map(evidence.any_run)},
    )


def unit_table(numbers: Numbers) -> Rows:
    """One row per kind of run and layer: the mean likeness over seeds, and the channels of the units shown."""
    rows: Rows = []
    for kind in numbers.kinds:
        for index, name in enumerate(numbers.of(kind)[0]["layers"]):
            row: Row = {"trained on": kind, "layer": name}
            for after, text in (("", ""), (UNTRAINED, " before training")):
                for measure in LIKENESS:
                    values = numbers.stack(f"{measure}{after}", kind)[:, index]
                    row[f"{measure}{text}"] = values.nanmean().item()
            units = numbers.first.get(kind, {}).get(name, [])
            row |= {"channels shown": " ".join(str(unit["channel"]) for unit in units), "seeds": len(numbers.of(kind))}
            rows.append(row)
    return rows
