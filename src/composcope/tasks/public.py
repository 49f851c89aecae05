"""Public data sets of independent factors, read from files that you have downloaded: dSprites, 3D Shapes and MPI3D.

Images are read when they are needed. `keep` chooses values of some factors, since the whole sets have up to a million
combinations. A spec identifies the file by its checksum.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from composcope.components import Listed, Named, nearest, register
from composcope.factors import Factor, Latents, absent, combination_numbers, named
from composcope.tasks.base import Images, Task, learned_background, over_values
from composcope.tasks.sources import Npz, Source, opened

# How an absent factor is drawn: as the "max" or "mean" over all of its values that are kept.
WithAbsent = Literal["refuse", "max", "mean"]
Keep = Annotated[Mapping[str, Annotated[tuple[float, ...], Listed]], Named]
# Images from which the background is learned.
LEARNED_FROM = 64


class FileTask(Task):
    """Images of a file, one per combination, the last factor varying fastest.

    A data set implements `file_factors`, every factor of the file in its order; factors of one value are left out. It
    declares the four fields and takes `__eq__` and `__hash__` from here: files are equal if their contents are.
    """

    file: str
    keep: Mapping[str, tuple[float, ...]]
    sha256: str | None
    absent: WithAbsent
    array: ClassVar[str] = "images"
    white: ClassVar[float] = 255.0

    def file_factors(self, source: Source) -> tuple[Factor, ...]:
        raise NotImplementedError

    def __post_init__(self) -> None:
        names = [factor.name for factor in self._file_factors]
        for name in self.keep:
            if name not in names:
                raise ValueError(
                    f"keep: no factor is named {name!r}{nearest(name, names)}; there are {', '.join(names)}"
                )
        rows, sizes = self.source.shape(self.array)[0], self.file_sizes
        if rows != math.prod(sizes):
            raise ValueError(f"{self.file!r} has {rows} images; {type(self).__name__} has {math.prod(sizes)}, {sizes}")
        _ = self.factors
        if self.sha256 is not None and self.sha256 != self.checksum:
            raise ValueError(f"{self.file!r} has changed: sha256 is {self.checksum}, the spec says {self.sha256}")

    @cached_property
    def source(self) -> Source:
        return opened(Path(self.file))

    @cached_property
    def checksum(self) -> str:
        """The file's sha256, computed when it is needed."""
        with Path(self.file).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @cached_property
    def _file_factors(self) -> tuple[Factor, ...]:
        return self.file_factors(self.source)

    @property
    def file_sizes(self) -> tuple[int, ...]:
        """How many values each factor has in the file."""
        return tuple(factor.size for factor in self._file_factors)

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        kept = []
        for factor in self._file_factors:
            values = sorted(self.keep.get(factor.name, factor.values))
            index = factor.index(torch.tensor(values))
            if not values or (index < 0).any():
                raise ValueError(f"keep: {factor.name} = {values} are not all among its values, {factor.describe()}")
            names = None if factor.names is None else tuple(factor.names[i] for i in index.tolist())
            if factor.size > 1:
                kept.append(replace(factor, values=tuple(factor.values[i] for i in index.tolist()), names=names))
        return tuple(kept)

    @cached_property
    def image_shape(self) -> tuple[int, int, int]:
        height, width, *channels = self.source.shape(self.array)[1:]
        return (channels[0] if channels else 1, height, width)

    @cached_property
    def background(self) -> Tensor:
        grid = self.grid()
        some = torch.linspace(0, len(grid) - 1, min(len(grid), LEARNED_FROM)).long()
        return learned_background(self.render(grid[some]))

    def render(self, latents: Latents) -> Images:
        if absent(latents).any():
            if self.absent == "refuse":
                raise ValueError(
                    f"{type(self).__name__} has no image of an absent factor (NaN); use absent='max' or 'mean'"
                )
            return over_values(self, latents, self.absent)
        rows = self._rows(latents.cpu())
        distinct, number = rows.unique(return_inverse=True)
        read = torch.from_numpy(self._read(distinct.numpy()))[number]
        images = read.reshape(len(read), *read.shape[1:3], -1).permute(0, 3, 1, 2)
        return (images.float() / self.white).contiguous().to(latents.device)

    def _rows(self, latents: Latents) -> Tensor:
        """The file's rows of these combinations."""
        indices, column = [], 0
        for factor in self._file_factors:
            index = torch.zeros(len(latents), dtype=torch.long)
            if factor.size > 1:
                index, column = factor.index(latents[:, column]), column + 1
            if (index < 0).any():
                value = latents[index < 0][0, column - 1]
                raise ValueError(f"{factor.name} = {value:g} is not one of the factor's values, {factor.describe()}")
            indices.append(index)
        return combination_numbers(torch.stack(indices, 1), self.file_sizes)

    def _read(self, rows: np.ndarray) -> np.ndarray:
        if isinstance(self.source, Npz) and not self.source.stored(self.array):
            grid_rows, images = self._kept
            return images[np.searchsorted(grid_rows, rows)]
        return self.source.rows(self.array, rows)

    @cached_property
    def _kept(self) -> tuple[np.ndarray, np.ndarray]:
        """Every row of the grid and its image, as they are in a compressed file: it is read once, from end to end."""
        rows = self._rows(self.grid()).unique().numpy()
        return rows, self.source.rows(self.array, rows)

    def to_dict(self, defaults: bool = True) -> dict[str, Any]:
        data: dict[str, Any] = {"kind": self.kind, "file": self.file, "sha256": self.checksum}
        if self.keep:
            data["keep"] = {name: list(values) for name, values in self.keep.items()}
        return data if self.absent == "refuse" else {**data, "absent": self.absent}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[Any, ...]:
        return (self.kind, self.checksum, self.factors, self.absent)

    @classmethod
    def from_fields(cls, values: dict[str, Any]) -> Self:
        if set(values) - {"file", "keep", "sha256", "absent"} or not isinstance(values.get("file"), str):
            raise ValueError(f'a {cls.kind} is described by file = "...", and optionally keep, absent and sha256')
        return cls(**values)


