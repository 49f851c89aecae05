"""The numbers behind figures 3 and 6, bands and volumes among them, and the claims about them."""

import pytest
import torch

from composcope.decoders.lowrank import Embedding, embeddings_of
from composcope.experiments.run import run as train
from composcope.experiments.store import Store
from composcope.paper import lowrank
from composcope.paper.bands import axis_variances, effective_rank, mean_rank, own_axis_share
from composcope.paper.claims import lowrank as claims
from composcope.paper.claims.effects import difference
from composcope.paper.evidence import Evidence, Known, Run
from composcope.paper.ledger import judge
from composcope.paper.preset import TINY
from composcope.paper.volumes import evenness, inner, logs, mean_spread, spreads, std

PROFILE = torch.tensor([0.0, 1.0, 4.0, 1.0])
UPRIGHT, LEVEL = PROFILE.expand(4, 4)[None], PROFILE[:, None].expand(4, 4)[None]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    """Every run of the group at the tiny preset, trained once."""
    store = Store(tmp_path_factory.mktemp("runs"))
    for specs in lowrank.ablation(TINY).values():
        for spec in specs:
            train(spec, store)
    return Known(store)


@pytest.fixture(scope="module")
def both(known: Known) -> Run:
    return Evidence(TINY, lowrank.cured(TINY), known).first("both")


class Made(Evidence):
    """Evidence put together by hand."""

    def __init__(self, runs: dict[str, list[Run]]) -> None:
        self.preset, self.plan, self._runs = TINY, {}, runs


def made_run(penalties: str, seed: int, **errors: float) -> Run:
    """A run that was never trained; its errors are given."""
    made = Run(Store("nowhere"), lowrank.spec(TINY, penalties, seed))
    made.__dict__["error"] = errors
    return made


def made_ablation(**heldout: float) -> Made:
    """Two seeds of every kind, alike; seen errors are a hundredth of held-out ones but turned about."""
    return Made(
        {
            name: [made_run(name, seed, heldout_mse=error, seen_mse=1e-5 / error) for seed in (0, 1)]
            for name, error in heldout.items()
        }
    )


def test_a_band_varies_along_one_axis_only():
    variance = PROFILE.var(correction=0).item()
    assert axis_variances(UPRIGHT)[0].tolist() == pytest.approx([variance, 0, 0])
    assert axis_variances(LEVEL)[0].tolist() == pytest.approx([0, variance, 0])
    corner = torch.zeros(1, 2, 2)
    corner[0, 0, 0] = 4.0  # a third each of columns, rows, and neither
    assert axis_variances(corner)[0].tolist() == pytest.approx([1.0, 1.0, 1.0])


def test_own_axis_share_of_bands_crosses_and_noise():
    assert own_axis_share(UPRIGHT, LEVEL) == pytest.approx(1)
    assert own_axis_share(LEVEL, UPRIGHT) == pytest.approx(0)
    cross = (PROFILE[None] + PROFILE[:, None])[None]
    assert own_axis_share(cross, cross) == pytest.approx(0.5)
    noise = torch.randn(4000, 4, 4, generator=torch.Generator().manual_seed(0))
    assert own_axis_share(noise, noise) == pytest.approx(1 / 5, abs=0.01)
    assert own_axis_share(torch.ones(2, 3, 3), torch.ones(2, 3, 3)) is None


def test_own_axis_share_hardly_counts_faint_maps():
    faint = 0.01 * torch.eye(4)[None]
    assert own_axis_share(faint, faint) == pytest.approx(0)
    assert own_axis_share(torch.cat([UPRIGHT, faint]), faint) > 0.99


def test_effective_rank():
    assert effective_rank(torch.outer(PROFILE, PROFILE)) == pytest.approx(1)
    assert effective_rank(torch.eye(5)) == pytest.approx(5)
    assert effective_rank(torch.diag(torch.tensor([2.0, 1.0, 1.0, 0.0]))) == pytest.approx(
        (4 / 6) ** (-4 / 6) * (1 / 6) ** (-2 / 6)
    )
    assert mean_rank([torch.eye(3)[None], torch.ones(2, 3, 3)]) == pytest.approx((3 + 1 + 1) / 3)


def test_terms_add_up_to_the_matrix_the_decoder_uses():
    torch.manual_seed(0)
    embedding = Embedding(5, 4, 6, 3)
    embedding.weight.data = torch.randn(5, 3)
    with torch.no_grad():
        terms = lowrank._terms(embedding, 2)
        assert torch.allclose(terms.matrix, embedding.matrices()[2], atol=1e-6)
    assert terms.weight.abs().tolist() == sorted(terms.weight.abs().tolist(), reverse=True)
    assert terms.shares.sum().item() == pytest.approx(1)


