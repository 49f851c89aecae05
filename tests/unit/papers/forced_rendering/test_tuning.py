"""Figures 4e, 4f and 15 and their numbers: what single units respond to after training on stripes."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from composcope.decoders.cnn import CNN
from composcope.decoders.image_encoder import Autoencoder
from composcope.diagnosis.layers import LayerDiagnosis, Tuning
from composcope.experiments.run import build
from composcope.papers.forced_rendering import stripes
from composcope.papers.forced_rendering.presets import TINY
from composcope.papers.forced_rendering.stripes import plan, tuning
from composcope.papers.forced_rendering.stripes.plan import Amount, stripes_spec
from composcope.study.drawing import MARK

from .made import drawn, made_run, outlines

PANEL = {panel.name: panel for panel in stripes.PANELS}
SPEC = stripes_spec(TINY, Amount(stripes=True, bumps=0), 0)
LAYERS = ["first", "conv1", "conv2", "image"]


def tuned_layer(stripe: list[float], bump: list[float], shown: list[int], maps: Tensor) -> LayerDiagnosis:
    """A layer whose units have this likeness; of some the map is known."""
    units = Tuning(torch.tensor(stripe), torch.tensor(bump), 0.5, 0.25, 1, torch.tensor(shown), maps)
    return LayerDiagnosis("conv1", "", (len(stripe),), None, None, units, None, None)


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
    assert tuning.channel_bands(run) == pytest.approx(share, abs=1e-6)
    assert 0.1 < tuning.channel_bands(run, trained=False) < 0.9


def test_the_untrained_drawer_is_the_same_part_of_the_module_with_initial_weights():
    spec = replace(SPEC, decoder=Autoencoder(CNN(depth=2, width=4), width=4))
    module = build(spec)
    run = made_run(spec, module=module, drawer=module.get_submodule("decoder"))
    before = {name: weights.clone() for name, weights in run.drawer.state_dict().items()}
    for weights in module.parameters():
        weights.data += 1  # training
    untrained = tuning.untrained_drawer(run).state_dict()
    assert untrained.keys() == before.keys()
    assert all(torch.equal(untrained[name], before[name]) for name in before)


def test_first_layers_show_one_value_then_both(gather):
    first = tuning.first_layers(gather(plan.few_and_without))
    assert [row["trained on"] for row in first.table()] == ["stripes + 10"] * 2 + ["20 bumps"] * 2
    for channels in first.channels.values():
        assert channels.maps.shape == (3, 4, 2, 2)
        assert channels.maps.min() >= 0


def test_figure_4e_draws_channels_by_input(gather):
    first = tuning.first_layers(gather(plan.few_and_without))
    figure = drawn(PANEL["4e"], first)
    names = ["stripes + 10", "20 bumps"]
    for block, channels, name in zip(figure.subfigs, first.channels.values(), names, strict=True):
        shown = torch.stack([torch.as_tensor(np.array(axes.images[0].get_array())) for axes in block.axes])
        assert torch.equal(shown, channels.maps.flatten(0, 1))
        assert {axes.images[0].get_clim()[1] for axes in block.axes} == {channels.maps.max().item()}
        assert block.get_suptitle().startswith(f"{name}: {np.mean(channels.bands):.0%} along own axis")
        assert [axes.get_title() for axes in block.axes[:4]] == [f"ch. {index}" for index in channels.indices]
    labels = [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()]
    assert labels == list(first.inputs)


def test_sample_units_go_from_stripe_to_bump():
    maps = torch.arange(3.0)[:, None, None].expand(3, 4, 4)
    layer = tuned_layer([0.9, 0.1, 0.5, 0.0], [0.0, 0.8, 0.2, 0.0], [2, 0, 1], maps)
    stripe, middle, bump = tuning.sample_units(layer, (0, 0.5, 1))
    assert [unit.index for unit in (stripe, middle, bump)] == [0, 2, 1]
    assert [unit.map[0, 0].item() for unit in (stripe, middle, bump)] == [1, 0, 2]
    assert (stripe.stripe, bump.bump) == pytest.approx((0.9, 0.8))
    assert tuning.bump_units(layer) == pytest.approx(1 / 3)


def test_curves_are_means_along_the_other_axis():
    unit = tuning.Unit("conv1", 0, torch.tensor([[0.0, 2.0], [4.0, 6.0]]), 0.0, 0.0)
    by_x, by_y = unit.curves
    assert by_x.tolist() == [1, 5]
    assert by_y.tolist() == [2, 4]


def test_early_and_late_are_the_layers_next_to_code_and_image(gather):
    run = gather(plan.with_few).any_run
    assert (tuning.early(run).name, tuning.late(run).name) == ("first", "conv2")
    likeness = tuning.typical(gather(plan.with_few)).table()
    assert [row["layer"] for row in likeness] == ["code", *LAYERS]
    assert likeness[0]["stripe-likeness"] == pytest.approx(1)  # a one-hot unit responds to one value of one factor
    assert likeness[0]["additive share"] == pytest.approx(1)


def test_layers_without_tuning_have_no_likeness():
    layer = LayerDiagnosis("conv1", "", (1,), None, None, None, None, None)
    assert math.isnan(tuning.stripe_likeness(layer))
    assert math.isnan(tuning.bump_units(layer))
    assert tuning.sample_units(layer, (0.5,)) == []


def test_figure_4f_draws_a_unit_per_layer_and_the_likeness_of_all(gather):
    tunings = tuning.typical(gather(plan.with_few))
    ((key, units),) = tunings.units.items()
    left, right = drawn(PANEL["4f"], tunings).subfigs
    maps, curves = left.axes[:4], left.axes[4:]
    assert [axes.get_title() for axes in maps] == LAYERS
    for above, below, layer in zip(maps, curves, LAYERS, strict=True):
        (unit,) = units[layer]
        assert np.array_equal(above.images[0].get_array(), unit.map.T)
        assert outlines(above) == [(MARK.lower(), True)]
        assert [line.get_ydata().tolist() for line in below.lines] == [curve.tolist() for curve in unit.curves]
    (likeness,) = right.axes
    stripe = next(line for line in likeness.lines if line.get_label() == "stripe-likeness")
    assert stripe.get_ydata() == pytest.approx(tunings.likeness[key].trained["stripe-likeness"].mean(0).numpy())


def test_figure_15_draws_two_units_per_layer_and_kind_of_run(gather):
    tunings = tuning.stripe_and_bump(gather(plan.none_and_most))
    figure = drawn(PANEL["15"], tunings)
    assert [block.get_suptitle() for block in figure.subfigs] == ["stripes + 0", "stripes + 20"]
    for block, units in zip(figure.subfigs, tunings.units.values(), strict=True):
        maps = [axes for axes in block.axes if axes.images]
        shown = [unit for layer in LAYERS for unit in units[layer]]
        assert len(shown) == 2 * len(LAYERS)
        for axes, unit in zip(maps, shown, strict=True):
            assert np.array_equal(axes.images[0].get_array(), unit.map.T)
            assert axes.get_title(loc="left") == f"stripe {unit.stripe:.2f}, bump {unit.bump:.2f}"
    assert [axes.get_ylabel() for axes in figure.subfigs[0].axes if axes.get_ylabel()] == LAYERS
