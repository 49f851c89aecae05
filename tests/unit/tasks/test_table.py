"""A user's own data."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError

import composcope as cs

FACTORS = (cs.Factor("a", (0, 1, 2)), cs.Factor("b", (0.5, 1.5)))
LATENTS = torch.cartesian_prod(torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.5, 1.5]))


@pytest.fixture
def images():
    return torch.rand(6, 1, 4, 5, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def task(images):
    return cs.TableTask(LATENTS, images, FACTORS)


@pytest.fixture
def saved(task, tmp_path):
    return task.save(tmp_path / "table.npz")


def test_images_are_looked_up_in_any_order(task, images):
    order = torch.tensor([4, 0, 0, 5])
    assert torch.equal(task.render(LATENTS[order]), images[order])


def test_rows_may_come_in_any_order(images):
    order = torch.tensor([3, 5, 0, 1, 4, 2])
    shuffled = cs.TableTask(LATENTS[order], images[order], FACTORS)
    assert torch.equal(shuffled.render(LATENTS), images)


def test_lists_and_arrays_without_channels_are_accepted(images):
    task = cs.TableTask(LATENTS.tolist(), images[:, 0].numpy().astype(np.float64), FACTORS)
    assert task.image_shape == (1, 4, 5)
    assert torch.equal(task.render(LATENTS), images)


def test_missing_combination_is_named(images):
    task = cs.TableTask(LATENTS[:5], images[:5], FACTORS)
    with pytest.raises(ValueError, match=r"no image for \(2.0, 1.5\)"):
        task.render(LATENTS)


def test_value_that_is_not_a_factor_value_is_named(task):
    with pytest.raises(ValueError, match=r"a = 7 is not one of the factor's values, 0, 1, 2"):
        task.render(torch.tensor([[7.0, 0.5]]))


def test_stripes_are_not_part_of_the_grid(images):
    latents = torch.cat([LATENTS, torch.tensor([[1.0, torch.nan]])])
    task = cs.TableTask(latents, torch.cat([images, torch.ones(1, 1, 4, 5)]), FACTORS)
    assert torch.equal(task.grid(), LATENTS)
    assert torch.equal(task.render(torch.tensor([[1.0, torch.nan]])), torch.ones(1, 1, 4, 5))


@pytest.mark.parametrize(
    ("latents", "shape", "complaint"),
    [
        (LATENTS, (5, 1, 4, 4), r"6 latents need shape \(6, c, h, w\)"),
        (LATENTS[:, :1], (6, 1, 4, 4), r"2 factors need shape \(n, 2\)"),
        (torch.cat([LATENTS[:5], LATENTS[:1]]), (6, 1, 4, 4), "occurs twice"),
        (LATENTS + 0.25, (6, 1, 4, 4), "not one of the factor's values"),
    ],
)
def test_tables_that_do_not_fit_are_refused(latents, shape, complaint):
    with pytest.raises(ValidationError, match=complaint):
        cs.TableTask(latents, torch.zeros(shape), FACTORS)


def test_nan_pixels_are_refused(images):
    images[2, 0, 1, 1] = torch.nan
    with pytest.raises(ValidationError, match="finite"):
        cs.TableTask(LATENTS, images, FACTORS)


def test_saved_table_loads_unchanged(saved):
    loaded = cs.TableTask.load(saved.file)
    assert loaded == saved
    assert loaded.factors == FACTORS
    assert cs.Task.from_dict(saved.to_dict()) == saved


def test_a_table_without_a_file_cannot_be_part_of_a_spec(task):
    with pytest.raises(ValueError, match=r"task.save\(.table.npz.\)"):
        task.to_dict()


def spec_of(task):
    return cs.Spec(task=task, holdout=cs.Box({"a": (1, 1), "b": (1.5, 1.5)}), encoding=cs.OneHot(), decoder=cs.MLP())


def test_run_id_depends_on_contents_and_not_on_the_path(task, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    here, there = task.save(tmp_path / "a.npz"), task.save(tmp_path / "elsewhere" / "b.npz")
    assert spec_of(here).run_id == spec_of(there).run_id
    other = cs.TableTask(LATENTS, task.images / 2, FACTORS).save(tmp_path / "c.npz")
    assert spec_of(other).run_id != spec_of(here).run_id


def test_polarity_is_part_of_the_run_id(task, tmp_path):
    dark = cs.TableTask(LATENTS, task.images, FACTORS, "dark").save(tmp_path / "dark.npz")
    assert spec_of(dark).run_id != spec_of(task.save(tmp_path / "bright.npz")).run_id


def test_changed_file_is_detected(saved):
    written = spec_of(saved).to_dict()
    cs.TableTask(LATENTS, saved.images / 2, FACTORS).save(saved.file)
    with pytest.raises(cs.BadInput, match="has changed"):
        cs.Spec.from_dict(written)


def test_file_that_changes_under_a_loaded_table_does_not_change_its_id(saved):
    before = spec_of(saved).run_id
    cs.TableTask(LATENTS, saved.images / 2, FACTORS).save(saved.file)
    try:
        after = spec_of(saved).run_id
    except ValueError:
        return
    assert after == before


@pytest.mark.parametrize("content", [b"", b"no table", b"PK\x03\x04 half a zip"], ids=["empty", "text", "cut"])
def test_a_file_that_is_not_a_table_is_refused(content, tmp_path):
    path = tmp_path / "table.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"table.npz. is not a table"):
        cs.TableTask.load(path)


def test_unknown_polarity_in_a_spec_is_named(saved):
    with pytest.raises(ValueError, match="polarity") as complaint:
        cs.Task.from_dict({"kind": "table", "file": saved.file, "polarity": "grey"})
    assert "not a table" not in str(complaint.value)


def test_pickled_arrays_are_never_loaded(tmp_path):
    path = tmp_path / "evil.npz"
    np.savez(path, latents=np.array([print], dtype=object), images=np.zeros((1, 1, 2, 2)), factors=np.array("[]"))
    with pytest.raises(ValueError, match="not a table"):
        cs.TableTask.load(path)


def test_saving_to_a_missing_folder_is_an_error(task, tmp_path):
    with pytest.raises((OSError, ValueError), match="nowhere"):
        task.save(tmp_path / "nowhere" / "table.npz")


class TestBackground:
    def test_it_is_learned_from_the_border_for_each_channel(self):
        colour = torch.tensor([0.2, 0.5, 0.9])[:, None, None]
        pictures = colour.expand(len(LATENTS), 3, 6, 6).clone()
        pictures[:, :, 2:4, 2:4] = torch.rand(len(LATENTS), 3, 2, 2)
        task = cs.TableTask(LATENTS, pictures, FACTORS)
        assert torch.allclose(task.background, colour)
        assert torch.allclose(task.foreground(pictures)[:, :, 0], torch.zeros(6), atol=1e-6)
        assert torch.allclose(task.blank(2), colour.expand(2, 3, 6, 6))

    @pytest.mark.parametrize("given", [0.25, [0.25, 0.5], torch.rand(2, 4, 5)])
    def test_it_can_be_given(self, given, tmp_path):
        pictures = torch.rand(len(LATENTS), 2, 4, 5)
        task = cs.TableTask(LATENTS, pictures, FACTORS, background=given)
        expected = torch.as_tensor(given)
        expected = expected[:, None, None] if expected.ndim == 1 else expected
        assert torch.allclose(task.foreground(pictures), pictures - expected)
        saved = task.save(tmp_path / "table.npz")
        assert torch.equal(cs.TableTask.load(saved.file).background, task.background)
        again = cs.Task.from_dict(saved.to_dict())
        assert again == saved == task
        assert torch.equal(again.background, task.background)
        assert task != cs.TableTask(LATENTS, pictures, FACTORS)

    def test_it_is_part_of_the_identity_only_if_it_is_given(self, tmp_path):
        pictures = torch.rand(len(LATENTS), 2, 4, 5)
        task = cs.TableTask(LATENTS, pictures, FACTORS)
        assert set(task.save(tmp_path / "a.npz").to_dict()) == {"kind", "file", "sha256", "polarity"}
        assert cs.TableTask(LATENTS, pictures, FACTORS, background=task.background) == task

    def test_a_background_of_another_shape_is_refused(self):
        with pytest.raises(ValueError, match="background"):
            cs.TableTask(LATENTS, torch.rand(len(LATENTS), 2, 4, 5), FACTORS, background=[0.1, 0.2, 0.3])
