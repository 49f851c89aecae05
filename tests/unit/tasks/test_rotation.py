"""Rotated digits."""

import pytest
import torch
from pydantic import ValidationError

import composcope as cs
from composcope.tasks.rotation import digits


def as_drawn(images):
    """Images as figures show them: the first row at the bottom."""
    return images[:, 0].flip(1)


def test_quarter_turns_are_rot90_as_drawn():
    task = cs.RotationTask(digits=(4,), angles=4)
    for quarters, picture in enumerate(as_drawn(task.render(task.grid()))):
        torch.testing.assert_close(picture, torch.rot90(digits()[4], quarters), atol=1e-4, rtol=0)


def test_a_full_rotation_changes_nothing():
    task = cs.RotationTask()
    images = task.render(torch.tensor([[33.0], [393.0]]))
    torch.testing.assert_close(images[0], images[1], atol=1e-4, rtol=0)


def test_one_digit_has_one_factor_and_several_have_two():
    assert [factor.name for factor in cs.RotationTask().factors] == ["angle"]
    factors = cs.RotationTask(digits=(1, 4, 7)).factors
    assert [factor.name for factor in factors] == ["angle", "digit"]
    assert factors[1].values == (1, 4, 7)
    assert factors[1].kind == "categorical"


def test_digit_is_selected_by_its_value():
    task = cs.RotationTask(digits=(1, 4), angles=4)
    pictures = as_drawn(task.render(torch.tensor([[0.0, 4.0], [0.0, 1.0]])))
    torch.testing.assert_close(pictures, digits()[[4, 1]], atol=1e-5, rtol=0)


@pytest.mark.parametrize("latents", [[torch.nan, 1.0], [0.0, torch.nan], [0.0, 2.0]], ids=str)
def test_latents_that_cannot_be_rendered_are_refused(latents):
    with pytest.raises(ValueError, match="RotationTask"):
        cs.RotationTask(digits=(1, 4)).render(torch.tensor([latents]))


@pytest.mark.parametrize("fields", [{"digits": ()}, {"digits": (10,)}, {"digits": (4, 1)}, {"angles": 1}], ids=str)
def test_bad_field_is_named(fields):
    with pytest.raises(ValidationError, match=next(iter(fields))):
        cs.RotationTask(**fields)
