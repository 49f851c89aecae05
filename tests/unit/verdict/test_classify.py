import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import composcope as cs
from composcope.factors import Factor, latent_grid
from composcope.verdict import KINDS, NOT_LEARNED
from composcope.verdict import classify as classify_images
from composcope.verdict.references import nonnegative_weights
from known_decoders import oracle_images

SIZE = 14
XY = [Factor("x", range(SIZE)), Factor("y", range(SIZE))]
GRID = latent_grid(XY)
HELDOUT = ((GRID >= 4) & (GRID <= 9)).all(1)


def bumps(latents, size=SIZE):
    """Bright bumps; an absent factor's term is 1, which makes a stripe."""
    profiles = torch.exp(-(torch.arange(size) - latents[:, :2, None]).square() / 2)
    profiles = torch.where(latents[:, :2, None].isnan(), 1.0, profiles)
    return torch.einsum("nu,nv->nvu", profiles[:, 0], profiles[:, 1])[:, None]


def crosses(latents):
    absent = torch.full_like(latents[:, 0], torch.nan)
    return bumps(torch.stack([latents[:, 0], absent], 1)) + bumps(torch.stack([absent, latents[:, 1]], 1))


TRUTH, CROSS = bumps(GRID), crosses(GRID)


def classified(outputs, **changes):
    return classify_images(
        **{"outputs": outputs, "truth": TRUTH, "latents": GRID, "heldout": HELDOUT, "factors": XY, "cross": CROSS}
        | changes
    )


def in_the_hole(images):
    """Perfect on seen points, these images on held-out ones."""
    return torch.where(HELDOUT[:, None, None, None], images, TRUTH)


def noise_like(images, share, seed=0):
    """Noise with the given share of each image's energy."""
    noise = torch.randn(images.shape, generator=torch.Generator().manual_seed(seed))
    scale = (share * images.square().sum((1, 2, 3)) / noise.square().sum((1, 2, 3))).sqrt()
    return scale[:, None, None, None] * noise


@pytest.mark.parametrize("name", ["composer", "additive cross", "nearest seen", "superposer", "blank"])
def test_every_oracle_is_diagnosed_as_itself(name):
    result = classified(oracle_images(TRUTH, GRID, HELDOUT, XY, CROSS)[name])
    assert result.shares[name] == 1
    assert result.kind == KINDS[name]
    assert result.score == (name == "composer")
    assert set(result.classes) == {name}


@pytest.mark.parametrize("name", ["composer", "additive cross", "nearest seen", "superposer"])
@pytest.mark.parametrize("channels", [1, 3])
def test_brightness_background_and_a_little_noise_change_nothing(name, channels):
    images = oracle_images(TRUTH, GRID, HELDOUT, XY, CROSS)[name]
    images = (0.6 * images + noise_like(images, 0.05)).expand(-1, channels, -1, -1)
    images = images + torch.arange(channels)[None, :, None, None] + 0.2
    colours = {"truth": TRUTH, "cross": CROSS}
    result = classified(images, **{key: image.expand(-1, channels, -1, -1) for key, image in colours.items()})
    assert result.shares[name] > 0.95


def test_noise_and_displaced_bumps_are_something_else():
    noise = torch.rand(TRUTH.shape, generator=torch.Generator().manual_seed(1))
    assert classified(in_the_hole(noise)).kind == KINDS["other"]
    far = bumps(torch.where(HELDOUT[:, None], GRID + 2.5, GRID))
    assert classified(far).score < 0.1


def test_blank_is_less_than_a_tenth_of_the_truths_energy():
    assert classified(in_the_hole(0.31 * TRUTH)).shares["blank"] == 1
    assert classified(in_the_hole(0.32 * TRUTH)).shares["composer"] == 1
    assert classified(0.2 * TRUTH).shares["composer"] == 1  # as faint as what it saw


def test_other_begins_where_half_of_the_energy_is_unexplained():
    clean = TRUTH + noise_like(TRUTH, 0.6)
    muddy = TRUTH + noise_like(TRUTH, 1.6)
    assert classified(in_the_hole(clean)).shares["composer"] > 0.9
    assert classified(in_the_hole(muddy)).shares["other"] > 0.9


def test_negative_images_are_not_explained_by_positive_oracles():
    assert classified(in_the_hole(-TRUTH)).kind == KINDS["other"]
    assert classified(-TRUTH).kind == NOT_LEARNED


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000))
def test_shares_sum_to_1_and_name_every_class(seed):
    images = torch.randn(TRUTH.shape, generator=torch.Generator().manual_seed(seed)) * 0.1 + TRUTH + CROSS.roll(seed, 0)
    result = classified(images)
    assert set(result.shares) == set(KINDS)
    assert sum(result.shares.values()) == pytest.approx(1)
    assert len(result.classes) == int(HELDOUT.sum())
    assert all((residual >= 0).all() and (residual <= 1 + 1e-9).all() for residual in result.residuals.values())


def test_without_stripes_the_cross_is_left_out():
    result = classified(in_the_hole(CROSS), cross=None)
    assert "additive cross" not in result.residuals
    assert result.shares["additive cross"] == 0


