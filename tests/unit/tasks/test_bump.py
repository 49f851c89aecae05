"""The bump task against its closed form."""

import math

import pytest
import torch
from pydantic import ValidationError

import composcope as cs
from composcope.sampling import Draws


@pytest.mark.parametrize("polarity", ["dark", "bright"])
def test_every_pixel_is_the_closed_form(polarity):
    task = cs.BumpTask(9, sigma=1.3, polarity=polarity)
    x, y = 2.0, 6.0
    image = task.render(torch.tensor([[x, y]]))[0, 0]
    for row in range(9):
        for column in range(9):
            bump = math.exp(-((column - x) ** 2 + (row - y) ** 2) / (2 * 1.3**2))
            expected = 1 - bump if polarity == "dark" else bump
            assert image[row, column].item() == pytest.approx(expected, abs=1e-6)


def test_column_is_x_and_row_is_y():
    image = cs.BumpTask(8, polarity="bright").render(torch.tensor([[1.0, 6.0]]))[0, 0]
    assert image.argmax() == 6 * 8 + 1


def test_absent_y_gives_a_vertical_stripe():
    image = cs.BumpTask(8, polarity="bright").render(torch.tensor([[3.0, torch.nan]]))[0, 0]
    expected = torch.exp(-((torch.arange(8) - 3.0) ** 2) / 2)
    torch.testing.assert_close(image, expected.expand(8, 8))


def test_absent_x_gives_a_horizontal_stripe():
    image = cs.BumpTask(8, polarity="bright").render(torch.tensor([[torch.nan, 3.0]]))[0, 0]
    expected = torch.exp(-((torch.arange(8) - 3.0) ** 2) / 2)
    torch.testing.assert_close(image, expected[:, None].expand(8, 8))


def test_two_stripes_multiply_to_the_bump():
    task = cs.BumpTask(8, polarity="bright")
    stripes = task.render(torch.tensor([[3.0, torch.nan], [torch.nan, 5.0]]))
    torch.testing.assert_close(stripes[0] * stripes[1], task.render(torch.tensor([[3.0, 5.0]]))[0])


def test_no_nan_reaches_a_gradient():
    latents = torch.tensor([[3.0, torch.nan], [torch.nan, 2.0], [1.0, 1.0]], requires_grad=True)
    cs.BumpTask(8).render(latents).square().sum().backward()
    assert latents.grad.isfinite().all()
    assert latents.grad[0, 1] == 0


def test_brightness_multiplies_the_foreground():
    task = cs.BumpTask(8, brightness=(0.25, 1.0))
    faint, full, without_brightness = task.foreground(
        task.render(torch.tensor([[3, 4, 0.25], [3, 4, 1.0], [3, 4, torch.nan]]))
    )
    torch.testing.assert_close(faint, 0.25 * full)
    torch.testing.assert_close(without_brightness, full)
    assert [factor.name for factor in task.factors] == ["x", "y", "brightness"]


@pytest.mark.parametrize("sigma", [0.7, 1.0, 2.5])
@pytest.mark.parametrize("polarity", ["dark", "bright"])
def test_real_valued_centres_are_located_to_a_fraction_of_a_pixel(sigma, polarity):
    task = cs.BumpTask(16, sigma=sigma, polarity=polarity)
    centres = 1 + 13 * torch.rand(200, 2, generator=torch.Generator().manual_seed(0))
    assert (task.locate(task.render(centres)) - centres).abs().max() < 0.02


def test_an_image_with_nan_has_no_position():
    task = cs.BumpTask(8)
    images = task.render(torch.tensor([[3.0, 4.0], [3.0, 4.0]]))
    images[1, 0, 0, 0] = torch.nan
    positions = task.locate(images)
    torch.testing.assert_close(positions[0], torch.tensor([3.0, 4.0]), atol=0.01, rtol=0)
    assert positions[1].isnan().all()


def test_a_blank_image_is_located_somewhere_finite():
    task = cs.BumpTask(8)
    assert task.locate(task.blank(2)).isfinite().all()


@pytest.mark.parametrize("size", [2, 3])
def test_smallest_images_can_be_located(size):
    task = cs.BumpTask(size, sigma=0.5)
    assert (task.locate(task.render(task.grid())).round() == task.grid()).all()


def test_continuous_draws_fill_the_plane_between_the_grid_points():
    drawn = cs.BumpTask(8, continuous=True).draw(500, torch.Generator().manual_seed(0))
    assert drawn.min() >= 0
    assert drawn.max() <= 7
    assert (drawn != drawn.round()).any(1).all()
    assert (cs.BumpTask(8).draw(500, torch.Generator().manual_seed(0)) % 1 == 0).all()


def test_continuous_draws_never_fall_into_the_hole():
    hole = cs.Square(2, 5)
    drawn = Draws(3000).sample(cs.BumpTask(8, continuous=True), hole, torch.Generator().manual_seed(0))
    assert len(drawn) == 3000
    assert not ((drawn >= 2) & (drawn <= 5)).all(1).any()
    assert ((drawn > 1.5) & (drawn < 5.5)).all(1).any()


def test_wrong_number_of_latents_is_reported():
    with pytest.raises(ValueError, match=r"2 factors; latents have shape \(1, 3\)"):
        cs.BumpTask(8).render(torch.zeros(1, 3))


@pytest.mark.parametrize(
    ("field", "value"),
    [("size", 0), ("size", -1), ("sigma", 0.0), ("sigma", -1.0), ("sigma", float("nan")), ("polarity", "grey")],
)
def test_bad_field_is_named(field, value):
    with pytest.raises(ValidationError, match=field):
        cs.BumpTask(**{"size": 8, field: value})


@pytest.mark.parametrize("values", [(0.0, 1.0), (0.5, 2.0), (1.0, 0.5), (0.5, 0.5)], ids=str)
def test_brightness_is_increasing_within_0_and_1(values):
    with pytest.raises(ValidationError, match="brightness"):
        cs.BumpTask(8, brightness=values)


def test_a_very_narrow_bump_is_still_finite():
    task = cs.BumpTask(8, sigma=1e-30)
    assert task.render(task.grid()).isfinite().all()
