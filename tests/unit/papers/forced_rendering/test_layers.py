"""What is read from a network layer by layer, how it is drawn, and what several figures draw in the same way."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from composcope.diagnosis.layers import true_geometry
from composcope.papers.forced_rendering import layers, volumes
from composcope.papers.forced_rendering.base import (
    PAPER,
    QUICK,
    TINY,
    accuracy,
    base_spec,
    heldout_map,
    heldout_share,
    seen_share,
)
from composcope.papers.forced_rendering.drawing import (
    LABELS,
    SCALE,
    draw_dots,
    draw_evenness,
    draw_one_code,
    draw_profiles,
    draw_share,
    draw_volumes,
)
from composcope.study.claim import magnitude
from composcope.study.drawing import COLOURS, MARK
from composcope.study.layers import fall, hidden, largest_fall, layer, layer_trend, steadiness
from composcope.study.numbers import Numbers
from composcope.tasks.bump import BumpTask

from .made import layered_run, made, made_layer, made_run, outlines, titled, titles


@dataclass(frozen=True)
class Depth:
    """A plan's key that belongs to a group."""

    code: str
    depth: int

    @property
    def group(self) -> str:
        return self.code

    @property
    def label_in_group(self) -> str:
        return f"depth {self.depth}"


def test_measures_of_a_layer_are_means_over_factors_and_nan_where_missing():
    made_up = made_layer(0.9, 0.5, score=0.75, inside=100.0)
    probes = [number.measure(made_up) for number in layers.PROBES.values()]
    assert probes == [1, pytest.approx(0.85), pytest.approx(0.45)]
    assert [number.measure(made_up) for number in layers.FACTORIZATION.values()] == [0.875, 0.75]
    assert layers.GAP.measure(made_up) == layers.GRID_GAP.measure(made_up) == pytest.approx(2)
    empty = replace(made_up, geometry=None, probe=None, differences=None)
    everything = (*layers.PROBES.values(), *layers.FACTORIZATION.values(), layers.GAP, layers.GRID_GAP)
    assert all(math.isnan(number.measure(empty)) for number in everything)


def test_exact_derivatives_are_not_replaced_by_differences():
    exact = layer("geometry.volume.gap", "exact")
    made = made_layer(inside=100.0)
    assert exact.measure(made) == pytest.approx(2)
    one_hot = replace(made, geometry=replace(made.geometry, method="differences"))
    assert math.isnan(exact.measure(one_hot))
    assert layers.GAP.measure(one_hot) == layers.GRID_GAP.measure(one_hot) == pytest.approx(2)


def test_curves_before_the_image_end_at_the_last_hidden_layer():
    run = layered_run(
        0, [made_layer(score=s) for s in (1, 0.9, 0.8, 0.5)], [made_layer(score=s) for s in (1, 1, 0.95, 0.9)]
    )
    factorization = layers.FACTORIZATION["factorization, mean of ratios"]
    assert factorization.curve(run).tolist() == [1, 0.9, 0.8]
    assert factorization.curve(run, untrained=True).tolist() == [1, 1, 0.95]
    places = [factorization.at(place)(run) for place in ("first hidden", "last hidden", "image")]
    assert places == pytest.approx([0.9, 0.8, 0.5])
    assert layers.FACTORIZATION["factorization, ratio of means"].at("last hidden")(run) == pytest.approx(0.9)
    assert factorization.beyond_untrained(fall)(run) == pytest.approx(0.15)
    assert factorization.of_curve(hidden(fall))(run) == pytest.approx(0.1)
    assert (factorization - factorization).curve(run).tolist() == [0, 0, 0]


def test_the_trend_is_that_of_ranks():
    assert layer_trend(torch.tensor([1.0, 0.99, 0.2])) == pytest.approx(-1)
    assert layer_trend(torch.tensor([1.0, 0.8, 0.9])) == pytest.approx(-0.5)
    assert math.isnan(layer_trend(torch.ones(4)))


