"""Sprites against areas, centres and symmetries that can be written down."""

import itertools
import math

import pytest
import torch
from pydantic import ValidationError
from torch.func import jvp

import composcope as cs
from composcope.tasks.shapes import SHAPES, reach
from composcope.tasks.sprites import COLOURS

SQUARE = cs.SpriteTask(16, x=range(4, 12), y=range(4, 12), shapes=("square", "disc", "cross", "heart"), scales=(3,))


def coverage(shape, x=31.5, y=31.5, scale=15.0, rotation=0.0, side=64):
    offset = torch.tensor([[rotation]])
    task = cs.SpriteTask(
        side, x=(x,), y=(y,), shapes=(shape,), scales=(scale,), rotations=(rotation, rotation + 1), polarity="bright"
    )
    return task.render(offset)[0, 0].double()


def centre(image):
    pixels = torch.arange(image.shape[0], dtype=torch.float64)
    return (image.sum(0) @ pixels / image.sum()).item(), (image.sum(1) @ pixels / image.sum()).item()


@pytest.mark.parametrize("rotation", [0.0, 33.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_has_the_area_of_the_disc(shape, rotation):
    assert coverage(shape, rotation=rotation).sum().item() == pytest.approx(math.pi * 15**2, rel=0.004)


@pytest.mark.parametrize("shape", ["square", "bar"])
def test_area_of_a_rectangle_is_exact_at_every_place(shape):
    for x, y in ((31.5, 31.5), (30.1, 33.7)):
        assert coverage(shape, x, y).sum().item() == pytest.approx(math.pi * 15**2, rel=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_centre_of_mass_is_the_position(shape):
    for x, y, rotation in ((31.5, 31.5, 0.0), (30.2, 33.7, 70.0)):
        assert centre(coverage(shape, x, y, rotation=rotation)) == pytest.approx((x, y), abs=0.02)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_just_fits_its_circle(shape):
    pixels = torch.arange(64, dtype=torch.float64) - 31.5
    distance = (pixels[:, None].square() + pixels.square()).sqrt()[coverage(shape) > 0.5]
    assert 15 * reach(shape) - 1.5 < distance.max() < 15 * reach(shape) + 0.5


def test_reach_is_the_closed_form():
    assert reach("square") == pytest.approx(math.sqrt(math.pi / 2))  # side sqrt(pi), half a diagonal
    assert reach("triangle") == pytest.approx(2 * math.sqrt(math.pi / math.sqrt(27)))
    assert reach("ring") == pytest.approx(2 / math.sqrt(3))


def test_no_shape_covers_all_the_others():
    """Otherwise an absent shape, drawn as the maximum, would be that shape."""
    task = cs.SpriteTask(32, shapes=SHAPES, scales=(9,), polarity="bright")
    images, greatest = task.render(task.grid()), task.render(torch.tensor([[torch.nan]]))
    assert ((greatest - images).flatten(1).square().sum(1) > 0.05 * images.flatten(1).square().sum(1)).all()


@pytest.mark.parametrize(
    ("shape", "angle"), [("square", 90), ("cross", 90), ("bar", 180), ("triangle", 120), ("disc", 37), ("ring", 37)]
)
def test_a_rotation_by_the_angle_of_symmetry_changes_nothing(shape, angle):
    torch.testing.assert_close(coverage(shape, rotation=float(angle)), coverage(shape), atol=2e-5, rtol=0)
    if shape not in ("disc", "ring"):
        assert (coverage(shape, rotation=angle / 2) - coverage(shape)).abs().max() > 0.9


@pytest.mark.parametrize("shape", SHAPES)
def test_rotation_is_counter_clockwise_as_drawn(shape):
    upright, turned = (coverage(shape, rotation=angle).flip(0) for angle in (0.0, 90.0))  # row 0 at the bottom
    torch.testing.assert_close(turned, torch.rot90(upright), atol=2e-5, rtol=0)


@pytest.mark.parametrize("shape", ["triangle", "heart", "dome"])
def test_shapes_are_upright(shape):
    """The triangle points up, the heart down, and the dome is flat below."""
    rows = (coverage(shape) > 0.5).sum(1)
    low, high = rows[rows > 0][:4].sum(), rows[rows > 0][-4:].sum()
    assert (low < high) == (shape == "heart")


def test_column_is_x_and_row_is_y():
    image = SQUARE.foreground(SQUARE.render(torch.tensor([[5.0, 10.0, 1.0]])))[0, 0]
    assert centre(image.double()) == pytest.approx((5, 10), abs=1e-4)


@pytest.mark.parametrize(("polarity", "ink"), [("bright", lambda c: c), ("dark", lambda c: 1 - c)])
def test_colours_are_those_of_the_palette(polarity, ink):
    task = cs.SpriteTask(16, colours=tuple(COLOURS), polarity=polarity)
    images = task.render(task.grid())
    torch.testing.assert_close(images[:, :, 8, 8], torch.tensor(list(COLOURS.values())))
    assert (images[:, :, 0, 0] == (1 if polarity == "dark" else 0)).all()
    torch.testing.assert_close(task.foreground(images)[:, :, 8, 8], ink(torch.tensor(list(COLOURS.values()))))


def test_rgb_without_colours_is_gray():
    task = cs.SpriteTask(16, scales=(3, 5), rgb=True)
    images = task.render(task.grid())
    assert images.shape == (2, 3, 16, 16)
    assert torch.equal(images[:, 0], images[:, 2])


@pytest.mark.parametrize("chosen", list(itertools.combinations(range(6), 2)), ids=str)
def test_any_subset_of_factors(chosen):
    fields = {
        "x": (6.5, 8.5),
        "y": (6.5, 7.5, 8.5),
        "shapes": ("heart", "dome"),
        "scales": (3, 4),
        "rotations": (0, 45),
        "colours": ("red", "cyan"),
    }
    names = ["x", "y", "shape", "scale", "rotation", "colour"]
    task = cs.SpriteTask(
        16, **{field: fields[field] for i, field in enumerate(fields) if i in chosen} | {"scales": (3, 4)}
    )
    expected = sorted({*chosen, 3})
    assert [factor.name for factor in task.factors] == [names[i] for i in expected]
    images = task.render(task.grid()).flatten(1)
    assert images.shape[0] == math.prod(factor.size for factor in task.factors)
    expected_positions = ("x", "y") if {0, 1} <= set(chosen) else ()
    assert task.positions == expected_positions


def test_a_field_with_one_value_fixes_it_and_no_value_takes_the_default():
    implied = cs.SpriteTask(16, shapes=("square", "heart"))
    written = cs.SpriteTask(16, shapes=("square", "heart"), x=(7.5,), y=(7.5,), scales=(16 / 6,), rotations=(0,))
    torch.testing.assert_close(implied.render(implied.grid()), written.render(written.grid()))
    disc = cs.SpriteTask(16, scales=(2, 4))
    torch.testing.assert_close(
        disc.render(disc.grid()), cs.SpriteTask(16, scales=(2, 4), shapes=("disc",)).render(disc.grid())
    )


def test_the_maximum_over_all_positions_covers_everything_between_them():
    task = cs.SpriteTask(16, x=range(3, 13), y=range(3, 13), scales=(2.5,), shapes=("square",), polarity="bright")
    image = task.render(torch.full((1, 2), torch.nan))[0, 0]
    assert (image[2:14, 2:14] == 1).all()
    assert image[0].max() == 0


@pytest.mark.parametrize("field", ["x", "y", "scale", "rotation"])
def test_slopes_are_those_of_differences(field):
    task = cs.SpriteTask(32, x=(13, 17), y=(14, 18), shapes=SHAPES, scales=(6, 8), rotations=(0, 20), polarity="bright")
    latents = task.grid()[::3].double() + 0.123
    latents[:, 2] = latents[:, 2].round()
    along = torch.zeros_like(latents)
    along[:, [factor.name for factor in task.factors].index(field)] = 1
    slope = jvp(task.render, (latents,), (along,))[1]
    difference = (task.render(latents + 1e-6 * along) - task.render(latents - 1e-6 * along)) / 2e-6
    assert slope.isfinite().all()
    assert slope.abs().max() > 0.1
    torch.testing.assert_close(slope, difference, atol=1e-4, rtol=1e-4)


def test_of_two_shapes_the_position_of_one_is_read_and_not_their_mean():
    task = cs.SpriteTask(32, x=range(5, 27), y=range(5, 27), scales=(4,), polarity="bright")
    both = task.render(torch.tensor([[6.0, 6.0]])) + 1.1 * task.render(torch.tensor([[24.0, 20.0]]))
    torch.testing.assert_close(task.locate(both), torch.tensor([[24.0, 20.0]]), atol=0.02, rtol=0)


def test_a_blank_image_is_somewhere_and_nan_is_nowhere():
    images = SQUARE.blank(2)
    images[1, 0, 0, 0] = torch.nan
    places = SQUARE.locate(images)
    assert places[0].isfinite().all()
    assert places[1].isnan().all()


def test_a_large_grid_is_drawn_in_parts(monkeypatch):
    images = SQUARE.render(SQUARE.grid())
    monkeypatch.setattr("composcope.tasks.sprites.MAX_PIXELS", 1000)
    assert torch.equal(SQUARE.render(SQUARE.grid()), images)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({}, "nothing varies"),
        ({"x": (7,), "shapes": ("heart",)}, "nothing varies"),
        ({"x": (2, 8), "scales": (4,)}, "reach 4 pixels far leave the image; from 3.5 to 11.5 they fit"),
        ({"scales": (3, 9)}, "leave the image"),
        ({"scales": (0, 3)}, "above 0"),
        ({"shapes": ("square", "hart")}, "there is no 'hart', did you mean 'heart'"),
        ({"shapes": ("square", "square")}, "each name may occur once"),
        ({"colours": ("red", "white")}, "there is no 'white'"),
        ({"y": (8, 7)}, "strictly increasing"),
        ({"rotations": (0, 360)}, "whole period"),
    ],
    ids=str,
)
def test_bad_fields_are_explained(fields, complaint):
    with pytest.raises(ValidationError, match=complaint):
        cs.SpriteTask(16, **fields)


def test_unknown_shape_numbers_and_wrong_columns_are_reported():
    with pytest.raises(ValueError, match=r"shape = 7 is not one of the values 0..3"):
        SQUARE.render(torch.tensor([[5.0, 5.0, 7.0]]))
    with pytest.raises(ValueError, match=r"3 factors; latents have shape \(1, 2\)"):
        SQUARE.render(torch.zeros(1, 2))
