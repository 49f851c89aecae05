"""Figures 3 and 6 and their numbers, volumes among them, and claims 7, 8 and 9."""

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from composcope.decoders.lowrank import Embedding, LowRank, embeddings_of
from composcope.papers.forced_rendering import lowrank
from composcope.papers.forced_rendering.base import PAPER, QUICK, TINY
from composcope.papers.forced_rendering.lowrank import claims, figures
from composcope.papers.forced_rendering.lowrank.drawing import mosaic
from composcope.papers.forced_rendering.lowrank.figures import SIZES, lowrank_spec
from composcope.papers.forced_rendering.volumes import evenness, evenness_table, inner, logs, spread, std
from composcope.runs.run import Run
from composcope.study.claim import difference
from composcope.study.drawing import COLOURS, MARK
from composcope.study.evidence import Evidence

from .judging import effects, judged
from .made import made, made_run, outlines, picture, titles

PANEL = {panel.name: panel for panel in lowrank.PANELS}


@pytest.fixture
def run(gather) -> Run:
    """A decoder with both penalties."""
    return gather(figures.both).first("both")


def run_with_errors(penalties: str, seed: int, **errors: float) -> Run:
    """A run that was never trained; its errors are given."""
    return made_run(lowrank_spec(TINY, penalties, seed), error=errors)


def made_ablation(**heldout: float) -> Evidence:
    """Five nearly equal seeds of every kind; seen errors are in the reverse order of held-out ones, both's halfway."""

    def run(name: str, seed: int, error: float) -> Run:
        seen = 1e-7 / error if name != "both" else 1e-7 / (heldout["none"] * heldout["variance"]) ** 0.5
        errors = {"heldout_mse": error * (1 + 0.01 * seed), "seen_mse": seen, "blank_mse": 0.1, "accuracy": 1.0}
        return run_with_errors(name, seed, **errors)

    return made({name: [run(name, seed, error) for seed in range(5)] for name, error in heldout.items()})


