"""Labelled images without one true image per combination: what generators of real data are compared with."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from composcope.components import nearest
from composcope.errors import BadInput
from composcope.factors import Factor, Latents, combination_numbers
from composcope.files import sha256
from composcope.tasks.base import Images, Task
from composcope.tasks.columns import Columns, Frame, latents_of
from composcope.tasks.folders import read_folder

# Fewer images of a value would leave a reader with nothing to learn from and nothing to be tested on.
MIN_IMAGES = 10


class Examples(Task):
    """Labelled images, any number per combination of the factors' values; held-out combinations may have none.

    Backgrounds, styles and positions may vary from image to image. `diagnose(generator, task=examples, ...)` therefore
    reads the factors from a generator's images, where other tasks compare them with the one true image.

    - `latents`: (n, factors), one row per image; `images`: (n, channels, height, width).

    Make them with `from_columns` or `from_folder`.
    """

    kind = "examples"

    def __init__(self, latents: Latents, images: Images, factors: Sequence[Factor]) -> None:
        if len(latents) != len(images):
            raise BadInput(f"images: {len(latents)} labels need as many images; there are {len(images)}")
        if not bool(images.isfinite().all()):
            raise BadInput("images: every pixel must be finite")
        self._factors = tuple(factors)
        self.latents, self.images = latents, images
        self.index: Int[Tensor, "n factors"] = torch.stack(
            [factor.index(column) for factor, column in zip(self._factors, latents.unbind(1), strict=True)], 1
        )
        self._check()

    def _check(self) -> None:
        for axis, factor in enumerate(self._factors):
            unlisted = (self.index[:, axis] < 0).nonzero()[:, 0].tolist()
            if unlisted:
                value = self.latents[unlisted[0], axis].item()
                raise BadInput(
                    f"{factor.name} = {value:g} (row {unlisted[0] + 1}) is not one of the values {factor.describe()}"
                )
            if factor.size < 2:
                raise BadInput(f"{factor.name} has the one value {factor.describe()}: there is nothing to combine")
            counts = self.index[:, axis].bincount(minlength=factor.size)
            if counts.min() < MIN_IMAGES:
                rare = int(counts.argmin())
                raise BadInput(
                    f"{factor.name} = {factor.label(factor.values[rare])} has {int(counts[rare])} images; every value "
                    f"needs at least {MIN_IMAGES}"
                )

    @classmethod
    def from_columns(
        cls, columns: Columns, images: Any, *, values: Mapping[str, Sequence[Any] | Factor] | None = None
    ) -> Self:
        """Examples from one column of labels per factor, by name: numbers or text. A data frame will do.

        - `images`: (n, channels, height, width), or (n, height, width) for grey ones.
        - `values`: a factor's values, or a `Factor`. By default they are the labels that occur: numbers in ascending
          order, text in the order of first appearance.

        >>> columns = {"shape": ["disc", "bar"] * 20, "x": [0, 0, 1, 1] * 10}
        >>> Examples.from_columns(columns, torch.rand(40, 8, 8)).factors
        (Factor("shape", disc, bar, categorical), Factor("x", 0, 1))
        """
        given = dict(values or {})
        names = [str(name) for name in columns.keys()]  # noqa: SIM118
        for name in given:
            if name not in names:
                raise BadInput(f"values: there is no factor {name!r}{nearest(name, names)}; there are {names}")
        if not names:
            raise BadInput("columns: at least one factor is needed")
        cleaned = {name: _labels(name, np.asarray(columns[name])) for name in names}
        factors = [_factor(name, column, given.get(name)) for name, column in cleaned.items()]
        try:
            found, latents = latents_of(cleaned, factors)
        except ValueError as error:
            raise BadInput(str(error)) from None
        return cls(latents, _pixels(images), found)

    @classmethod
    def from_folder(
        cls,
        path: str | os.PathLike[str],
        labels: str | os.PathLike[str] | Frame,
        *,
        values: Mapping[str, Sequence[Any] | Factor] | None = None,
        factors: Sequence[str] | None = None,
    ) -> Self:
        """Examples from image files and a table of labels.

        - `labels`: a CSV file or a data frame. A column `file`, `filename`, `path` or `image` names each image relative
          to the folder; the others are factors.
        - `factors`: names of the columns to use; all by default. `values`: as for `from_columns`.
        """
        columns, images = read_folder(path, labels)
        for name in factors or ():
            if name not in columns:
                known = list(columns)
                raise BadInput(f"factors: there is no column {name!r}{nearest(name, known)}; there are {known}")
        chosen = columns if factors is None else {name: columns[name] for name in factors}
        return cls.from_columns(chosen, images, values=values)

    @property
    def factors(self) -> tuple[Factor, ...]:
        return self._factors

    @property
    def image_shape(self) -> tuple[int, int, int]:
        channels, height, width = self.images.shape[1:]
        return (channels, height, width)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(factor.size for factor in self._factors)

    @property
    def combination(self) -> Int[Tensor, "n"]:
        """The row of `grid()` that each image shows."""
        return combination_numbers(self.index, self.sizes)

    @property
    def present(self) -> Bool[Tensor, "combinations"]:
        """Which rows of `grid()` have images."""
        return self.combination.bincount(minlength=len(self.grid())) > 0

    @property
    def checksum(self) -> str:
        """Of the images and their labels."""
        return sha256(self.index.numpy().tobytes() + self.images.contiguous().numpy().tobytes())

    def names(self, latents: Latents) -> list[dict[str, str | float]]:
        """Each combination as a dict of names, or numbers where a factor has no names: to make conditions from.

        >>> columns = {"shape": ["disc", "bar"] * 20, "x": [0, 0, 1, 1] * 10}
        >>> Examples.from_columns(columns, torch.rand(40, 8, 8)).names(torch.tensor([[1.0, 0.0]]))
        [{'shape': 'bar', 'x': 0.0}]
        """
        return [
            {factor.name: factor.label(value) for factor, value in zip(self._factors, row, strict=True)}
            for row in latents.tolist()
        ]

    def render(self, latents: Latents) -> Images:
        raise BadInput("examples have no single true image per combination, so nothing can be rendered")

    def __repr__(self) -> str:
        return f"Examples({len(self.images)} images of shape {self.image_shape}, {self._factors})"


def _labels(name: str, column: np.ndarray) -> np.ndarray:
    """The column as numbers or as text, with BadInput for a missing label."""
    if column.ndim != 1:
        raise BadInput(f"columns: {name} needs one label per image; its shape is {column.shape}")
    if np.issubdtype(column.dtype, np.number) or column.dtype == bool:
        missing = ~np.isfinite(column.astype(float))
    else:
        texts = [str(value) for value in column.tolist()]
        missing = np.array([value != value or value is None or not str(value).strip() for value in column.tolist()])
        column = np.array(texts, dtype=object)
    if missing.any():
        raise BadInput(f"{name}: row {int(missing.argmax()) + 1} has no label")
    return column


def _factor(name: str, column: np.ndarray, given: Sequence[Any] | Factor | None) -> Factor:
    """The factor of a column; text keeps the order of first appearance, as its author wrote it."""
    if isinstance(given, Factor):
        return given
    numeric = column.dtype != object
    values = list(given) if given is not None else (np.unique(column) if numeric else dict.fromkeys(column.tolist()))
    try:
        if numeric:
            return Factor(name, tuple(sorted({float(value) for value in values})))
        return Factor(name, values=tuple(map(str, values)))  # type: ignore[arg-type]  # names become numbers
    except ValueError as error:
        raise BadInput(f"values: {name}: {error}") from None


def _pixels(images: Any) -> Float[Tensor, "n channels height width"]:
    try:
        tensor = images if isinstance(images, Tensor) else torch.as_tensor(np.asarray(images))
        pixels = tensor.detach().cpu().float()
    except (TypeError, ValueError, RuntimeError) as error:
        raise BadInput(f"images: an array of numbers is needed: {error}") from None
    if tensor.dtype == torch.uint8:
        pixels = pixels / 255
    if pixels.ndim == 3:
        pixels = pixels[:, None]
    if pixels.ndim != 4:
        raise BadInput(f"images: shape (n, channels, height, width) is needed, not {tuple(pixels.shape)}")
    return pixels