def test_a_steady_fall_is_1_and_every_rise_takes_from_it():
    assert steadiness(torch.linspace(1, 0.5, 6)) == pytest.approx(1, abs=1e-5)
    assert steadiness(torch.tensor([1.0, 0.5, 0.7, 0.4])) == pytest.approx(0.6)
    assert largest_fall(torch.tensor([1.0, 0.6, 0.9, 0.8])) == pytest.approx(0.4)
    assert math.isnan(steadiness(torch.ones(3)))


def test_the_image_gap_has_no_sign():
    for inside in (0.01, 100.0):
        assert magnitude(layers.GAP.at("image"))(
            layered_run(0, [made_layer(), made_layer(inside=inside)])
        ) == pytest.approx(2)


def test_keys_are_grouped_by_their_attributes_and_others_are_named_with_their_code():
    run = layered_run(0, [made_layer()])
    for key, group, name in (
        (Depth("rate", 3), "rate", "depth 3"),
        ("transformer", layers.OTHERS, "transformer (bump)"),
        ("odd, depth 3", layers.OTHERS, "odd, depth 3 (bump)"),  # nothing is parsed
    ):
        row = layers.network_row(key, run)
        assert (row["group"], row["label"]) == (group, name)


@pytest.fixture
def profiles() -> Numbers:
    runs = [
        layered_run(
            seed,
            [made_layer(1.0), made_layer(0.8 - 0.1 * seed), made_layer(0.5)],
            [made_layer(1.0), made_layer(0.95), made_layer(0.9)],
        )
        for seed in (0, 1)
    ]
    other = layered_run(0, [made_layer(), made_layer(beyond=-3.0), made_layer()])
    return layers.every_profile(made({Depth("bump", 2): runs, "transformer": [other]}))


def test_profiles_are_by_seed_and_layer_with_the_untrained_beside(profiles):
    network, _, other = profiles.rows
    assert (network["group"], network["label"], network["layers"]) == ("bump", "depth 2", ["code", "1", "image"])
    assert (other["group"], other["label"]) == (layers.OTHERS, "transformer (bump)")
    curves = profiles.stack("probe R2, cross-validated", network["run"])
    assert torch.allclose(curves, torch.tensor([[0.95, 0.75, 0.45], [0.95, 0.65, 0.45]]).double())
    row = layers.profile_table(profiles)[0]
    assert row["network"] == "bump, depth 2"
    assert row["probe R2, cross-validated: last hidden"] == pytest.approx(0.7)
    assert row["probe R2, cross-validated: low"] == pytest.approx(0.7 - 12.706 * 0.05, abs=1e-3)
    assert row["probe R2, cross-validated: untrained"] == pytest.approx(0.9)
    assert row["probe R2, cross-validated: image"] == pytest.approx(0.45)
    assert row["probe R2, cross-validated: by layer"] == "0.950 0.700 0.450"


def test_profiles_hold_the_measures_asked_for_and_the_true_images():
    run = layered_run(0, [made_layer(), made_layer()])
    profiles = layers.probes(made({Depth("bump", 2): [run]}))
    truth = layers.true_images(run)
    assert profiles.common["truth"] == {name: number.measure(truth) for name, number in layers.PROBES.items()}
    others = layers.factorizations(made({Depth("bump", 2): [run]}))
    assert list(others.common["truth"]) == list(layers.FACTORIZATION)


def test_profiles_are_drawn_by_group_with_means_and_untrained_in_grey(profiles):
    figure = draw_profiles(profiles)
    assert [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()] == ["bump code", "other decoders"]
    axes = figure.axes[1]
    assert axes.get_title() == "$R^2$,\ncross-validated"
    lines = {line.get_label(): line for line in axes.lines}
    assert lines["depth 2"].get_ydata() == pytest.approx([0.95, 0.7])  # without the image
    assert lines["untrained"].get_ydata() == pytest.approx([0.95, 0.9])
    (dot,) = (line for line in axes.lines if line.get_marker() == "o")
    assert dot.get_xydata()[0] == pytest.approx([2, 0.45])
    assert set(lines["true images"].get_ydata()) == {profiles.common["truth"]["probe R2, cross-validated"]}
    bottoms = [axes.get_ylim()[0] for axes in figure.axes[:5]]
    assert bottoms[0] == pytest.approx(1 - 1.15 * 0.02)  # all are 1; still the axis spans 2 %
    assert bottoms[1] == pytest.approx(1 - 1.15 * (1 - 0.45))  # the dot is the lowest
    assert bottoms[2] == pytest.approx(1 - 1.15 * 2)  # not below -1
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["in", "0", "1"]


