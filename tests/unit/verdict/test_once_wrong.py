"""Decoders that an earlier verdict misjudged, through `cs.diagnose`: one test per row of the table of failures."""

import pytest
import torch
from jaxtyping import TypeCheckError
from torch import nn

import composcope as cs
from composcope.factors import latent_grid
from known_decoders import Case, Lookup, blurred, foregrounds, one_wrong, oracle_images, rooms, sprites

SPRITES = Case(sprites(), cs.Box({"shape": (1, 1), "x": (1, 3), "y": (1, 3)}), "shape")


def truth_of(case):
    return case.task.foreground(case.task.render(case.split().latents))


def diagnosed(case, foreground, **more):
    return cs.diagnose(Lookup(case, foreground), case.task, case.holdout, cs.OneHot(), only="verdict", **more)


def test_x_and_y_right_and_the_shape_wrong_is_no_composition():
    verdict = diagnosed(SPRITES, foregrounds(SPRITES, 0)["one factor wrong"]).verdict
    assert verdict.kind == "mixes up factors"
    assert verdict.score == 0
    assert verdict.factors == {"shape": 0.0, "x": 1.0, "y": 1.0}
    assert verdict.confusion["shape"].tolist() == [[0, 0, 0, 0], [9, 0, 0, 0], [0, 0, 0, 0]]
    assert verdict.pairs["x", "y"][1:4, 1:4].eq(1).all()
    assert verdict.pairs["shape", "x"][1, 1:4].eq(0).all()


def test_an_ordered_shape_that_is_always_wrong_is_mixed_up_though_the_image_is_a_nearest_one():
    plain = sprites()
    factors = [cs.Factor("shape", range(3)), *plain.factors[1:]]
    case = Case(cs.TableTask(plain.latents, plain.images, factors), SPRITES.holdout, "shape")
    verdict = diagnosed(case, foregrounds(case, 0)["one factor wrong"]).verdict
    assert (verdict.kind, verdict.failing) == ("mixes up factors", ["shape"])
    assert verdict.within_one_step["shape"] == 1


@pytest.mark.parametrize("wrong", ["shape", "scale"])
def test_rooms_in_which_one_of_five_factors_is_wrong(wrong):
    case = Case(rooms(), cs.Box({"hue": (0, 1), "shape": (1, 2), "scale": (2.5, 3.5)}), wrong)
    parts = case.split()
    found = diagnosed(case, one_wrong(truth_of(case), case, parts.mask, parts.latents))
    assert (found.verdict.score, found.verdict.failing) == (0, [wrong])
    assert found.verdict.kind == "mixes up factors"
    assert f"mixes up factors; {wrong} is mostly wrong" in found.summary()


def test_a_network_trained_too_briefly_gets_no_verdict_on_composition():
    torch.manual_seed(0)
    parts = SPRITES.split()
    codes = cs.OneHot().encode(parts.latents, SPRITES.task.factors)
    images = SPRITES.task.render(parts.latents)
    network = nn.Sequential(nn.Linear(codes.shape[1], 64), nn.ReLU(), nn.Linear(64, 256), nn.Unflatten(1, (1, 16, 16)))
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    for _ in range(15):
        optimizer.zero_grad()
        (network(codes[~parts.mask]) - images[~parts.mask]).square().mean().backward()
        optimizer.step()
    found = cs.diagnose(network, SPRITES.task, SPRITES.holdout, cs.OneHot(), only="verdict")
    assert (found.verdict.kind, found.verdict.score, found.verdict.interval) == ("has not learned", None, None)
    assert found.verdict.seen_shares["composer"] < 0.5
    assert "has not learned what it saw" in found.summary()


@pytest.mark.parametrize("sigma", [0.7, 1.0, 1.5])
def test_a_blurred_composer_composes(sigma):
    found = diagnosed(SPRITES, blurred(truth_of(SPRITES), sigma)).verdict
    assert (found.kind, found.score) == ("composes", 1.0)
    assert found.seen_shares["composer"] == 1


def test_main_effects_in_the_hole_are_additive_in_a_table_and_as_bumps():
    bumps = cs.BumpTask(10, polarity="bright")
    grid = bumps.grid()
    as_table = cs.TableTask(grid, bumps.render(grid), bumps.factors)
    for task in (bumps, as_table):
        case = Case(task, cs.Square(3, 6), "x")
        parts = case.split()
        added = oracle_images(truth_of(case), parts.latents, parts.mask, task.factors)["additive"]
        found = diagnosed(case, added).verdict
        assert (found.kind, found.shares["additive"]) == ("adds", 1.0)


def test_a_decoder_that_adds_everywhere_adds_and_one_that_has_barely_begun_has_not_learned():
    made = foregrounds(SPRITES, 0)
    found = diagnosed(SPRITES, made["additive everywhere"])
    assert (found.verdict.kind, found.verdict.score) == ("adds", 0)
    assert "adds, on seen images as well" in found.summary()
    weaker = 0.4 * made["additive everywhere"] + 0.6 * made["mean image"]
    assert diagnosed(SPRITES, weaker).verdict.kind == "has not learned"
    assert diagnosed(SPRITES, made["mean image"]).verdict.kind == "has not learned"


