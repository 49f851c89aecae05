"""Absent factors, drawn over all of their values."""

import pytest
import torch
from pydantic import ValidationError

import composcope as cs
from composcope.tasks import base
from composcope.tasks.rotation import digits

NAN = torch.nan


@pytest.mark.parametrize("polarity", ["dark", "bright"])
def test_maximum_over_whole_pixels_is_the_stripe(polarity):
    stripe, greatest = (cs.BumpTask(9, 1.3, polarity, brightness=(0.5, 1.0), absent=how) for how in ("stripe", "max"))
    rows = torch.tensor([[3, NAN, NAN], [NAN, 4, 0.5], [NAN, NAN, 0.5], [2, 5, NAN], [NAN, NAN, NAN], [1, 2, 0.5]])
    torch.testing.assert_close(greatest.render(rows), stripe.render(rows))


def test_mean_of_a_bump_is_the_product_of_its_mean_profiles():
    task = cs.BumpTask(8, polarity="bright", brightness=(0.25, 0.75), absent="mean")
    pixels = torch.arange(8.0)
    profiles = torch.exp(-(pixels - pixels[:, None]).square() / 2)
    alone, without_x = task.render(torch.tensor([[3, NAN, NAN], [NAN, 4, 0.25]]))[:, 0]
    torch.testing.assert_close(alone, 0.5 * profiles.mean(0)[:, None] * profiles[3])
    torch.testing.assert_close(without_x, 0.25 * profiles[4][:, None] * profiles.mean(0))


def test_present_values_need_not_be_on_the_grid():
    task = cs.BumpTask(8, polarity="bright", absent="max")
    torch.testing.assert_close(
        task.render(torch.tensor([[3.4, NAN]])), cs.BumpTask(8, polarity="bright").render(torch.tensor([[3.4, NAN]]))
    )


def test_without_absent_factors_nothing_changes():
    plain, averaging = cs.BumpTask(8), cs.BumpTask(8, absent="mean")
    assert torch.equal(plain.render(plain.grid()), averaging.render(plain.grid()))


@pytest.mark.parametrize("most", [1, 100, 64 * 5])
@pytest.mark.parametrize("how", ["max", "mean"])
def test_memory_is_bounded_and_changes_nothing(how, most, monkeypatch):
    task = cs.BumpTask(8, brightness=(0.5, 1.0), absent=how)
    rows = torch.tensor([[3, NAN, NAN], [4, NAN, NAN], [NAN, NAN, 0.5], [1, 1, 1], [3, NAN, NAN]])
    expected, drawn = task.render(rows), []
    render = cs.BumpTask.render
    monkeypatch.setattr(base, "MAX_NUMBERS", most)
    monkeypatch.setattr(cs.BumpTask, "render", lambda self, latents: (drawn.append(latents), render(self, latents))[1])
    torch.testing.assert_close(task.render(rows), expected)
    complete = [latents for latents in drawn if not latents.isnan().any()]
    assert max(map(len, complete)) <= max(1, most // 64)
    assert sum(map(len, complete)) == 2 * 16 + 64 + 1  # the row that occurs twice is drawn once


def test_small_digits_are_means_of_areas_and_keep_their_ink():
    task = cs.RotationTask(digits=(1, 4), angles=4, side=14)
    assert task.image_shape == (1, 14, 14)
    images = task.render(task.grid())
    upright = images[torch.tensor([0, 1])].flip(2)[:, 0]  # row 0 is at the bottom
    expected = digits()[[1, 4]].reshape(2, 14, 2, 14, 2).mean((2, 4))
    torch.testing.assert_close(upright, expected, atol=1e-5, rtol=0)
    large = cs.RotationTask(digits=(1, 4), angles=4)
    torch.testing.assert_close(images.mean((1, 2, 3)), large.render(large.grid()).mean((1, 2, 3)))


def test_a_digit_at_all_quarter_turns_has_their_symmetry():
    task = cs.RotationTask(digits=(1, 4), angles=4, absent="max")
    image = task.render(torch.tensor([[NAN, 4.0]]))[0, 0]
    torch.testing.assert_close(torch.rot90(image), image, atol=1e-4, rtol=0)


def test_tables_draw_absent_factors_only_if_asked_and_complete():
    columns = {"shape": ["disc", "bar", "disc", "bar"], "x": [0, 0, 1, 1]}
    images = torch.arange(4.0).reshape(4, 1, 1).expand(4, 8, 8) / 4
    row = torch.tensor([[1.0, NAN]])  # the disc, at 0 / 4 and 2 / 4
    for how, expected in (("max", 0.5), ("mean", 0.25)):
        assert (cs.TableTask.from_columns(columns, images, absent=how).render(row) == expected).all()
    with pytest.raises(ValueError, match="no image for"):
        cs.TableTask.from_columns(columns, images).render(row)
    incomplete = {name: values[:3] for name, values in columns.items()}
    with pytest.raises(ValueError, match="no image for"):
        cs.TableTask.from_columns(incomplete, images[:3], absent="max").render(torch.tensor([[NAN, 1.0]]))


def test_how_absent_factors_are_drawn_is_part_of_a_tables_identity(tmp_path):
    columns = {"shape": ["disc", "bar", "disc", "bar"], "x": [0, 0, 1, 1]}
    table = cs.TableTask.from_columns(columns, torch.rand(4, 8, 8)).save(tmp_path / "table.npz")
    assert "absent" not in table.to_dict()
    other = cs.Task.from_dict({**table.to_dict(), "absent": "max"})
    assert other.to_dict()["absent"] == "max"
    assert other != table
    with pytest.raises(ValidationError, match="absent"):
        cs.Task.from_dict({**table.to_dict(), "absent": "least"})


def test_new_fields_keep_the_ids_of_specs():
    hole = cs.Box({"x": (1, 4), "y": (1, 1)})
    spec = cs.Spec(cs.BumpTask(8), hole, cs.OneHot(), cs.MLP(), sampling=cs.Everything())
    assert spec.run_id == "6784631acc20aa06"
    stripes = cs.Spec(cs.BumpTask(8), cs.Square(2, 5), cs.OneHot(), cs.MLP(), sampling=cs.Stripes(bumps=9))
    assert stripes.run_id == "e783b1ce1637e998"
    turn = cs.Box({"angle": (1, 100), "digit": (1, 1)})
    rotation = cs.Spec(cs.RotationTask((1, 4), 6), turn, cs.OneHot(), cs.MLP(), sampling=cs.Everything())
    assert rotation.run_id == "419f91c3e9d5f217"
