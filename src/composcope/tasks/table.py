"""A user's own data: latents and their images."""

import hashlib
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import torch
from pydantic import BeforeValidator, Field, TypeAdapter
from torch import Tensor

from composcope.components import Listed, register
from composcope.factors import Factor, Latents, absent, combination_numbers
from composcope.files import read_regular
from composcope.plain import unpack_arrays
from composcope.tasks.base import Images, Task, learned_background, over_values
from composcope.tasks.columns import Columns, latents_of, mean_of_repeats


def _as_tensor(value: Any) -> Tensor:
    try:
        return _numbers(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"must be an array of numbers: {error}") from None


def _numbers(value: Any) -> Tensor:
    return (
        torch.as_tensor(np.asarray(value) if not isinstance(value, Tensor) else value).detach().to("cpu", torch.float32)
    )


Array = Annotated[Tensor, BeforeValidator(_as_tensor)]
Factors = Annotated[tuple[Factor, ...], Listed]


@register("table")
class TableTask(Task):
    """Images looked up in a table: `images[i]` shows the combination `latents[i]`.

    Rows with an absent factor (NaN) are not part of the grid; they serve as stripes. A spec refers to a table by its
    file, so `save` it first; the run id depends on the file's contents, not on its path.

    - `latents`: (n, factors), each one of its factor's values; `images`: (n, channels, height, width) or
      (n, height, width).
    - `polarity`: "bright" for objects brighter than the background, "dark" for darker ones: the sign of foregrounds.
    - `background`: an empty image: one value, one per channel, or a whole image (channels, height, width). By default
      it is learned: for each channel the median of the pixels at the images' borders, which objects seldom cover, or 0
      (dark: 1) or the least (dark: greatest) value, if one of these is within 1 % of the images' range.
    - `absent`: how an absent factor is drawn: by its row of the table ("listed"), or as the "max" or "mean" over all of
      its values, whose combinations must then be in the table.
    """

    latents: Array
    images: Array
    factors: Factors = Field()
    polarity: Literal["dark", "bright"] = "bright"
    file: str | None = None
    sha256: str | None = None
    background: Array | None = None  # type: ignore[assignment]  # set when the table is made
    absent: Literal["listed", "max", "mean"] = "listed"

    def __post_init__(self) -> None:
        if self.images.ndim == 3:
            object.__setattr__(self, "images", self.images[:, None])
        columns, names = len(self.factors), {factor.name for factor in self.factors}
        if len(names) < columns:
            raise ValueError(
                f"factors: {columns} factors need distinct names, not {[factor.name for factor in self.factors]}"
            )
        if self.latents.ndim != 2 or self.latents.shape[1] != columns or not len(self.latents):
            raise ValueError(f"latents: {columns} factors need shape (n, {columns}), not {tuple(self.latents.shape)}")
        rows = len(self.latents)
        if self.images.ndim != 4 or len(self.images) != rows:
            raise ValueError(f"images: {rows} latents need shape ({rows}, c, h, w), not {tuple(self.images.shape)}")
        # Some at a time: all at once would take three times the memory of the images.
        if not all(some.isfinite().all() for some in self.images.split(256)):
            raise ValueError("images: every pixel must be finite")
        if math.prod(factor.size + 1 for factor in self.factors) > 2**62:  # rows are found by combination numbers
            raise ValueError(f"factors: {[factor.size for factor in self.factors]} values are too many combinations")
        keys = self._keys(self.latents)
        if len(keys.unique()) < rows:
            raise ValueError(
                "latents: the same combination occurs twice; TableTask.from_columns(..., repeats='mean') takes the mean"
                " of its images"
            )
        object.__setattr__(self, "background", self._checked_background())

    def _checked_background(self) -> Tensor:
        """The given background as a tensor that broadcasts to an image, or the learned one."""
        if self.background is None:
            return self._learned_background
        background, shape = self.background, self.image_shape
        if background.ndim == 1:
            background = background[:, None, None]
        try:
            fits = background.isfinite().all() and torch.broadcast_shapes(background.shape, shape) == shape
        except RuntimeError:
            fits = False
        if not fits:
            raise ValueError(
                f"background: one value, {shape[0]} (one per channel) or an image of shape {shape} is needed, all of "
                f"them finite; got shape {tuple(self.background.shape)}"
            )
        return background

    @cached_property
    def _learned_background(self) -> Tensor:
        """From all images that show a combination."""
        complete = ~absent(self.latents).any(1)
        # A copy of all images would double the memory of a large table.
        some = self.images if complete.all() or not complete.any() else self.images[complete]
        return learned_background(some, self.dark)

    @property
    def _given_background(self) -> Tensor | None:
        """The background if it is not the one that would have been learned: only then it is part of the identity."""
        assert self.background is not None  # set when the table is made
        learned = self._learned_background
        same = torch.equal(self.background.expand(self.image_shape), learned.expand(self.image_shape))
        return None if same else self.background

    @classmethod
    def from_columns(
        cls,
        columns: Columns,
        images: Any,
        factors: Sequence[Factor] = (),
        *,
        repeats: Literal["mean"] | None = None,
        polarity: Literal["dark", "bright"] = "bright",
        background: Any = None,
        absent: Literal["listed", "max", "mean"] = "listed",
    ) -> Self:
        """A table from one column per factor, by name: numbers, or names of categories. A data frame will do.

        - `factors`: those that are not simply the column's values in their order: circular ones, for example.
        - `repeats`: what to do with several images of one combination: "mean" takes their mean, which is the best that
          a decoder can draw that is told nothing but the factors. By default they are refused.

        >>> columns = {"shape": ["disc", "bar", "disc", "bar"], "x": [0, 0, 1, 1]}
        >>> TableTask.from_columns(columns, torch.rand(4, 8, 8)).factors
        (Factor("shape", bar, disc, categorical), Factor("x", 0, 1))
        """
        ordered, latents = latents_of(columns, factors)
        pictures = _as_tensor(images)
        if repeats == "mean" and len(latents) == len(pictures):
            latents, pictures = mean_of_repeats(latents, pictures)
        empty = None if background is None else _as_tensor(background)
        return cls(latents, pictures, ordered, polarity, background=empty, absent=absent)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        channels, height, width = self.images.shape[1:]
        return (channels, height, width)

    @property
    def dark(self) -> bool:
        return self.polarity == "dark"

    def grid(self) -> Latents:
        """The table's combinations in their order, without rows that have an absent factor."""
        return self.latents[~absent(self.latents).any(1)]

    def render(self, latents: Latents) -> Images:
        """The images of these combinations, all of which must be in the table."""
        if self.absent != "listed" and absent(latents).any():
            return over_values(self, latents, self.absent)
        keys, order = self._lookup
        requested = self._keys(latents.cpu())
        index = torch.searchsorted(keys, requested).clamp(max=len(keys) - 1)
        missing = (keys[index] != requested).nonzero().flatten()
        if len(missing):
            raise ValueError(f"the table has no image for {tuple(latents[missing[0]].tolist())}")
        return self.images[order[index]].to(latents.device)

    @cached_property
    def _lookup(self) -> tuple[Tensor, Tensor]:
        """The combinations' keys in ascending order, and the row of each."""
        keys = self._keys(self.latents)
        order = keys.argsort()
        return keys[order], order

    def save(self, file: str | os.PathLike[str]) -> Self:
        """Write the table to an .npz file and return a table that refers to it, which can be part of a spec."""
        path = Path(file)
        factors = TypeAdapter(Factors).dump_json(self.factors).decode()
        # Written under a temporary name and renamed, so that an interrupted save leaves no damaged table behind.
        temporary = path.with_name(f".{path.name}.{os.getpid()}.npz")
        background = self._given_background
        arrays = {"latents": self.latents.numpy(), "images": self.images.numpy(), "factors": np.array(factors)}
        if background is not None:
            arrays["background"] = background.numpy()
        np.savez(temporary, **arrays)  # type: ignore[arg-type]
        digest = hashlib.sha256(temporary.read_bytes()).hexdigest()
        os.replace(temporary, path)
        return replace(self, file=str(path), sha256=digest)

    @classmethod
    def load(cls, file: str | os.PathLike[str], polarity: Literal["dark", "bright"] = "bright") -> Self:
        """Load a table from an .npz file written by `save`."""
        try:
            # Read once, so that the checksum belongs to exactly the bytes that were parsed.
            content = read_regular(Path(file).resolve())
            arrays = unpack_arrays(content)
            factors = TypeAdapter(Factors).validate_json(str(arrays["factors"]))
            latents, images = _as_tensor(arrays["latents"]), _as_tensor(arrays["images"])
            background = _as_tensor(arrays["background"]) if "background" in arrays else None
        except FileNotFoundError:
            raise ValueError(f"file not found: {str(file)!r}") from None
        except (OSError, KeyError, ValueError, TypeError) as error:
            raise ValueError(f"{str(file)!r} is not a table written by TableTask.save: {error}") from None
        return cls(latents, images, factors, polarity, str(file), hashlib.sha256(content).hexdigest(), background)

    def to_dict(self, defaults: bool = True) -> dict[str, Any]:
        if self.file is None:
            raise ValueError('a spec refers to a table by its file: use task.save("table.npz") as the task')
        # The polarity is written even at its default: this dict is hashed into run ids, which must not change.
        identity = {"kind": self.kind, "file": self.file, "sha256": self.sha256, "polarity": self.polarity}
        background = self._given_background
        # These are left out at their defaults, so that run ids from before they existed stay valid.
        absence = {} if self.absent == "listed" else {"absent": self.absent}
        return {**identity, **({} if background is None else {"background": background.tolist()}), **absence}

    @classmethod
    def from_fields(cls, values: dict[str, Any]) -> Self:
        unknown = set(values) - {"file", "sha256", "polarity", "background", "absent"}
        if unknown or not isinstance(values.get("file"), str):
            raise ValueError(
                'a table is described by file = "table.npz", and optionally polarity, background, absent and sha256'
            )
        polarity = values.get("polarity", "bright")
        if polarity not in ("dark", "bright"):
            raise ValueError(f"polarity = {polarity!r}: must be 'dark' or 'bright'")
        table = cls.load(values["file"], polarity)
        if values.get("sha256", table.sha256) != table.sha256:
            raise ValueError(f"{table.file!r} has changed: sha256 is {table.sha256}, the spec says {values['sha256']}")
        changes = {name: values[name] for name in ("background", "absent") if name in values}
        if "background" in changes:
            changes["background"] = _as_tensor(changes["background"])
        return replace(table, **changes) if changes else table

    def __repr__(self) -> str:
        return f"TableTask({tuple(self.images.shape)}, {self.factors}, {self.polarity!r}, {self.file!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableTask) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @cached_property
    def _content(self) -> tuple[Any, ...]:
        background = self._given_background
        arrays = [self.latents, self.images, *([] if background is None else [background])]
        return (*(array.numpy().tobytes() for array in arrays), self.factors, self.polarity, self.absent)

    def _keys(self, latents: Latents) -> Tensor:
        """One integer per combination, with one extra index for an absent factor."""
        indices = []
        for factor, values in zip(self.factors, latents.unbind(1), strict=True):
            index = torch.where(values.isnan(), factor.size, factor.index(values))
            if (index < 0).any():
                unlisted = values[index < 0][0]
                raise ValueError(f"{factor.name} = {unlisted:g} is not one of the factor's values, {factor.describe()}")
            indices.append(index)
        return combination_numbers(torch.stack(indices, 1), [factor.size + 1 for factor in self.factors])