def test_the_background_is_learned_whatever_the_range_of_the_images():
    plain = cs.BumpTask(8, polarity="bright")
    grid = plain.grid()
    bumps = plain.render(grid)
    blank = bumps.square().mean((1, 2, 3))
    for images, factor in ((bumps, 1), (2 * bumps - 1, 4), (0.3 + 0.7 * bumps, 0.49)):
        case = Case(cs.TableTask(grid, images, plain.factors), cs.Square(2, 4), "x")
        found = cs.diagnose(Lookup(case, truth_of(case)), case.task, case.holdout, cs.OneHot())
        assert found.error.seen_blank_mse == pytest.approx(factor * blank[~case.split().mask].mean().item(), rel=1e-3)
        assert found.complexity["targets"].maximum == found.complexity["outputs"].maximum == 1


def test_uniform_grey_is_not_nothing():
    held = SPRITES.split().mask[:, None, None, None]
    truth = truth_of(SPRITES)
    grey = torch.where(held, (6 * truth.square().mean()).sqrt(), truth)
    assert diagnosed(SPRITES, grey).verdict.kind == "does something else"
    assert diagnosed(SPRITES, torch.where(held, 0.0, truth)).verdict.kind == "draws nothing"


class Random(nn.Module):
    """The right image with probability 0.5 on held-out points, else that of another combination."""

    def __init__(self, case):
        super().__init__()
        self.right = Lookup(case, truth_of(case))
        self.wrong = Lookup(case, foregrounds(case, 0)["one factor wrong"])

    def forward(self, codes):
        return torch.where(torch.rand(len(codes), 1, 1, 1) < 0.5, self.right(codes), self.wrong(codes))


def test_random_outputs_are_noted_and_sampled():
    once = cs.diagnose(Random(SPRITES), SPRITES.task, SPRITES.holdout, cs.OneHot(), only="verdict")
    assert "two calls of the module differ" in once.notes["random outputs"]
    many = cs.diagnose(Random(SPRITES), SPRITES.task, SPRITES.holdout, cs.OneHot(), only="verdict", draws=20)
    assert many.verdict.score == pytest.approx(0.5, abs=0.1)
    assert many.verdict.factors["shape"] == many.verdict.score
    # 9 images of probability 1/2 each: the score's standard deviation over draws is 1/6.
    assert many.verdict.spread == pytest.approx(1 / 6, abs=0.06)
    assert "over draws" in many.notes["random outputs"]
    again = cs.diagnose(Random(SPRITES), SPRITES.task, SPRITES.holdout, cs.OneHot(), only="verdict", draws=20)
    assert again.verdict.shares == many.verdict.shares
    assert "random outputs" not in diagnosed(SPRITES, truth_of(SPRITES)).notes


def test_only_the_verdict_is_the_same_verdict():
    images = foregrounds(SPRITES, 0)["70 % composer + 30 % superposer"]
    brief, whole = (
        cs.diagnose(Lookup(SPRITES, images), SPRITES.task, SPRITES.holdout, cs.OneHot(), only=only)
        for only in ("verdict", None)
    )
    assert brief.verdict.shares == whole.verdict.shares
    assert brief.error.heldout_mse == whole.error.heldout_mse
    assert brief.layers == {}
    assert whole.layers
    with pytest.raises((cs.BadInput, TypeCheckError), match="verdict"):
        cs.diagnose(Lookup(SPRITES, images), SPRITES.task, SPRITES.holdout, cs.OneHot(), only="errors")


def test_large_grids_are_sampled_and_the_notes_say_so(monkeypatch):
    monkeypatch.setattr("composcope.verdict.verdict.MAX_PRODUCTS", 1.0)
    monkeypatch.setattr("composcope.verdict.verdict.MIN_CLASSIFIED", 5)
    monkeypatch.setattr("composcope.verdict.verdict.MAX_CANDIDATES", 20)
    monkeypatch.setattr("composcope.diagnosis.classifying.MAX_CANDIDATES", 20)
    found = diagnosed(SPRITES, truth_of(SPRITES))
    assert "5 of the 9 held-out images" in found.notes["verdict.points"]
    assert "20 of the 75 combinations" in found.notes["verdict.candidates"]
    assert found.verdict.score == 1
    assert (found.verdict.classes.count("composer"), found.verdict.classes.count("")) == (5, 4)


def test_images_that_look_alike_are_not_mistakes():
    """A disc has no orientation: whichever orientation it shows is right."""
    factors = [cs.Factor("turn", range(3), "categorical"), cs.Factor("x", range(5)), cs.Factor("y", range(5))]
    plain = sprites()
    discs = plain.images[plain.latents[:, 0] == 1].repeat(3, 1, 1, 1)
    case = Case(cs.TableTask(latent_grid(factors), discs, factors), cs.Box({"turn": (1, 1), "x": (1, 3)}), "x")
    composed = diagnosed(case, truth_of(case)).verdict
    assert (composed.score, composed.factors["turn"]) == (1, 1)
    moved = diagnosed(case, foregrounds(case, 0)["one factor wrong"]).verdict
    assert moved.factors == {"turn": 1.0, "x": 0.0, "y": 1.0}
