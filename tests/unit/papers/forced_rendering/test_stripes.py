"""The numbers behind figures 4, 7 and 15, and the claims about them."""

import math

import pytest
import torch
from torch import Tensor

from composcope.decoders.cnn import CNN
from composcope.diagnosis.layers import LayerDiagnosis, Tuning
from composcope.experiments.run import run as train
from composcope.experiments.store import Store
from composcope.figures.stripes import PANELS, grey_scale
from composcope.paper import stripes, tuning
from composcope.paper.claims import stripes as claims
from composcope.paper.evidence import Evidence, Known, Run
from composcope.paper.ledger import judge
from composcope.paper.preset import QUICK, TINY


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    """Every run of the group at the tiny preset, trained once."""
    store = Store(tmp_path_factory.mktemp("runs"))
    for specs in stripes.amounts(TINY).values():
        for spec in specs:
            train(spec, store)
    return Known(store)


def made_run(bumps: int = 0, **answers: object) -> Run:
    """A run that was never trained; what it is asked is given."""
    made = Run(Store("nowhere"), stripes.spec(TINY, 0, bumps))
    made.__dict__.update(answers)
    return made


def made_layer(stripe: list[float], bump: list[float], shown: list[int], maps: Tensor) -> LayerDiagnosis:
    found = Tuning(torch.tensor(stripe), torch.tensor(bump), 0.5, 0.25, 1, torch.tensor(shown), maps)
    return LayerDiagnosis("conv1", "", (len(stripe),), None, None, found, None, None)


@pytest.mark.parametrize("preset", [TINY, QUICK], ids=lambda preset: preset.name)
def test_plans_take_their_runs_from_the_amounts(preset):
    whole = stripes.amounts(preset)
    for panel in PANELS:
        assert panel.plan(preset).items() <= whole.items()
    assert stripes.unaided(preset) not in stripes.growing(preset)
    assert whole[stripes.most(preset)][0].sampling.bumps == whole[stripes.unaided(preset)][0].sampling.bumps


def test_samples_are_of_the_training_set(known):
    found = stripes.samples(Evidence(TINY, stripes.ends(TINY), known))
    assert found.counts == {"stripes at x": 8, "stripes at y": 8, "bumps": TINY.bumps[-1]}
    upright, level = found.images["stripes at x"], found.images["stripes at y"]
    assert torch.equal(upright, upright[:, :, :1].expand_as(upright))
    assert torch.equal(level, level[:, :, :, :1].expand_as(level))
    assert not TINY.hole.contains(found.latents["bumps"]).any()
    assert found.table()[0]["y"] == "any"


def test_a_bump_is_like_the_bump_and_a_cross_like_the_cross():
    run = made_run()
    truth, both = run.truth, run.spec.task.background - stripes.cross(run)  # dark
    drawn_bump, drawn_cross = made_run(images=truth), made_run(images=0.5 * both + 3)
    assert stripes.like_bump(drawn_bump) == pytest.approx(1)
    assert stripes.like_cross(drawn_cross) == pytest.approx(1)
    assert stripes.like_bump(drawn_cross) == pytest.approx(stripes.like_cross(drawn_bump))
    assert claims.cross_over_bump(drawn_cross) == pytest.approx(-claims.cross_over_bump(drawn_bump))
    assert claims.cross_over_bump(drawn_cross) > 0.1


def test_outputs_are_of_held_out_places(known):
    found = stripes.outputs(Evidence(TINY, stripes.amounts(TINY), known))
    assert TINY.hole.contains(found.places).all()
    assert len(found.places) == 5
    shares = [drawing.share for drawing in found.drawings.values()]
    assert shares == pytest.approx([0, 10 / 48, 20 / 48, 20 / 48])
    run = made_run(images=made_run().truth)
    assert found.bump_like_cross == pytest.approx(stripes.like_cross(run))


def test_every_stripe_is_in_the_set(known):
    found = stripes.stripe_set(Evidence(TINY, stripes.growing(TINY), known))
    assert len(found.stripes) == 2 * TINY.size
    assert len({tuple(stripe.flatten().tolist()) for stripe in found.stripes}) == 2 * TINY.size