def test_the_scheme_is_that_of_a_run_at_a_held_out_place(known, both):
    found = lowrank.scheme(Evidence(TINY, lowrank.cured(TINY), known))
    row = found.place[0] * TINY.lowrank_size + found.place[1]
    assert both.parts.mask[row]
    assert torch.allclose(found.image, both.images[row], atol=1e-5)
    assert torch.equal(found.truth, both.truth[row])
    x, y = embeddings_of(both.result.module)
    for name, embedding, value in (("x", x, found.place[0]), ("y", y, found.place[1])):
        assert torch.allclose(found.terms[name].matrix, embedding.matrices()[value], atol=1e-6)
    assert list(found.hidden) == ["conv1", "conv2"]


@pytest.mark.parametrize(("size", "shown"), [(28, 14), (32, 14), (16, 8), (8, 4)])
def test_the_value_shown(size, shown):
    assert lowrank.middle(size) == shown


def test_embeddings_are_told_for_every_value_and_seed(known, both):
    found = lowrank.embeddings_of_several(Evidence(TINY, lowrank.ends(TINY), known))
    assert found.values == (0, 1, 3, 4, 6, 7)
    assert torch.equal(found.shown["both"]["y"][2], lowrank.matrices(both)[1][3])
    assert len(found.ranks["none"]) == len(TINY.lowrank_seeds)
    assert 1 <= found.ranks["both"][0] <= TINY.lowrank_size
    assert 0 <= found.own_axes["both"][0] <= 1


def test_spread_leaves_out_the_border_and_is_zero_where_even():
    volume = torch.full((4, 4), 10.0)
    volume[0] = 1e-9
    assert std(logs(volume.flatten(), (4, 4))) > 1
    assert std(inner(logs(volume.flatten(), (4, 4)))) == 0
    volume[1, 1:3], volume[2, 1:3] = 10.0, 1000.0
    assert std(inner(logs(volume.flatten(), (4, 4)))) == pytest.approx(1)
    assert logs(torch.zeros(1), (1,)).item() == pytest.approx(-6)


def test_a_one_hot_code_is_even_but_for_the_border(both):
    assert spreads(both)[0].item() == pytest.approx(0, abs=1e-6)
    with_border = logs(both.diagnosis.layers["code"].geometry.volume, both.diagnosis.sizes)
    assert std(with_border) > 0.1
    assert mean_spread(both) == pytest.approx(spreads(both)[1:].mean().item())


def test_evenness_holds_all_layers_and_the_true_images(known):
    found = evenness(Evidence(TINY, lowrank.ends(TINY), known))
    layers = ("code", "embedding", "conv1", "conv2", "image")
    assert list(found.maps) == ["none", "both"]
    assert found.maps["both"].layers == layers
    assert found.spreads["both"].shape == (len(TINY.lowrank_seeds), len(layers))
    assert found.truth[~found.maps["both"].heldout].mean().item() == pytest.approx(0, abs=1e-9)
    assert len(found.table()) == 2 * len(layers) + 1


def test_the_order_of_the_ablation():
    as_claimed = made_ablation(none=1e-1, entropy=3e-2, variance=1e-3, both=1e-4)
    assert all(part.outcome == "undetermined" for part in judge(claims.CLAIMS[0], as_claimed).parts)  # two seeds
    values = [part.values[0] for part in judge(claims.CLAIMS[0], as_claimed).parts]
    log3 = torch.tensor(0.3).log10().item()
    assert values == pytest.approx([-log3, log3, log3, -2, -2 - log3, 2, -1])
    turned = made_ablation(none=1e-2, entropy=3e-2, variance=1e-4, both=1e-3)
    assert claims.above_the_rest(turned)[0] < 0
    assert difference("both", "variance", claims.HELDOUT)(turned) == pytest.approx([1, 1])


def test_differences_are_of_the_same_seed():
    runs = {
        "none": [made_run("none", 1, heldout_mse=1.0), made_run("none", 0, heldout_mse=0.1)],
        "both": [made_run("both", 0, heldout_mse=0.01)],
    }
    assert difference("both", "none", claims.HELDOUT)(Made(runs)) == pytest.approx([-1])


def test_claims_are_judged_from_tiny_runs(known):
    for claim in claims.CLAIMS:
        judged = judge(claim, Evidence(TINY, claim.plan(TINY), known))
        assert all(len(part.values) == len(TINY.lowrank_seeds) for part in judged.parts), claim.number