def matrix_of(terms: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.einsum("nh,n,nw->hw", terms["v"], terms["weight"], terms["u"])


def test_terms_add_up_to_the_matrix_the_decoder_uses():
    torch.manual_seed(0)
    embedding = Embedding(5, 4, 6, 3)
    embedding.weight.data = torch.randn(5, 3)
    with torch.no_grad():
        terms = figures.terms_of(embedding, 2)
        assert torch.allclose(matrix_of(terms), embedding.matrices()[2], atol=1e-6)
    assert terms["weight"].abs().tolist() == sorted(terms["weight"].abs().tolist(), reverse=True)


def test_the_walkthrough_is_that_of_a_run_at_a_held_out_point(gather, run):
    numbers = figures.walkthrough(gather(figures.both))
    steps, value = numbers.first["both"], numbers.common["value"]
    row = value * numbers.common["size"] + value
    assert run.split.mask[row]
    assert torch.allclose(steps["image"], run.draw()[row], atol=1e-5)
    assert torch.equal(steps["truth"], run.truth[row])
    x, y = embeddings_of(run.module)
    for name, embedding in (("x", x), ("y", y)):
        assert torch.allclose(matrix_of(steps["terms"][name]), embedding.matrices()[value], atol=1e-6)
        own = [row for row in numbers.rows if row["factor"] == name]
        assert [row["term"] for row in own] == list(range(1, len(own) + 1))
        assert 0 < sum(row["share of the squares"] for row in own) <= 1 + 1e-6
    assert list(steps["conv layers"]) == ["conv1", "conv2"]


def test_figure_3a_draws_matrices_channels_and_images(gather):
    numbers = figures.walkthrough(gather(figures.both))
    steps = numbers.first["both"]
    figure = picture(PANEL["3a"], numbers)
    assert titles(figure) == ["code", "$v$", "$\\lambda$", "$u^T$", "$W$", "conv1", "conv2", "image", "truth"]
    shown = {axes.get_title(): axes.images[0].get_array() for axes in figure.axes if axes.images}
    assert np.array_equal(shown["$W$"], matrix_of(steps["terms"]["x"]))
    assert np.array_equal(shown["conv2"], steps["conv layers"]["conv2"][0])
    assert np.array_equal(shown["truth"], steps["truth"][0])
    assert shown["code"].argmax() == numbers.common["value"]


@pytest.mark.parametrize(("size", "shown"), [(28, 14), (32, 14), (16, 8), (8, 4)])
def test_the_value_shown(size, shown):
    assert figures.middle(size) == shown


def test_embeddings_are_measured_for_every_value_and_seed(gather, run):
    embeddings = figures.all_embeddings(gather(figures.none_and_both))
    assert embeddings.common["values"] == list(range(8))
    assert torch.equal(embeddings.first["both"]["y"][2], figures.matrices(run)[1][2])
    assert embeddings.column("seed", "none") == list(SIZES["tiny"].seeds)
    assert 1 <= embeddings.column("effective rank", "both")[0] <= SIZES["tiny"].size
    assert 0 <= embeddings.column("share along own axis", "both")[0] <= 1


def test_figure_3b_draws_one_matrix_per_factor_and_kind_of_run(gather):
    embeddings = figures.middle_embeddings(gather(figures.none_and_both))
    figure = picture(PANEL["3b"], embeddings)
    images = [axes.images[0] for axes in figure.axes]
    expected = [embeddings.first[key][factor][0] for factor in ("x", "y") for key in ("none", "both")]
    assert all(np.array_equal(image.get_array(), matrix) for image, matrix in zip(images, expected, strict=True))
    low, high = images[0].get_clim()
    assert low == -high == pytest.approx(-expected[0].abs().max().item())  # white is 0
    rank, share = (np.mean(embeddings.column(name, "both")) for name in ("effective rank", "share along own axis"))
    assert titles(figure)[1] == f"both penalties\neffective rank {rank:.2f}\nalong own axis {share:.0%}"


def test_figure_6_draws_every_value(gather):
    embeddings = figures.all_embeddings(gather(figures.none_and_both))
    figure = picture(PANEL["6"], embeddings)
    kinds = ("no penalty", "both penalties")
    assert titles(figure) == [f"{kind}: {factor} = 0 to 7" for kind in kinds for factor in "xy"]
    last = figure.axes[-1].images[0].get_array()
    assert np.array_equal(last, mosaic(embeddings.first["both"]["y"]), equal_nan=True)


def test_a_mosaic_has_every_matrix_in_its_place_on_its_own_scale():
    matrices = torch.stack([torch.full((2, 3), -2.0), torch.full((2, 3), 5.0), torch.eye(3)[:2] * 4])
    tiles = mosaic(matrices, across=2)
    assert tiles.shape == (2 * 3 - 1, 2 * 4 - 1)
    assert (tiles[3:, :3] == -1).all()  # the first row is on top, where the rows of the array end
    assert (tiles[3:, 4:] == 1).all()
    assert torch.equal(tiles[:2, :3], torch.eye(3)[:2])
    assert tiles[:2, 4:].isnan().all()
    assert tiles[2].isnan().all()


def test_spread_leaves_out_the_border_and_is_zero_where_even():
    volume = torch.full((4, 4), 10.0)
    volume[0] = 1e-9
    assert std(logs(volume.flatten(), (4, 4))) > 1
    assert std(inner(logs(volume.flatten(), (4, 4)))) == 0
    volume[1, 1:3], volume[2, 1:3] = 10.0, 1000.0
    assert std(inner(logs(volume.flatten(), (4, 4)))) == pytest.approx(1)
    assert logs(torch.zeros(1), (1,)).item() == pytest.approx(-6)


def test_a_one_hot_code_is_even_except_at_the_border(run):
    assert spread(run, "code") == pytest.approx(0, abs=1e-6)
    with_border = logs(run.diagnosis.layers["code"].geometry.volume, run.diagnosis.sizes)
    assert std(with_border) > 0.1


def test_evenness_covers_all_layers_and_the_true_images(gather):
    even = evenness(gather(figures.none_and_both))
    layers = ("code", "embedding", "conv1", "conv2", "image")
    assert list(even.first) == even.kinds == ["none", "both"]
    assert even.rows[0]["layers"] == list(layers)
    assert even.stack("spread", "both").shape == (len(SIZES["tiny"].seeds), len(layers))
    assert even.common["truth"][~even.common["heldout"]].mean().item() == pytest.approx(0, abs=1e-9)
    assert len(evenness_table(even)) == 2 * len(layers) + 1


def test_figure_3c_outlines_the_corner_in_every_map(gather):
    even = evenness(gather(figures.none_and_both))
    figure = picture(PANEL["3c"], even)
    maps = [axes for axes in figure.axes if axes.images]
    assert len(maps) == 2 * 4 + 1
    assert all(outlines(axes) == [(MARK.lower(), True)] for axes in maps)
    assert np.array_equal(maps[0].images[0].get_array(), even.first["none"]["maps"][1].T)
    labels = [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel().endswith("\n\ny")]
    assert labels == ["no penalty\n\ny", "both penalties\n\ny"]


def test_figure_3d_has_a_dot_per_seed_and_the_blank_error(gather):
    ablation = figures.ablation_errors(gather(figures.ablation))
    errors, accuracies = picture(PANEL["3d"], ablation).axes
    *dots, blank = errors.lines
    for line, key, colour in zip(dots, figures.ABLATION, COLOURS, strict=False):
        assert line.get_xdata().tolist() == ablation.column("seen MSE", key)
        assert line.get_ydata().tolist() == ablation.column("held-out MSE", key)
        assert to_hex(line.get_color()) == colour.lower()
    assert list(blank.get_ydata()) == [ablation.rows[0]["blank MSE"]] * 2
    assert [line.get_ydata().tolist() for line in accuracies.lines] == [
        ablation.column("held-out accuracy", key) for key in ablation.kinds
    ]


def test_the_order_of_the_ablation():
    as_claimed = made_ablation(none=1e-1, entropy=3e-2, variance=1e-3, both=1e-4)
    log3 = torch.tensor(0.3).log10().item()
    judgement = judged(claims.CLAIMS[0], as_claimed)
    assert judgement.outcome == "reproduced"
    assert judgement.qualification == ""
    first = [part.values[0] for part in judgement.parts]
    seen = first[3:7]
    assert first[:3] + first[7:] == pytest.approx([-log3, 2, 3, -2 - log3, -3 - log3, -1, 1e-4, -2, 1e-3, 1])
    assert all(value < 0 for value in seen)


def test_variance_alone_better_than_both_contradicts_the_order():
    judgement = judged(claims.CLAIMS[0], made_ablation(none=1e-1, entropy=3e-2, variance=1e-4, both=1e-3))
    assert judgement.outcome == "not reproduced"
    wrong = [part.measure for part in judgement.primary if part.holds is False]
    assert wrong == ["log10 held-out MSE, both over variance"]


def test_a_pair_needs_only_its_own_two_runs_of_a_seed():
    evidence = made_ablation(none=1e-1, entropy=3e-2, variance=1e-3, both=1e-4)
    evidence.runs["entropy"] = evidence.runs["entropy"][1:]
    assert list(difference("none", "entropy", claims.HELDOUT)(evidence)) == [1, 2, 3, 4]
    assert list(difference("both", "none", claims.HELDOUT)(evidence)) == [0, 1, 2, 3, 4]


def test_differences_are_of_the_same_seed():
    runs = {
        "none": [run_with_errors("none", 1, heldout_mse=1.0), run_with_errors("none", 0, heldout_mse=0.1)],
        "both": [run_with_errors("both", 0, heldout_mse=0.01)],
    }
    assert difference("both", "none", claims.HELDOUT)(made(runs)) == pytest.approx({0: -1})


def test_claims_have_effects_for_every_seed_of_tiny_runs(gather):
    for claim in lowrank.CLAIMS:
        found = effects(claim, gather(claim.plan))
        assert all(tuple(values) == SIZES["tiny"].seeds for values in found.values()), claim.number
        assert judged(claim, gather(claim.plan)).outcome == "undetermined"  # two seeds


@pytest.mark.parametrize("preset", [QUICK, PAPER], ids=lambda preset: preset.name)
def test_the_decoder_is_the_authors(preset):
    specs = [spec for specs in figures.ablation(preset).values() for spec in specs]
    assert {spec.decoder for spec in specs} == {LowRank(init="authors", activate_embedding=True)}
    assert min(spec.seed for spec in specs) == preset.first_seed