def test_networks_of_one_code_are_drawn_up_to_the_last_hidden_layer(profiles):
    one_code = replace(profiles, rows=profiles.of(profiles.kinds[0]))
    figure = draw_one_code(one_code)
    assert titles(figure) == list(LABELS.values())
    assert figure.get_suptitle() == "bump code"
    for axes in figure.axes[:5]:
        (line,) = (line for line in axes.lines if line.get_label() == "depth 2")
        assert line.get_xdata() == pytest.approx([0, 1])


def test_volume_maps_are_floored_and_relative_to_seen_points():
    flat = layered_run(0, [made_layer(), made_layer(inside=0.0)])
    maps_by_network = layers.volumes(made({Depth("bump", 2): [flat]}))
    (network,), heldout = maps_by_network.first.values(), maps_by_network.common["heldout"]
    assert network["maps"][0].abs().max() == 0
    assert torch.allclose(network["maps"][1, heldout], torch.tensor(-6.0).double())
    assert (network["floor"], network["floored"]) == (1e-6, int(heldout.sum()))
    row = layers.volume_table(maps_by_network)[0]
    assert row["gap by layer"] == row["gap by layer, differences on the grid"] == "+0.00 -6.00"
    missing = layered_run(0, [made_layer(), replace(made_layer(), geometry=None)])
    (network,) = layers.volumes(made({Depth("bump", 2): [missing]})).first.values()
    assert network["maps"][1].isnan().all()


def test_volume_maps_are_drawn_with_their_gap_above_and_the_image_last():
    shallow = layered_run(0, [made_layer(), made_layer(inside=10.0)])
    deep = layered_run(0, [made_layer(), made_layer(), made_layer(inside=0.1)])
    maps_by_network = layers.volumes(made({Depth("bump", 1): [shallow], Depth("bump", 2): [deep]}))
    figure = draw_volumes(maps_by_network)
    even, more, less = "+0.00 | +0.00", "+1.00 | +1.00", "-1.00 | -1.00"
    assert titles(figure) == [f"code\n{even}", f"image\n{more}", even, f"1\n{even}", less]
    maps = figure.axes[:5]
    assert np.allclose(maps[1].images[0].get_array(), next(iter(maps_by_network.first.values()))["maps"][1].numpy().T)
    assert maps[1].images[0].get_clim() == (-SCALE, SCALE)
    assert all(outlines(axes) == [(MARK.lower(), True)] for axes in maps)
    assert maps[1].get_position().x0 == pytest.approx(maps[4].get_position().x0)  # both are images, in the last column


def test_volume_maps_can_have_a_scale_of_their_own_as_in_the_paper():
    run = layered_run(0, [made_layer(), made_layer(inside=10.0)])
    figure = draw_volumes(layers.volumes(made({Depth("bump", 1): [run]})), scale="layer")
    flat, uneven = (axes.images[0] for axes in figure.axes[:2])
    values = np.asarray(uneven.get_array())
    centre, half = values.mean(), 3 * values.std(ddof=1)
    assert uneven.get_clim() == pytest.approx((centre - half, centre + half))
    assert flat.get_clim() == (-1, 1)  # no deviation, so no scale


def test_distortion_is_of_a_region_and_relative_to_seen_points():
    run = layered_run(0, [made_layer(), made_layer(inside=0.01), made_layer(inside=100.0)])
    hole = heldout_map(run)
    assert volumes.distortions(run, hole).tolist() == pytest.approx([0, 2])  # the image is left out
    assert volumes.distortions(run, ~hole).tolist() == pytest.approx([0, 0])