def bands_module(upright_for_x: bool) -> torch.nn.Module:
    """A first layer that answers a value of x with an upright band and one of y with a level one, or turned about."""
    module = CNN(depth=2, width=4).build((8, 8), (1, 8, 8))
    weight = module.first[0].weight.data
    profile = torch.rand(16, 4, weight.shape[2], generator=torch.Generator().manual_seed(0))
    upright, level = profile[:, :, None, :].expand_as(weight), profile[:, :, :, None].expand_as(weight)
    first, second = (upright, level) if upright_for_x else (level, upright)
    module.first[0].weight.data = torch.cat([first[:8], second[8:]])
    module.first[0].bias.data.zero_()
    return module


class Trained:
    """Stands for a result."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module


@pytest.mark.parametrize(("upright_for_x", "share"), [(True, 1.0), (False, 0.0)])
def test_channels_that_are_bands(upright_for_x, share):
    run = made_run(result=Trained(bands_module(upright_for_x)))
    assert tuning.channel_bands(run) == pytest.approx(share, abs=1e-6)
    assert 0.1 < tuning.channel_bands(run, trained=False) < 0.9


def test_first_layers_show_one_value_then_both(known):
    found = tuning.first_layers(Evidence(TINY, stripes.few_compared(TINY), known))
    assert list(found.channels) == ["stripes + 10", "20 bumps"]
    for channels in found.channels.values():
        assert channels.maps.shape == (3, 4, 2, 2)
        assert channels.maps.min() >= 0


def test_sample_units_go_from_stripe_to_bump():
    maps = torch.arange(3.0)[:, None, None].expand(3, 4, 4)
    layer = made_layer([0.9, 0.1, 0.5, 0.0], [0.0, 0.8, 0.2, 0.0], [2, 0, 1], maps)
    stripe, middle, bump = tuning.sample_units(layer, (0, 0.5, 1))
    assert [unit.number for unit in (stripe, middle, bump)] == [0, 2, 1]
    assert [unit.map[0, 0].item() for unit in (stripe, middle, bump)] == [1, 0, 2]
    assert (stripe.stripe, bump.bump) == pytest.approx((0.9, 0.8))
    assert tuning.bump_units(layer) == pytest.approx(1 / 3)


def test_curves_are_means_along_the_other_axis():
    unit = tuning.Unit("conv1", 0, torch.tensor([[0.0, 2.0], [4.0, 6.0]]), 0.0, 0.0)
    by_x, by_y = unit.curves
    assert by_x.tolist() == [1, 5]
    assert by_y.tolist() == [2, 4]


def test_early_and_late_are_the_layers_next_to_code_and_image(known):
    run = Evidence(TINY, stripes.with_few(TINY), known).first(stripes.few(TINY))
    assert (tuning.early(run).name, tuning.late(run).name) == ("first", "conv2")
    likeness = tuning.typical(Evidence(TINY, stripes.with_few(TINY), known)).table()
    assert [row["layer"] for row in likeness] == ["code", "first", "conv1", "conv2", "image"]
    assert likeness[0]["stripe-likeness"] == pytest.approx(1)  # a one-hot unit tells one value of one factor
    assert likeness[0]["additive share"] == pytest.approx(1)


def test_units_that_do_not_exist_have_no_likeness():
    layer = LayerDiagnosis("conv1", "", (1,), None, None, None, None, None)
    assert math.isnan(tuning.stripe_likeness(layer))
    assert math.isnan(tuning.bump_units(layer))
    assert tuning.sample_units(layer, (0.5,)) == []


def test_grey_scale_widens_for_what_overshoots():
    assert grey_scale(torch.tensor([[0.2, 0.9]])) == (0, 1)
    assert grey_scale(torch.tensor([[-0.5, 1.5]])) == (-0.5, 1.5)


def test_claims_are_judged_from_tiny_runs(known):
    for claim in claims.CLAIMS:
        judged = judge(claim, Evidence(TINY, claim.plan(TINY), known))
        assert all(len(part.values) == len(TINY.seeds) for part in judged.parts), claim.number
