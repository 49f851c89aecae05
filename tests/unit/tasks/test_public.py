"""Readers of dSprites, 3D Shapes and MPI3D, on small files of the same form."""

import hashlib

import numpy as np
import pytest
import torch
from pydantic import ValidationError

import composcope as cs
from public_files import public_file


def test_dsprites_has_its_factors_and_images(tmp_path):
    path = public_file("dsprites.npz", tmp_path)
    task = cs.DSprites(str(path))
    assert [factor.name for factor in task.factors] == ["shape", "scale", "orientation", "x", "y"]
    assert task.factors[0].names == ("square", "ellipse", "heart")
    assert (task.factors[2].kind, task.factors[2].size) == ("circular", 4)  # the full turn is left out
    with np.load(path) as arrays:
        images, values = arrays["imgs"], arrays["latents_values"]
    grid = task.grid()
    drawn = task.render(grid)
    assert drawn.shape == (3 * 2 * 4 * 4 * 4, 1, 8, 8)
    for latents, image in zip(grid.tolist()[::7], drawn[::7], strict=True):
        row = np.isclose(values[:, 1:], latents).all(1).argmax()
        assert (image[0].numpy() == images[row]).all()
    assert task.background.item() == 0


@pytest.mark.parametrize("name", ["3dshapes.h5", "3dshapes.npz"])
def test_shapes3d_is_read_from_both_kinds_of_file(tmp_path, name):
    path = public_file(name, tmp_path)
    task = cs.Shapes3D(str(path), {"floor_hue": [0.5], "shape": [1, 3]})
    assert task.factors[4].names == ("cylinder", "capsule")
    assert task.image_shape == (3, 4, 5)
    expected = np.random.default_rng(0).integers(0, 256, (128, 4, 5, 3), dtype=np.uint8)
    latents = torch.tensor([[0.5, 0.0, 0.1, 0.75, 3.0, -30.0], [0.5, 0.5, 0.0, 1.25, 1.0, 30.0]])
    rows = [64 + 16 + 6, 64 + 32 + 8 + 2 + 1]
    assert torch.equal(task.render(latents), torch.from_numpy(expected[rows] / 255).float().permute(0, 3, 1, 2))
    assert len(task.grid()) == 2 * 2 * 2 * 2 * 2


@pytest.mark.parametrize(("name", "colors"), [("mpi3d.npz", 6), ("mpi3d.h5", 6), ("mpi3d_complex.npz", 4)])
def test_mpi3d_rows_are_in_order(tmp_path, name, colors):
    task = cs.MPI3D(str(public_file(name, tmp_path)))
    assert [factor.size for factor in task.factors] == [colors, colors, 2, 3, 3, 40, 40]
    latents = torch.tensor([[1.0, 2, 1, 0, 2, 7, 30], [0.0, 0, 0, 0, 0, 0, 1]])
    pixels = (task.render(latents) * 255).round().long().flatten(1)
    rows = pixels[:, 0] + 256 * pixels[:, 1] + 65536 * pixels[:, 2]
    place = [colors * 2 * 9 * 1600, 2 * 9 * 1600, 9 * 1600, 3 * 1600, 1600, 40, 1]
    assert rows.tolist() == [sum(int(value) * by for value, by in zip(row, place, strict=True)) for row in latents]


def test_a_file_is_identified_by_its_checksum(tmp_path):
    path = public_file("dsprites.npz", tmp_path)
    task = cs.DSprites(str(path), {"scale": [1.0]})
    data = task.to_dict()
    assert data["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert cs.Task.from_dict(data) == task
    with pytest.raises(ValidationError, match="has changed"):
        cs.DSprites(str(path), sha256="0" * 64)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("absent.npz",), "file not found"),
        (("dsprites.txt",), "ends in"),
        (("dsprites.npz", {"sclae": [1.0]}), "did you mean 'scale'"),
        (("dsprites.npz", {"scale": [0.7]}), "not all among its values"),
    ],
)
def test_bad_requests_are_told(tmp_path, arguments, words):
    public_file("dsprites.npz", tmp_path)
    (tmp_path / "dsprites.txt").write_text("")
    with pytest.raises(ValidationError, match=words):
        cs.DSprites(str(tmp_path / arguments[0]), *arguments[1:])


def test_the_wrong_data_set_is_told(tmp_path):
    with pytest.raises(ValidationError, match="has no array 'labels'"):
        cs.Shapes3D(str(public_file("dsprites.npz", tmp_path)))
    with pytest.raises(ValidationError, match="has 128 images; MPI3D has"):
        cs.MPI3D(str(public_file("3dshapes.npz", tmp_path)))


def test_a_decoder_of_dsprites_is_diagnosed(tmp_path):
    task = cs.DSprites(str(public_file("dsprites.npz", tmp_path)), {"scale": [0.5]})
    codes = cs.OneHot().encode(task.grid(), task.factors)
    images = task.render(task.grid())
    found = cs.diagnose(
        lambda given: images[(given @ codes.T).argmax(1)],
        task,
        lambda shape, x, y: shape == "heart" and x > 0.5 and y > 0.5,
        cs.OneHot(),
        only="verdict",
    )
    assert found.verdict.kind == "composes"
    assert found.verdict.names["shape"] == ("square", "ellipse", "heart")