def test_evenness_compares_kinds_of_runs_with_the_true_images():
    even = layered_run(0, [made_layer(), made_layer()])
    uneven = layered_run(0, [made_layer(), made_layer(inside=0.1)])
    evenness = volumes.evenness(made({"bumps": [even], "none": [uneven]}))
    assert evenness.stack("spread", "bumps").abs().max() == 0
    assert volumes.image_spread(uneven) == pytest.approx(evenness.stack("spread", "none")[0, 1].item())
    rows = volumes.evenness_table(evenness)
    assert [row["runs"] for row in rows[2:]] == ["none", "none", "true images"]
    assert rows[3]["held-out minus seen"] == pytest.approx(-1)
    truth = true_geometry(even.spec.task, even.split.latents, even.split.mask)
    assert rows[-1]["held-out minus seen"] == pytest.approx(truth.volumes.gap)
    figure = draw_evenness(evenness, {"bumps": "cured", "none": "not cured"}.get)
    assert np.allclose(titled(figure, titles(figure)[1]).images[0].get_array(), evenness.common["truth"].numpy().T)
    assert [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel().endswith("y")] == [
        "cured\n\ny",
        "not cured\n\ny",
    ]


def test_the_true_volume_gap_is_the_closed_form():
    size = 9
    task = BumpTask(size)
    steps = torch.arange(size).double()[None, :] - torch.arange(size).double()[:, None]
    weight = torch.exp(-steps.square())
    square, one, odd = ((steps**power * weight).sum(1) for power in (2, 0, 1))
    metric = torch.outer(square, one) * torch.outer(one, square) - torch.outer(odd, odd).square()
    inside = torch.zeros(size, size, dtype=torch.bool)
    inside[3:6, 3:6] = True
    logs = metric.sqrt().log10()
    expected = (logs[inside].mean() - logs[~inside].mean()).item()
    assert true_geometry(task, task.grid(), inside.flatten()).volumes.gap == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("preset", [QUICK, PAPER], ids=lambda preset: preset.name)
def test_true_images_are_what_claims_4_and_6_say_of_them(preset):
    run = made_run(base_spec(preset, "bump", 0))
    truth = layers.true_images(run)
    inside = truth.geometry.volume[run.split.mask]
    assert torch.allclose(inside, torch.tensor(math.pi / 2).double(), rtol=2e-2)  # of a whole Gaussian of width 1
    _, crossed, heldout = (number.measure(truth) for number in layers.PROBES.values())
    assert layers.FACTORIZATION["factorization, mean of ratios"].measure(truth) > 0.99
    assert crossed > 0.99
    assert 0.6 < heldout < 0.7
    assert abs(layers.GAP.measure(truth)) < math.log10(1.25) < math.log10(2)


def test_errors_are_shares_of_a_blank_images():
    error = {"seen_mse": 0.01, "heldout_mse": 0.3, "blank_mse": 0.5, "accuracy": 0.25}
    run = made_run(base_spec(TINY, "bump", 0), error=error)
    assert (seen_share(run), heldout_share(run), accuracy(run)) == (0.02, 0.6, 0.25)


def test_shares_are_clamped_to_the_scale_and_a_seen_region_is_dotted_white():
    share = torch.tensor([[1e-5, 0.5], [1.0, 10.0]])
    region = torch.tensor([[False, False], [True, False]])
    for heldout, outline in ((True, (MARK.lower(), True)), (False, ("#ffffff", False))):
        axes = Figure().subplots()
        picture = draw_share(axes, share, region, heldout)
        assert np.allclose(picture.get_array(), [[1e-3, 1.0], [0.5, 3.0]])
        assert outlines(axes) == [outline]


def test_dots_are_one_per_seed_around_the_mean():
    axes = Figure().subplots()
    draw_dots(axes, 2.0, [1.0, 3.0], COLOURS[1])
    mean, dots = axes.lines
    assert list(mean.get_ydata()) == [2.0, 2.0]
    assert list(dots.get_ydata()) == [1.0, 3.0]
    assert np.mean(dots.get_xdata()) == 2.0
    assert to_hex(dots.get_color()) == COLOURS[1].lower()
    draw_dots(axes, 0.0, [], COLOURS[1])
    assert len(axes.lines) == 2
