"""Labelled images: from columns, from a folder, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import composcope as cs

COLUMNS = {"shape": ["ring", "disc"] * 20, "x": [3, 1, 1, 3] * 10}


def test_text_keeps_its_order_and_numbers_are_sorted():
    task = cs.Examples.from_columns(COLUMNS, torch.rand(40, 6, 8))
    assert task.factors == (cs.Factor("shape", ("ring", "disc")), cs.Factor("x", (1, 3)))
    assert task.image_shape == (1, 6, 8)
    assert task.index[:2].tolist() == [[0, 1], [1, 0]]
    assert task.names(task.latents[:1]) == [{"shape": "ring", "x": 3.0}]
    assert task.present.all()


def test_given_values_override_the_order():
    task = cs.Examples.from_columns(COLUMNS, torch.rand(40, 1, 6, 8), values={"shape": ["disc", "ring"]})
    assert task.factors[0].names == ("disc", "ring")


def test_whole_numbers_of_eight_bits_become_shares():
    task = cs.Examples.from_columns(COLUMNS, np.full((40, 3, 6, 8), 255, dtype=np.uint8))
    assert task.images.max() == 1


@pytest.mark.parametrize(
    ("columns", "values", "message"),
    [
        (COLUMNS, {"shap": ["ring"]}, "no factor 'shap', did you mean 'shape'"),
        (COLUMNS, {"shape": ["ring", "bar"]}, "shape = 'disc' is not one of the factor's values"),
        (COLUMNS, {"shape": ["ring", "disc", "bar"]}, "shape = bar has 0 images"),
        (COLUMNS, {"x": [1, 2]}, "x = 3 \\(row 1\\) is not one of"),
        ({**COLUMNS, "x": [1] * 39 + [3]}, {}, "x = 3.0 has 1 images"),
        ({**COLUMNS, "x": [1] * 40}, {}, "nothing to combine"),
        ({**COLUMNS, "shape": ["ring", ""] * 20}, {}, "shape: row 2 has no label"),
        ({**COLUMNS, "x": [1, float("nan")] * 20}, {}, "x: row 2 has no label"),
    ],
)
def test_what_cannot_be_examples_is_refused(columns, values, message):
    with pytest.raises(cs.BadInput, match=message):
        cs.Examples.from_columns(columns, torch.rand(40, 6, 8), values=values)


def test_there_is_no_true_image():
    with pytest.raises(cs.BadInput, match="no single true image"):
        cs.Examples.from_columns(COLUMNS, torch.rand(40, 6, 8)).render(torch.zeros(1, 2))


@pytest.fixture
def folder(tmp_path):
    """Forty images, grey ones and one in colour, and their labels."""
    for number in range(40):
        mode, shade = ("RGB", (255, 0, 0)) if number == 1 else ("L", 51)
        Image.new(mode, (8, 6), shade).save(tmp_path / f"{number}.png")
    pd.DataFrame({"file": [f"{number}.png" for number in range(40)], **COLUMNS}).to_csv(tmp_path / "labels.csv")
    return tmp_path


def test_a_folder_and_its_labels(folder):
    task = cs.Examples.from_folder(folder, folder / "labels.csv", factors=["shape", "x"])
    assert task.image_shape == (3, 6, 8)
    assert task.images[0].unique().tolist() == pytest.approx([0.2])
    assert task.images[1, :, 0, 0].tolist() == [1, 0, 0]
    frame = pd.DataFrame({"path": [f"{number}.png" for number in range(40)], **COLUMNS})
    assert cs.Examples.from_folder(folder, frame).factors == task.factors


def test_a_file_that_cannot_be_read_is_named_with_its_row(folder):
    (folder / "4.png").write_text("no image")
    with pytest.raises(cs.BadInput, match=r"'4.png' \(row 5 of the labels\) cannot be read"):
        cs.Examples.from_folder(folder, folder / "labels.csv")
    (folder / "4.png").unlink()
    with pytest.raises(cs.BadInput, match=r"'4.png' \(row 5 of the labels\) is not in the folder"):
        cs.Examples.from_folder(folder, folder / "labels.csv")
    Image.new("L", (9, 6)).save(folder / "4.png")
    with pytest.raises(cs.BadInput, match=r"row 5 of the labels\) has 9 x 6 pixels"):
        cs.Examples.from_folder(folder, folder / "labels.csv")


def test_labels_must_name_files_and_factors(folder):
    with pytest.raises(cs.BadInput, match="must name the images"):
        cs.Examples.from_folder(folder, pd.DataFrame(COLUMNS))
    with pytest.raises(cs.BadInput, match="no column 'shap', did you mean 'shape'"):
        cs.Examples.from_folder(folder, folder / "labels.csv", factors=["shap"])
