"""The numbers behind figures 2 and 10 to 14, and the claims about layers and depths."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from composcope.diagnosis.layers import Geometry, LayerDiagnosis
from composcope.experiments.run import run as train
from composcope.experiments.store import Store
from composcope.figures.depths import PANELS
from composcope.holdouts import split
from composcope.measures.geometry import factorization, volume_element, volume_summary
from composcope.measures.probes import ProbeScore
from composcope.paper import codes, depths, layers
from composcope.paper.claims import depths as claims
from composcope.paper.evidence import Evidence, Known, Run
from composcope.paper.ledger import judge
from composcope.paper.preset import PAPER, QUICK, TINY
from composcope.tasks.bump import BumpTask

PANEL = {panel.name: panel for panel in PANELS}
CLAIM = {claim.number: claim for claim in claims.CLAIMS}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    """Every run of the group at the tiny preset, trained once."""
    store = Store(tmp_path_factory.mktemp("runs"))
    for plan in (depths.with_others(TINY), depths.mlps(TINY)):
        for spec in (spec for specs in plan.values() for spec in specs):
            train(spec, store)
    return Known(store)


class Made(Evidence):
    """Evidence put together by hand."""

    def __init__(self, runs: dict[str, list[Run]]) -> None:
        self.preset, self.plan, self._runs = TINY, {}, runs


def layer(
    probe: float | None = 1.0, beyond: float | None = 1.0, score: float = 1.0, inside: float = 1.0
) -> LayerDiagnosis:
    """A layer with these probes (y 0.1 less), this factorization, and this volume in the hole (1 outside)."""
    metric = torch.eye(2).double().repeat(64, 1, 1)
    heldout = split(BumpTask(TINY.size), TINY.hole).mask
    metric[heldout] *= inside
    metric[:, 0, 1] = metric[:, 1, 0] = 0
    bent = replace(factorization(metric), mean_of_ratios=score)
    volume = volume_element(metric)
    shape = Geometry("exact", ("x", "y"), metric, volume, volume_summary(volume, heldout), bent)
    probes = None
    if probe is not None and beyond is not None:
        probes = {name: ProbeScore("R2", 1.0, probe - d, beyond - d) for name, d in (("x", 0.0), ("y", 0.1))}
    return LayerDiagnosis("made", "", (2,), shape, probes, None, None, None)


def made_run(seed: int, trained: list[LayerDiagnosis], untrained: list[LayerDiagnosis] | None = None) -> Run:
    """A run that was never trained and whose layers are given, by name "0", "1", ..."""
    named = [{str(place): one for place, one in enumerate(found)} for found in (trained, untrained or trained)]
    made = Run(Store("nowhere"), codes.spec(TINY, "bump", seed))
    made.__dict__["diagnosis"] = SimpleNamespace(layers=named[0], untrained=named[1])
    return made


def effect(number: int, part: int, runs: dict[str, list[Run]]) -> list[float]:
    return list(CLAIM[number].parts[part].effect(Made(runs)))


@pytest.mark.parametrize("preset", [TINY, QUICK], ids=lambda preset: preset.name)
def test_plans_are_parts_of_the_large_ones(preset):
    whole = {
        spec.run_id for plan in (depths.with_others, depths.mlps) for specs in plan(preset).values() for spec in specs
    }
    for source in (*PANELS, *claims.CLAIMS):
        assert {spec.run_id for specs in source.plan(preset).values() for spec in specs} <= whole
    assert list(depths.bump_cnn(preset)) == [f"bump, depth {preset.depth}"]
    assert list(depths.shallow_and_deep(preset)) == ["shallow", "deep"]
    assert list(depths.cnn_and_mlp(preset)) == ["CNN, bump", "CNN, rate", "MLP, bump", "MLP, rate"]
    for name, specs in depths.cnn_and_mlp(preset).items():
        kind, code = name.split(", ")
        assert {(spec.decoder.kind.upper(), spec.encoding.kind, spec.decoder.depth) for spec in specs} == {
            (kind, code, preset.depth)
        }


def test_measures_of_a_layer_are_means_over_factors_and_nan_where_missing():
    known_layer = layer(0.9, 0.5, score=0.75, inside=100.0)
    assert layers.crossed_probe(known_layer) == pytest.approx(0.85)
    assert layers.heldout_probe(known_layer) == pytest.approx(0.45)
    assert layers.factorization(known_layer) == 0.75
    assert layers.volume_gap(known_layer) == pytest.approx(2)
    empty = replace(known_layer, geometry=None, probe=None)
    assert all(math.isnan(measure(empty)) for measure in (*layers.PROFILE.values(), layers.volume_gap))


def test_an_even_fall_is_even_and_a_cliff_is_not():
    assert layers.unevenness(torch.linspace(1, 0.5, 6)) == pytest.approx(1, abs=1e-5)
    assert layers.unevenness(torch.tensor([1.0, 1.0, 1.0, 0.5])) == pytest.approx(3)
    assert layers.largest_fall(torch.tensor([1.0, 0.6, 0.9, 0.8])) == pytest.approx(0.4)
    assert math.isnan(layers.unevenness(torch.ones(3)))


def test_profiles_are_by_seed_and_layer_with_the_untrained_beside():
    runs = [made_run(seed, [layer(1.0), layer(0.8 - 0.1 * seed)], [layer(1.0), layer(0.95)]) for seed in (0, 1)]
    found = layers.probes(Made({"bump, depth 2": runs}))
    (network,) = found.networks
    assert (network.group, network.label, network.layers) == ("bump", "depth 2", ("0", "1"))
    curves = network.trained["probe R2, cross-validated"]
    assert torch.allclose(curves, torch.tensor([[0.95, 0.75], [0.95, 0.65]]).double())
    (row,) = found.table()
    assert row["probe R2, cross-validated: image"] == pytest.approx(0.7)
    assert row["probe R2, cross-validated: low"] == pytest.approx(0.65)
    assert row["probe R2, cross-validated: untrained"] == pytest.approx(0.9)
    assert row["probe R2, cross-validated: by layer"] == "0.950 0.700"
    assert row["probe R2, cross-validated: truth"] == pytest.approx(layers.crossed_probe(layers.true_images(runs[0])))
    assert not any(name.startswith("factorization") for name in row)


def test_the_number_above_a_volume_map_is_its_mean_in_the_hole(known):
    for plan in (depths.with_others(TINY), depths.mlps(TINY)):
        for network in layers.volumes(Evidence(TINY, plan, known)).networks:
            assert torch.allclose(network.maps[:, network.heldout].mean(1), network.gaps[0])
            assert network.maps[:, ~network.heldout].mean(1).abs().max() < 1e-9


def test_volume_maps_are_floored_and_relative_to_seen_points():
    flat = made_run(0, [layer(), layer(inside=0.0)])
    found = layers.volumes(Made({"bump, depth 2": [flat]}))
    (network,) = found.networks
    assert network.maps[0].abs().max() == 0
    assert torch.allclose(network.maps[1, network.heldout], torch.tensor(-6.0).double())
    assert (network.floor, network.floored) == (1e-6, int(network.heldout.sum()))
    assert found.table()[0]["gap by layer"] == "+0.00 -6.00"
    missing = made_run(0, [layer(), replace(layer(), geometry=None)])
    (network,) = layers.volumes(Made({"bump, depth 2": [missing]})).networks
    assert network.maps[1].isnan().all()


def test_other_decoders_are_named_with_their_code(known):
    found = depths.gallery(Evidence(TINY, depths.with_others(TINY), known))
    assert [network.label for network in found.networks if network.group == layers.OTHERS] == [
        "transformer (bump)",
        "pixel-wise (one-hot)",
    ]


def test_gallery_shows_held_out_points_of_the_first_seed(known):
    evidence = Evidence(TINY, depths.with_others(TINY), known)
    found = depths.gallery(evidence)
    assert found.latents.tolist() == [[2, 3], [3, 4], [3, 3], [4, 3]]
    assert torch.equal(found.truth, BumpTask(8).render(found.latents))
    run = evidence.first("rate, depth 2")
    shown = next(network for network in found.networks if (network.group, network.label) == ("rate", "depth 2"))
    rows = [(run.parts.latents == place).all(1).nonzero().item() for place in found.latents]
    assert torch.equal(shown.images, run.images[rows])
    assert shown.accuracy == tuple(one.error["accuracy"] for one in evidence["rate, depth 2"])


def test_claim_4_takes_the_smaller_fall_and_what_goes_beyond_the_untrained():
    bump = made_run(0, [layer(), layer(0.7, 0.4, 0.8)], [layer(), layer(0.9, 0.9, 0.95)])
    rate = made_run(0, [layer(), layer(0.9, 0.8, 0.9)], [layer(), layer(1.0, 1.0, 1.0)])
    runs = {"bump": [bump], "rate": [rate]}
    falls = [effect(4, part, runs) for part in range(5)]
    assert [value for (value,) in falls] == pytest.approx([0.1, 0.2, 0.1, 0.2, 0.1])


def test_a_curve_with_a_hole_counts_for_nothing():
    broken = replace(layer(), probe=None, geometry=None)
    runs = {name: [made_run(0, [layer(), broken])] for name in ("bump", "rate")}
    assert [effect(4, part, runs) for part in range(5)] == [[]] * 5


def test_claim_5_compares_the_largest_step_by_seed():
    shallow = [made_run(seed, [layer(), layer(score=0.7), layer(score=0.6)]) for seed in (0, 1)]
    deep = [made_run(1, [layer(), layer(score=0.9), layer(score=0.8), layer(score=0.6)])]
    assert effect(5, 0, {"shallow": shallow, "deep": deep}) == pytest.approx([0.1])


def test_claim_6_is_of_either_sign():
    runs = {"bump": [made_run(0, [layer(inside=0.1)])], "rate": [made_run(0, [layer(inside=10.0)])]}
    assert effect(6, 0, runs) == pytest.approx([1])
    assert effect(6, 1, runs) == pytest.approx([1])


@pytest.mark.parametrize("preset", [QUICK, PAPER], ids=lambda preset: preset.name)
def test_true_images_are_what_claims_4_and_6_say_of_them(preset):
    run = Run(Store("nowhere"), codes.spec(preset, "bump", 0))
    truth = layers.true_images(run)
    inside = truth.geometry.volume[run.parts.mask]
    assert torch.allclose(inside, torch.tensor(math.pi / 2).double(), rtol=2e-2)  # of a whole Gaussian of width 1
    assert layers.factorization(truth) > 0.99
    assert layers.crossed_probe(truth) > 0.99
    assert 0.6 < layers.heldout_probe(truth) < 0.7
    assert abs(layers.volume_gap(truth)) < math.log10(1.25) < claims.DOUBLE


def test_claim_18_compares_an_mlp_with_a_cnn_of_the_same_seed():
    cliff = [layer(), layer(), layer(), layer(score=0.7, inside=0.1)]
    slope = [layer(), layer(score=0.75), layer(score=0.5, inside=10.0)]
    runs = {
        f"{kind}, {code}": [made_run(0, found)]
        for kind, found in (("CNN", cliff), ("MLP", slope))
        for code in depths.PAIR
    }
    assert effect(18, 0, runs) == pytest.approx([2.0])
    assert effect(18, 1, runs) == pytest.approx([0.2])
    assert effect(18, 2, runs) == pytest.approx([1.0])
    runs["MLP, rate"] = [made_run(0, cliff)]
    assert [effect(18, part, runs)[0] for part in range(3)] == pytest.approx([0.0, 0.0, -1.0])


def test_claims_are_judged_from_the_store_and_say_nothing_without_runs(known, tmp_path):
    for claim in claims.CLAIMS:
        assert judge(claim, Evidence(TINY, claim.plan(TINY), known)).outcome == "undetermined"  # two seeds
        nothing = Evidence(TINY, claim.plan(TINY), Known(Store(tmp_path)))
        assert [list(part.effect(nothing)) for part in claim.parts] == [[]] * len(claim.parts)