def test_a_few_failures_on_seen_images_do_not_change_the_verdict():
    few = torch.arange(len(TRUTH)) % 20 == 0
    spoiled = torch.where((few & ~HELDOUT)[:, None, None, None], TRUTH.flip(0), TRUTH)
    assert classified(spoiled).score == 1


def test_three_factors_take_neighbours_that_differ_in_one_value():
    factors = [Factor("x", range(8)), Factor("y", range(8)), Factor("shape", (0, 1), "categorical")]
    grid = latent_grid(factors)
    bump = bumps(grid, 8)
    truth = torch.where(grid[:, 2, None, None, None] == 0, bump, bump.roll(3, -1))
    heldout = ((grid[:, :2] >= 3) & (grid[:, :2] <= 4)).all(1) & (grid[:, 2] == 1)
    for name, images in oracle_images(truth, grid, heldout, factors).items():
        result = classify_images(images, truth, grid, heldout, factors)
        assert result.shares[name] == 1, (name, result.shares)


def test_an_empty_dictionary_is_counted():
    factors = [Factor("x", range(3)), Factor("y", range(3))]
    grid = latent_grid(factors)
    heldout = ~((grid[:, 0] == grid[:, 1]) & (grid[:, 0] < 2))
    truth = bumps(grid, 8)
    corner = (grid == 2).all(1)[heldout]
    result = classify_images(truth, truth, grid, heldout, factors)
    assert result.without_dictionary == 1
    assert result.residuals["superposer"].isnan().tolist() == corner.tolist()
    assert result.score == 1


def test_seen_stripes_are_no_part_of_the_dictionary():
    stripe = torch.tensor([[6.0, torch.nan]])
    latents = torch.cat([GRID, stripe])
    images = torch.cat([TRUTH, bumps(stripe)])
    heldout = torch.cat([HELDOUT, torch.tensor([False])])
    cross = torch.cat([CROSS, CROSS[:1]])
    before = classified(in_the_hole(CROSS)).residuals["superposer"]
    after = classify_images(
        torch.cat([in_the_hole(CROSS), bumps(stripe)]), images, latents, heldout, XY, cross
    ).residuals["superposer"]
    assert torch.equal(before, after)


def test_one_circular_factor_can_be_judged():
    angle = [Factor("angle", range(0, 360, 15), "circular", 360)]
    grid = latent_grid(angle)
    radians = grid[:, 0] * torch.pi / 180
    truth = bumps(torch.stack([6.5 + 5 * radians.cos(), 6.5 + 5 * radians.sin()], 1))
    heldout = (grid[:, 0] > 150) & (grid[:, 0] < 210)
    images = oracle_images(truth, grid, heldout, angle)
    for name in ("composer", "nearest seen", "blank"):
        assert classify_images(images[name], truth, grid, heldout, angle).shares[name] == 1


def test_bad_requests_are_told():
    with pytest.raises(ValueError, match="no held-out points"):
        classified(TRUTH, heldout=torch.zeros_like(HELDOUT))
    with pytest.raises((ValueError, TypeError)):
        classified(TRUTH[:, :, :5])


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), repeated=st.booleans())
def test_weights_from_the_gram_matrix_are_the_nonnegative_least_squares(seed, repeated):
    from scipy.optimize import nnls

    rng = torch.Generator().manual_seed(seed)
    dictionary = torch.rand(6, 20, generator=rng, dtype=torch.float64)
    target = torch.randn(20, generator=rng, dtype=torch.float64)
    if repeated:
        dictionary[5] = dictionary[0]
    weights = nonnegative_weights(dictionary @ dictionary.T, dictionary @ target)
    _, residual = nnls(dictionary.T.numpy(), target.numpy())
    assert (weights >= 0).all()
    assert (target - weights @ dictionary).norm().item() == pytest.approx(residual, abs=1e-7)


def test_an_empty_dictionary_image_gets_no_weight():
    assert nonnegative_weights(torch.zeros(2, 2), torch.zeros(2)).tolist() == [0, 0]


def test_a_brightness_that_is_slightly_off_is_not_a_superposition():
    """Images that differ in brightness alone are multiples of each other: together they would fit any brightness."""
    task = cs.BumpTask(10, brightness=(0.25, 0.5, 0.75, 1.0))
    latents = task.grid()
    truth = task.foreground(task.render(latents))
    heldout = cs.Square(3, 6).contains(latents)
    off = 1 + 0.1 * (2 * torch.rand(len(truth), 1, 1, 1, generator=torch.Generator().manual_seed(0)) - 1)
    verdict = classify_images(off * truth, truth, latents, heldout, task.factors)
    assert verdict.kind == "composes"
    assert verdict.seen_shares["composer"] > 0.9
    neighbours = truth.clone()
    for row in heldout.nonzero()[:, 0].tolist():  # the sum of the nearest seen places, which is a superposition
        beside = ~heldout & (latents[:, 1:] == latents[row, 1:]).all(1)
        nearest = (latents[beside, 0] - latents[row, 0]).abs().topk(2, largest=False).indices
        neighbours[row] = truth[beside][nearest].sum(0) / 2
    assert classify_images(neighbours, truth, latents, heldout, task.factors).kind in ("superposes", "repeats")
