"""Images in a folder and a table that names them: the form in which most people have labelled data."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from composcope.errors import BadInput
from composcope.tasks.columns import Frame

FILE_COLUMNS = ("file", "filename", "path", "image")


def read_folder(
    folder: str | os.PathLike[str], labels: str | os.PathLike[str] | Frame
) -> tuple[dict[str, Any], Tensor]:
    """The labels, one column per name, and the images (n, channels, height, width) in 0..1.

    - `labels`: a CSV file or a data frame. A column `file`, `filename`, `path` or `image` names each image relative to
      the folder.

    Images are grey where all of them are, and red, green and blue otherwise.
    """
    table = _read_labels(labels) if isinstance(labels, str | os.PathLike) else labels
    names = [str(name) for name in table.keys()]  # noqa: SIM118  (a data frame iterates over columns by keys alone)
    column = next((name for name in FILE_COLUMNS if name in names), None)
    if column is None:
        raise BadInput(f"labels: a column {', '.join(FILE_COLUMNS)} must name the images; there are {', '.join(names)}")
    files = [str(file) for file in table[column]]
    if not files:
        raise BadInput("labels: the table has no rows")
    images = [_read_image(Path(folder), file, row) for row, file in enumerate(files, start=1)]
    first = images[0].shape[:2]
    for row, (file, image) in enumerate(zip(files, images, strict=True), start=1):
        if image.shape[:2] != first:
            raise BadInput(
                f"{file!r} (row {row} of the labels) has {image.shape[1]} x {image.shape[0]} pixels; "
                f"{files[0]!r} has {first[1]} x {first[0]}. All images need the same size"
            )
    channels = 1 if all(image.ndim == 2 for image in images) else 3
    pixels = np.empty((len(images), channels, *first), dtype=np.float32)
    for row, image in enumerate(images):
        pixels[row] = image.transpose(2, 0, 1) if image.ndim == 3 else image
    return {name: np.asarray(table[name]) for name in names if name != column}, torch.from_numpy(pixels)


def _read_labels(path: str | os.PathLike[str]) -> Frame:
    try:
        # An empty cell stays empty text, and a value "None" or "NA" is a name like any other.
        table: Frame = pd.read_csv(path, keep_default_na=False)
    except FileNotFoundError:
        raise BadInput(f"file not found: {str(path)!r}") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"labels {str(path)!r} are no CSV file: {error}") from None
    return table


def _read_image(folder: Path, file: str, row: int) -> np.ndarray:
    """(height, width) if the image is grey, else (height, width, 3), in 0..1."""
    from PIL import Image

    try:
        with Image.open(folder / file) as opened:
            if opened.mode.startswith("I"):  # 16 bits
                return np.asarray(opened, dtype=np.float32) / 65535
            grey = opened.mode in ("1", "L")
            return np.asarray(opened.convert("L" if grey else "RGB"), dtype=np.float32) / 255
    except FileNotFoundError:
        raise BadInput(f"{file!r} (row {row} of the labels) is not in the folder {str(folder)!r}") from None
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise BadInput(f"{file!r} (row {row} of the labels) cannot be read as an image: {error}") from None