@register("dsprites")
class DSprites(FileTask):
    """dSprites (Matthey et al. 2017): a white shape on black; shape, scale, orientation, x and y.

    - `file`: `dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz`. `keep`: values of some factors, all by default.

    The last of the 40 orientations is a full turn, the same image as the first, and is left out.
    """

    file: str
    keep: Keep = Field(default_factory=dict)
    sha256: str | None = None
    absent: WithAbsent = "refuse"
    __eq__, __hash__ = FileTask.__eq__, FileTask.__hash__

    array: ClassVar[str] = "imgs"
    white: ClassVar[float] = 1.0
    shapes: ClassVar[tuple[str, ...]] = ("square", "ellipse", "heart")

    def file_factors(self, source: Source) -> tuple[Factor, ...]:
        columns = self._columns
        names = ("color", "shape", "scale", "orientation", "x", "y")
        if len(columns) != len(names):
            raise ValueError(f"{self.file!r}: dSprites has 6 latents; latents_values has {len(columns)} columns")
        factors = {name: Factor(name, tuple(column.tolist())) for name, column in zip(names, columns, strict=True)}
        shapes = self.shapes[: len(columns[1])] if len(columns[1]) <= 3 else None
        factors["shape"] = Factor("shape", tuple(columns[1].tolist()), "categorical", names=shapes)
        turn = columns[3]
        if len(turn) > 1:
            full = np.isclose(turn[-1] - turn[0], 2 * math.pi)
            angles = tuple(turn[: -1 if full else None].tolist())
            factors["orientation"] = Factor("orientation", angles, "circular", 2 * math.pi)
        return tuple(factors.values())

    @property
    def file_sizes(self) -> tuple[int, ...]:
        return tuple(map(len, self._columns))

    @cached_property
    def _columns(self) -> list[np.ndarray]:
        """The values of each factor in the file."""
        return [np.unique(column) for column in self.source.whole("latents_values").T]


@register("shapes3d")
class Shapes3D(FileTask):
    """3D Shapes (Burgess and Kim 2018): an object in a room; hues of floor, wall and object, scale, shape, orientation.

    - `file`: `3dshapes.h5`, or an .npz file with the same arrays, `images` and `labels`.
    - `keep`: values of some factors, all by default.
    """

    file: str
    keep: Keep = Field(default_factory=dict)
    sha256: str | None = None
    absent: WithAbsent = "refuse"
    __eq__, __hash__ = FileTask.__eq__, FileTask.__hash__

    shapes: ClassVar[tuple[str, ...]] = ("cube", "cylinder", "sphere", "capsule")

    def file_factors(self, source: Source) -> tuple[Factor, ...]:
        labels = source.whole("labels")
        names = ("floor_hue", "wall_hue", "object_hue", "scale", "shape", "orientation")
        if labels.ndim != 2 or labels.shape[1] != len(names):
            raise ValueError(f"{self.file!r}: 3D Shapes has 6 factors; labels has shape {labels.shape}")
        factors = []
        for name, column in zip(names, labels.T, strict=True):
            values = tuple(np.unique(column).tolist())
            if name.endswith("hue"):
                factors.append(Factor(name, values, "circular", 1.0))
            elif name == "shape":
                factors.append(Factor(name, values, "categorical", names=self.shapes[: len(values)]))
            else:
                factors.append(Factor(name, values))
        return tuple(factors)


@register("mpi3d")
class MPI3D(FileTask):
    """MPI3D (Gondal et al. 2019): an object held by a robot arm; its color, shape and size, camera, background, axes.

    - `file`: one of the .npz files (toy, realistic, real, or real with complex shapes), or an .h5 file with the same
      array, `images`. `keep`: values of some factors.
    """

    file: str
    keep: Keep = Field(default_factory=dict)
    sha256: str | None = None
    absent: WithAbsent = "refuse"
    __eq__, __hash__ = FileTask.__eq__, FileTask.__hash__

    def file_factors(self, source: Source) -> tuple[Factor, ...]:
        complex_shapes = source.shape(self.array)[0] == 4 * 4 * 2 * 3 * 3 * 40 * 40
        colors: tuple[str, ...] = ("white", "green", "red", "blue", "brown", "olive")
        shapes: tuple[str, ...] = ("cone", "cube", "cylinder", "hexagonal", "pyramid", "sphere")
        if complex_shapes:
            colors, shapes = ("yellow", "green", "olive", "red"), ("coffee-cup", "tennis-ball", "croissant", "beer-cup")
        camera, axis = tuple(map(float, range(3))), tuple(map(float, range(40)))
        return (
            named("object_color", colors),
            named("object_shape", shapes),
            named("object_size", ("small", "large")),
            Factor("camera_height", camera),
            named("background_color", ("purple", "sea green", "salmon")),
            Factor("horizontal_axis", axis),
            Factor("vertical_axis", axis),
        )
