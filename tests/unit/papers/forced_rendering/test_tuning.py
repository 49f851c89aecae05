"""Figures 4e, 4f and 15 and their numbers: what single units respond to after training on stripes."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from composcope.decoders.cnn import CNN
from composcope.decoders.image_encoder import Autoencoder
from composcope.diagnosis.layers import LayerDiagnosis, Tuning
from composcope.papers.forced_rendering import stripes
from composcope.papers.forced_rendering.base import TINY
from composcope.papers.forced_rendering.stripes import claims, figures, units
from composcope.papers.forced_rendering.stripes.figures import Amount, few_bumps, increasing_bumps, stripes_spec
from composcope.runs.run import build
from composcope.study.drawing import MARK
from composcope.study.layers import hidden, slope

from .made import made, made_run, outlines, picture

PANEL = {panel.name: panel for panel in stripes.PANELS}
SPEC = stripes_spec(TINY, Amount(stripes=True, bumps=0), 0)
LAYERS = ["first", "conv1", "conv2", "image"]


def tuned_layer(stripe: list[float], bump: list[float], shape: tuple[int, ...] | None = None) -> LayerDiagnosis:
    """A layer whose units have this likeness."""
    units = Tuning(torch.tensor(stripe), torch.tensor(bump), 0.5, 0.25, 1, torch.zeros(0).long(), torch.zeros(0, 4, 4))
    return LayerDiagnosis("conv1", "", shape or (len(stripe),), None, None, units, None, None)


def bands_module(vertical_for_x: bool) -> torch.nn.Module:
    """A first layer that answers x with a vertical band and y with a horizontal one, or the other way round."""
    module = CNN(depth=2, width=4).build((8, 8), (1, 8, 8))
    weight = module.first[0].weight.data
    profile = torch.rand(16, 4, weight.shape[2], generator=torch.Generator().manual_seed(0))
    vertical, horizontal = profile[:, :, None, :].expand_as(weight), profile[:, :, :, None].expand_as(weight)
    first, second = (vertical, horizontal) if vertical_for_x else (horizontal, vertical)
    module.first[0].weight.data = torch.cat([first[:8], second[8:]])
    module.first[0].bias.data.zero_()
    return module


@pytest.mark.parametrize(("vertical_for_x", "share"), [(True, 1.0), (False, 0.0)])
def test_channels_that_are_bands(vertical_for_x, share):
    module = bands_module(vertical_for_x)
    run = made_run(SPEC, module=module, drawer=module)
    assert units.channel_bands(run) == pytest.approx(share, abs=1e-6)
    assert 0.1 < units.channel_bands(run, trained=False) < 0.9


def test_the_untrained_drawer_is_the_same_part_of_the_module_with_initial_weights():
    spec = replace(SPEC, decoder=Autoencoder(CNN(depth=2, width=4), width=4))
    module = build(spec)
    run = made_run(spec, module=module, drawer=module.get_submodule("decoder"))
    before = {name: weights.clone() for name, weights in run.drawer.state_dict().items()}
    for weights in module.parameters():
        weights.data += 1  # training
    untrained = units.untrained_drawer(run).state_dict()
    assert untrained.keys() == before.keys()
    assert all(torch.equal(untrained[name], before[name]) for name in before)


def test_first_layers_show_one_value_then_both(gather):
    first = units.first_layers(gather(figures.few_and_without))
    assert [row["trained on"] for row in first.table()] == ["stripes + 10"] * 2 + ["20 bumps"] * 2
    for channels in first.first.values():
        assert channels["maps"].shape == (3, 4, 2, 2)
        assert channels["maps"].min() >= 0
        assert channels["units"].shape[1:] == (8, 8)
        assert channels["unit shares"] == sorted(channels["unit shares"])
    run = gather(figures.few_and_without).first(few_bumps(TINY))
    row = first.table()[0]
    assert row["units: share of one factor"] == units.single_factor_share(run)
    assert row["units: before training"] == units.single_factor_share(run, trained=False)


def test_a_unit_of_one_factor_is_a_stripe_and_a_sum_of_two_is_half_of_one():
    run = made_run(SPEC, drawer=None)
    x, y = run.split.latents.T
    one, both = torch.stack([x, 3 * y, x.sin()], 1), torch.stack([x + y, y - x], 1)
    for responses, share in ((one, 1.0), (both, 0.5), (torch.cat([one, torch.ones(64, 4)], 1), 1.0)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(units, "first_layer", lambda *_, responses=responses: responses)
            assert units.single_factor_share(run) == pytest.approx(share)


def test_figure_4e_draws_channels_by_input(gather):
    first = units.first_layers(gather(figures.few_and_without))
    figure = picture(PANEL["4e"], first)
    names = ["stripes + 10", "20 bumps"]
    for block, channels, name in zip(figure.subfigs, first.first.values(), names, strict=True):
        above, below = block.subfigs
        maps = [torch.as_tensor(np.array(axes.images[0].get_array())).T for axes in above.axes]
        assert torch.equal(torch.stack(maps), channels["units"])
        assert [axes.get_title() for axes in above.axes] == [f"{share:.0%}" for share in channels["unit shares"]]
        share = np.mean(first.column("units: share of one factor", name))
        assert above.get_suptitle().startswith(f"{name}: {share:.0%} by one factor")
        shown = torch.stack([torch.as_tensor(np.array(axes.images[0].get_array())) for axes in below.axes])
        assert torch.equal(shown, channels["maps"].flatten(0, 1))
        assert {axes.images[0].get_clim()[1] for axes in below.axes} == {channels["maps"].max().item()}
        bands = np.mean(first.column("maps: share along own axis", name))
        assert below.get_suptitle().startswith(f"channels: {bands:.0%} along own axis")
        assert [axes.get_title() for axes in below.axes[:4]] == [f"ch. {index}" for index in channels["channels"]]
    labels = [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()]
    assert labels == ["units\nover (x, y)", *first.common["inputs"]]


def test_units_are_chosen_by_quantile_without_those_that_have_no_score():
    scores = torch.tensor([0.9, torch.nan, -0.5, 0.1])
    assert units.spaced(scores, (0, 0.5, 1)) == [2, 3, 0]
    assert units.spaced(scores[:1], (0.25, 0.75)) == [0]
    assert units.spaced(scores[1:2], (0.5,)) == []


def test_sample_units_are_at_the_middle_of_the_maps(gather):
    assert units.middle_units(tuned_layer([], [], (2, 3, 5))).tolist() == [7, 22]
    outputs = torch.arange(2 * 30.0).reshape(2, 2, 3, 5)
    assert torch.equal(units.middle_responses(outputs)[0], torch.tensor([7.0, 22.0]))
    run = gather(PANEL["4f"].plan).any_run
    for name, sample in units.sample_units(run, (0, 0.5, 1)).items():
        layer = run.diagnosis.layers[name]
        contrasts = [unit["bump"] - unit["stripe"] for unit in sample]
        assert contrasts == sorted(contrasts)
        for unit in sample:
            index = units.middle_units(layer)[unit["channel"]]
            assert unit["stripe"] == pytest.approx(layer.tuning.stripe[index].item(), abs=1e-3)
            assert unit["bump"] == pytest.approx(layer.tuning.bump[index].item(), abs=1e-3)


def test_the_sample_leaves_out_silent_units_and_those_beside_the_middle():
    layer = tuned_layer([0.1, 0.9, 0.5, 0.0], [0.0, 0.1, 0.3, 0.0], (4,))
    assert units.SAMPLE_STRIPE.measure(layer) == pytest.approx(0.5)
    assert units.SAMPLE_BUMP.measure(layer) == pytest.approx(0.4 / 3)
    assert units.LIKENESS["bump-like units"].measure(layer) == 0
    beside = tuned_layer([1.0] * 9, [0.0] * 4 + [0.5] + [0.0] * 4, (1, 3, 3))
    assert units.SAMPLE_BUMP.measure(beside) == pytest.approx(0.5)
    assert math.isnan(units.SAMPLE_BUMP.measure(tuned_layer([0.0], [0.0])))


def test_trends_over_layers_and_bumps():
    assert slope([1.0, 3.0, 5.0]) == pytest.approx(2)
    assert slope([1.0, 0.0, 1.0]) == pytest.approx(0)
    layers = {
        "code": tuned_layer([0.0], [1.0]),
        "first": tuned_layer([0.9], [0.1]),
        "conv1": tuned_layer([0.5], [0.2]),
        "conv2": tuned_layer([0.1], [0.3]),
        "image": tuned_layer([1.0], [0.0]),
    }
    run = made_run(SPEC, diagnosis=SimpleNamespace(layers=layers))
    contrast = units.SAMPLE_BUMP - units.SAMPLE_STRIPE
    assert contrast.of_curve(hidden(slope))(run) == pytest.approx(0.5)
    assert contrast.at("first hidden")(run) == pytest.approx(-0.8)
    assert units.SAMPLE_BUMP.at("last hidden")(run) == pytest.approx(0.3)
    kinds = list(increasing_bumps(TINY))
    runs = {key: [made_run(stripes_spec(TINY, key, seed)) for seed in (0, 1)] for key in kinds}
    evidence = made({**runs, kinds[-1]: runs[kinds[-1]][:1]})
    bumps = claims.over_bumps(lambda run: 2.0 * kinds.index(Amount(True, run.spec.sampling.bumps)))
    assert bumps(evidence) == pytest.approx({0: 2.0})  # seed 1 lacks the most bumps


def test_the_table_has_the_likeness_of_every_layer(gather):
    likeness = units.unit_table(units.typical(gather(PANEL["4f"].plan)))
    assert [row["layer"] for row in likeness] == ["code", *LAYERS]
    assert likeness[0]["stripe-likeness"] == pytest.approx(1)  # a unit of the code responds to one factor
    assert likeness[0]["stripe-likeness, sample"] == pytest.approx(1)
    assert likeness[0]["additive share"] == pytest.approx(1)


def test_layers_without_tuning_have_no_likeness():
    layer = LayerDiagnosis("conv1", "", (1,), None, None, None, None, None)
    assert math.isnan(units.STRIPE.measure(layer))
    assert math.isnan(units.LIKENESS["bump-like units"].measure(layer))
    assert math.isnan(units.SAMPLE_BUMP.measure(layer))


def test_figure_4f_draws_a_unit_per_layer_and_the_likeness_of_all(gather):
    tunings = units.typical(gather(PANEL["4f"].plan))
    ((kind, shown),) = tunings.first.items()
    left, right = picture(PANEL["4f"], tunings).subfigs
    maps, curves = left.axes[:4], left.axes[4:]
    assert [axes.get_title() for axes in maps] == LAYERS
    for above, below, layer in zip(maps, curves, LAYERS, strict=True):
        (unit,) = shown[layer]
        assert np.array_equal(above.images[0].get_array(), unit["map"].T)
        assert outlines(above) == [(MARK.lower(), True)]
        assert [line.get_ydata().tolist() for line in below.lines] == [
            unit["map"].mean(1).tolist(),
            unit["map"].mean(0).tolist(),
        ]
    for axes, measure in zip(right.axes, ("stripe-likeness, sample", "stripe-likeness"), strict=True):
        stripe = next(line for line in axes.lines if line.get_label() == measure)
        assert stripe.get_ydata() == pytest.approx(tunings.stack(measure, kind).nanmean(0).numpy())


def test_figure_15_draws_two_units_per_layer_and_kind_of_run(gather):
    tunings = units.stripe_and_bump(gather(increasing_bumps))
    figure = picture(PANEL["15"], tunings)
    assert [block.get_suptitle() for block in figure.subfigs] == ["stripes + 0", "stripes + 20"]
    for block, by_layer in zip(figure.subfigs, tunings.first.values(), strict=True):
        maps = [axes for axes in block.axes if axes.images]
        shown = [unit for layer in LAYERS for unit in by_layer[layer]]
        assert len(by_layer["image"]) == 1  # the pixel in the middle
        for axes, unit in zip(maps, shown, strict=True):
            assert np.array_equal(axes.images[0].get_array(), unit["map"].T)
            assert axes.get_title(loc="left") == f"stripe {unit['stripe']:.2f}, bump {unit['bump']:.2f}"
    assert [axes.get_ylabel() for axes in figure.subfigs[0].axes if axes.get_ylabel()] == LAYERS
