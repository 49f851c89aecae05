"""Figures 2 and 10 to 14 at the tiny preset, and claims 4, 5, 6 and 18; what is read by layer is in test_layers.py."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from composcope.holdouts import split
from composcope.papers.forced_rendering import base, depths
from composcope.papers.forced_rendering.base import PAPER, QUICK, TINY
from composcope.papers.forced_rendering.depths import claims, figures
from composcope.papers.forced_rendering.depths.figures import KINDS, PAIR, DecoderKey
from composcope.papers.forced_rendering.layers import OTHERS, volumes
from composcope.runs.run import Run
from composcope.study.claim import UNDEFINED
from composcope.study.drawing import MARK
from composcope.study.judging import judge
from composcope.study.observations import Observations, observe
from composcope.study.plan import Key, of_preset, specs_of
from composcope.tasks.bump import BumpTask

from .judging import judged
from .made import layered_run, made, outlines, picture, titles
from .made import made_layer as layer

PANEL = {panel.name: panel for panel in depths.PANELS}
CLAIM = {claim.number: claim for claim in depths.CLAIMS}


def effect(number: int, part: int, runs: dict[Key, list[Run]]) -> list[float]:
    return list(CLAIM[number].parts[part].values(made(runs)).values())


@pytest.mark.parametrize("preset", [TINY, QUICK, PAPER], ids=lambda preset: preset.name)
def test_plans_are_parts_of_the_large_ones(preset):
    everything = specs_of(figures.cnns_and_others(preset)) | specs_of(figures.mlps(preset))
    for source in (*depths.PANELS, *depths.CLAIMS):
        assert specs_of(source.plan(preset)).keys() <= everything.keys()
    depth, mlp_depth = of_preset(base.SIZES, preset).depth, figures.mlp_depth(preset)
    assert mlp_depth in of_preset(figures.SIZES, preset).mlp_depths
    assert [key.label for key in PANEL["2e"].plan(preset)] == [f"bump, depth {depth}"]
    assert list(figures.shallow_and_deep(preset)) == [figures.shallow(preset), figures.deep(preset)]
    for key, specs in {**figures.cnns(preset), **figures.mlps(preset)}.items():
        assert {(spec.decoder.kind.upper(), spec.encoding.kind, spec.decoder.depth) for spec in specs} == {
            (key.kind, key.code, key.depth)
        }
    depths_of = {"CNN": depth, "MLP": mlp_depth}
    assert set(figures.cnn_and_mlp(preset)) == {
        DecoderKey(kind, code, depths_of[kind]) for kind in KINDS for code in PAIR
    }
    for specs in (*figures.cnn_and_mlp(preset).values(), *figures.shallow_and_deep(preset).values()):
        assert len(specs) >= len(of_preset(base.SIZES, preset).seeds)  # what claims rest on has all seeds


def test_networks_are_as_the_authors_had_them():
    cnn = figures.cnns(PAPER)[DecoderKey("CNN", "rate", 10)]
    assert [(spec.seed, spec.training.epochs, spec.decoder.last_init) for spec in cnn] == [(20, 50, "transposed")]
    mlp = figures.mlps(PAPER)[DecoderKey("MLP", "rate", 7)]
    assert (len(mlp), mlp[0].decoder.width, mlp[0].training.epochs) == (6, 128, 20)


def test_a_key_is_read_as_before():
    key = DecoderKey("CNN", "bump", 3)
    assert (key.label, key.group, key.label_in_group) == ("bump, depth 3", "bump", "depth 3")


@pytest.mark.parametrize("source", [figures.cnns_and_others, figures.mlps], ids=["CNNs and others", "MLPs"])
def test_the_number_above_a_volume_map_is_its_mean_in_the_hole(source, gather):
    numbers = volumes(gather(source))
    heldout = numbers.common["heldout"]
    for kind in numbers.kinds:
        maps, first = numbers.first[kind], numbers.of(kind)[0]
        assert torch.allclose(maps["maps"][:, heldout].mean(1), first["gap"])
        assert maps["maps"][:, ~heldout].mean(1).abs().max() < 1e-9
        assert torch.allclose(maps["maps, differences"][:, heldout].mean(1), first["gap, differences"])


def test_gallery_shows_held_out_points_of_the_first_seed(gather):
    evidence = gather(figures.cnns_and_others)
    gallery = figures.gallery(evidence)
    points = gallery.common["points"]
    assert points.tolist() == [[3, 3], [3, 4], [4, 3], [4, 4]]
    assert torch.equal(gallery.common["truth"], BumpTask(8).render(points))
    key = DecoderKey("CNN", "rate", 2)
    run = evidence.first(key)
    rows = [(run.split.latents == point).all(1).nonzero().item() for point in points]
    assert torch.equal(gallery.first[key.label]["images"], run.draw()[rows])
    assert gallery.column("accuracy", key.label) == [run.error["accuracy"] for run in evidence[key]]
    others = [row["label"] for row in gallery.rows if row["group"] == OTHERS]
    assert others == ["transformer (bump)", "pixel-wise (one-hot)"]


def test_gallery_shows_the_authors_points_at_their_size():
    sizes = base.SIZES["paper"]
    seen = split(BumpTask(sizes.size), sizes.hole)
    shown = seen.latents[figures.shown_points(seen.latents, seen.mask)]
    assert shown.tolist() == [[11, 14], [12, 18], [17, 12], [17, 17]]


def test_figure_10_shows_every_network_with_rings_at_the_true_positions(gather):
    gallery = figures.gallery(gather(figures.cnns_and_others))
    figure = picture(PANEL["10"], gallery)
    shown = [axes for axes in figure.axes if axes.lines]
    assert len(figure.axes) == 4 * (len(gallery.kinds) + 2)  # the truth above each code
    assert [axes.lines[0].get_xydata()[0].tolist() for axes in shown[:4]] == gallery.common["points"].tolist()
    # The left half first: the bump code's depths, then every second of the other decoders.
    order = [0, 1, 4, 2, 3, 5]
    images = torch.cat([gallery.first[gallery.kinds[index]]["images"] for index in order])
    assert all(np.array_equal(axes.images[0].get_array(), image[0]) for axes, image in zip(shown, images, strict=True))


@pytest.mark.parametrize("name", ["2a", "2b", "2c", "2d", "12", "14"])
def test_figures_of_curves_have_a_line_per_network(name, gather):
    profiles = PANEL[name].numbers(gather(PANEL[name].plan))
    figure = picture(PANEL[name], profiles)
    labels = [line.get_label() for axes in figure.axes for line in axes.lines]
    names = [profiles.of(kind)[0]["label"] for kind in profiles.kinds]
    for label in names:
        assert labels.count(label) == len(profiles.common["truth"]) * names.count(label)
    assert ("2" not in name or name == "12") or figure.get_suptitle() == f"{profiles.rows[0]['group']} code"


@pytest.mark.parametrize("name", ["2e", "2f", "11", "13"])
def test_figures_of_volumes_have_a_map_per_layer(name, gather):
    maps_by_network = PANEL[name].numbers(gather(PANEL[name].plan))
    figure = picture(PANEL[name], maps_by_network)
    maps = [axes for axes in figure.axes if axes.images]
    networks = [maps_by_network.of(kind)[0] for kind in maps_by_network.kinds]
    assert len(maps) == sum(len(network["layers"]) for network in networks)
    assert all(outlines(axes) == [(MARK.lower(), True)] for axes in maps)
    gaps = [
        f"{gap:+.2f} | {grid_gap:+.2f}"
        for network in networks
        for gap, grid_gap in zip(network["gap"], network["gap, differences"], strict=True)
    ]
    assert [title.splitlines()[-1] for title in titles(figure)] == gaps


def test_claim_4_is_about_what_training_adds_for_each_code():
    image, same = layer(0.0, 0.0, 0.5), layer()
    bump = layered_run(0, [same, same, layer(0.7, 0.4, 0.8), image], [same, same, layer(0.9, 0.9, 0.95), image])
    rate = layered_run(0, [same, same, layer(0.9, 0.8, 0.9), image], [same, same, layer(1.0, 1.0, 1.0), image])
    values = [effect(4, part, {"bump": [bump], "rate": [rate]}) for part in range(12)]
    primary, secondary = values[:4], values[4:]
    assert [value for (value,) in primary] == pytest.approx([0.2, 0.15, 0.1, 0.1])
    trend = -(0.75**0.5)  # two equal ranks, then the lowest
    # Held-out probes beyond untrained; of the hidden layers alone: probes, half of the fall by differences, its trend.
    assert [value for (value,) in secondary] == pytest.approx([0.5, 0.3, 0.1, trend, 0.2, 0.1, 0.05, trend])


def test_claim_4_does_not_count_what_an_untrained_network_loses():
    """Every network loses something, since the input has the highest score there can be."""
    lossy = [layer(), layer(0.7, 0.4, 0.8), layer(0.7, 0.4, 0.8), layer()]
    run = layered_run(0, lossy, lossy)
    values = [effect(4, part, {"bump": [run], "rate": [run]}) for part in range(4)]
    assert [value for (value,) in values] == [0, 0, 0, 0]


def test_a_curve_with_a_gap_is_excluded_and_counted():
    broken = [layered_run(0, [layer(), replace(layer(), probe=None, geometry=None, differences=None), layer()])]
    by_code = dict.fromkeys(PAIR, broken)
    by_depth = {figures.shallow(TINY): broken, figures.deep(TINY): broken}
    by_kind = dict.fromkeys(figures.cnn_and_mlp(TINY), broken)
    for number, runs in ((4, by_code), (5, by_depth), (6, by_code), (18, by_kind)):
        judgement = judged(CLAIM[number], made(runs))
        hidden = [part for part in judgement.parts if "at the image" not in part.measure]
        assert [part.excluded for part in hidden] == [{0: UNDEFINED.reason}] * len(hidden)


def test_claim_5_compares_the_largest_step_by_seed():
    untrained = [layer(), layer(score=0.9), layer()]
    shallow = [layered_run(seed, [layer(), layer(score=0.7), layer(score=0.1)], untrained) for seed in (0, 1)]
    deep = [layered_run(1, [layer(), layer(score=0.9), layer(score=0.7), layer(score=0.1)])]
    runs = {figures.shallow(TINY): shallow, figures.deep(TINY): deep}
    assert effect(5, 0, runs) == pytest.approx([0.05])
    assert effect(5, 1, runs) == pytest.approx([0.1])
    assert effect(5, 2, runs) == pytest.approx([0.1])  # 0.15 - 0.05, and the deep network is as it was


def test_claim_6_is_of_either_sign():
    falling = [layer(), layer(inside=0.5), layer(inside=0.1), layer(inside=10.0)]
    rising = [layer(), layer(inside=2.0), layer(inside=10.0), layer()]
    runs = {"bump": [layered_run(0, falling)], "rate": [layered_run(0, rising)]}
    grown, inside, *_ = values = [effect(6, part, runs)[0] for part in range(8)]
    assert 0 < grown < inside == pytest.approx(1)  # in the whole grid the hole is a part
    assert values[2:4] == pytest.approx([grown, inside])
    assert values[4:] == pytest.approx([1, 1, 1, 0])


def test_claim_18_compares_an_mlp_with_a_cnn_of_the_same_seed():
    cliff = [layer(), layer(), layer(score=0.8, inside=0.1), layer()]
    slope = [layer(), layer(score=0.75), layer(score=0.5, inside=10.0), layer()]
    untrained = [layer(), layer(), layer(inside=2.0), layer()]
    runs = {
        figures.compared(kind, code)(TINY): [layered_run(0, layers, untrained)]
        for kind, layers in (("CNN", cliff), ("MLP", slope))
        for code in PAIR
    }
    assert [effect(18, part, runs)[0] for part in range(4)] == pytest.approx([1.0, -1.0, 0.15, 0.0])
    assert [effect(18, part, runs)[0] for part in range(4, 6)] == pytest.approx([1.0, math.log10(5)])
    assert [effect(18, part, runs)[0] for part in range(6, 10)] == pytest.approx([1.0, -1.0, 0.15, 0.0])


def test_claims_are_judged_from_the_store_and_say_nothing_without_runs(gather):
    for claim in claims.CLAIMS:
        observed = Observations("", TINY.name, (), tuple(observe(claim, gather(claim.plan))))
        assert judge(claim, observed, TINY).outcome == "undetermined"  # two seeds
        empty = made({key: [] for key in claim.plan(TINY)})
        assert all(not part.values(empty) for part in claim.parts if part.effect)
