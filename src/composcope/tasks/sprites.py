"""Sprites: one of several shapes at a place, of a size, turned, in a colour."""

import math
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import torch
from einops import reduce
from jaxtyping import Float
from pydantic import AfterValidator, BeforeValidator, Field
from torch import Tensor

from composcope.components import nearest, register
from composcope.factors import Factor, Latents, absent, named, strictly_increasing
from composcope.tasks.base import Images, Task, over_values
from composcope.tasks.shapes import SHAPES, coverage, reach

COLOURS = {
    "red": (1.0, 0.0, 0.0),
    "green": (0.0, 1.0, 0.0),
    "blue": (0.0, 0.0, 1.0),
    "yellow": (1.0, 1.0, 0.0),
    "magenta": (1.0, 0.0, 1.0),
    "cyan": (0.0, 1.0, 1.0),
    "orange": (1.0, 0.5, 0.0),
    "gray": (0.5, 0.5, 0.5),
}
# Pixels that are drawn at once; a few arrays of this size are needed.
MAX_PIXELS = 2**21


def _as_tuple(values: Any) -> Any:
    return tuple(values) if isinstance(values, Iterable) and not isinstance(values, str) else values


def _known(names: tuple[str, ...], allowed: Iterable[str]) -> tuple[str, ...]:
    for name in names:
        if name not in allowed:
            raise ValueError(f"there is no {name!r}{nearest(name, allowed)}; there are {', '.join(allowed)}")
    if len(set(names)) < len(names):
        raise ValueError("each name may occur once")
    return names


Numbers = Annotated[
    tuple[float, ...], BeforeValidator(_as_tuple), Field(max_length=1024), AfterValidator(strictly_increasing)
]
Shapes = Annotated[tuple[str, ...], BeforeValidator(_as_tuple), AfterValidator(lambda names: _known(names, SHAPES))]
Colours = Annotated[tuple[str, ...], BeforeValidator(_as_tuple), AfterValidator(lambda names: _known(names, COLOURS))]


@register("sprites")
class SpriteTask(Task):
    """A shape, anti-aliased, with up to six factors: x, y, shape, scale, rotation and colour, in this order.

    Each field lists a factor's values. A field with one value fixes it; an empty one leaves the default: the middle of
    the image, a disc, a sixth of the side, upright, and no colour (white on black, or black on white when dark).

    - `side`: of the image in pixels. `x`, `y`: the centre of mass in pixels, as for `BumpTask`.
    - `shapes`: names: square, disc, triangle, cross, ring, heart, bar, dome.
    - `scales`: the radius in pixels of a disc with the same area; all shapes of one scale have the same area.
    - `rotations`: in degrees, counter-clockwise.
    - `colours`: names: red, green, blue, yellow, magenta, cyan, orange, gray.
    - `rgb`: three channels even without colours.
    - `absent`: how an absent factor is drawn: as the "max" or "mean" over all of its values.

    >>> SpriteTask(16, x=range(4, 12), y=range(4, 12), shapes=("square", "disc", "heart")).factors
    (Factor("x", 4..11), Factor("y", 4..11), Factor("shape", square, disc, heart, categorical))
    """

    side: Annotated[int, Field(ge=8, le=256)]
    x: Numbers = ()
    y: Numbers = ()
    shapes: Shapes = ()
    scales: Numbers = ()
    rotations: Numbers = ()
    colours: Colours = ()
    rgb: bool = False
    polarity: Literal["dark", "bright"] = "dark"
    absent: Literal["max", "mean"] = "max"

    def __post_init__(self) -> None:
        if not self.factors:
            raise ValueError("nothing varies: give two values to one of x, y, shapes, scales, rotations and colours")
        if self.scales and self.scales[0] <= 0:
            raise ValueError(f"scales = {self.scales}: a radius must be above 0")
        # Of the circle around (x, y) that has room for every shape at every rotation.
        largest, middle = self._largest, (self.side - 1) / 2
        for name in ("x", "y"):
            values = getattr(self, name) or (middle,)
            if values[0] - largest < -0.5 or values[-1] + largest > self.side - 0.5:
                raise ValueError(
                    f"{name} = {values[0]:g} to {values[-1]:g}: shapes that reach {largest:.3g} pixels far leave "
                    f"the image; from {largest - 0.5:.3g} to {self.side - 0.5 - largest:.3g} they fit"
                )

    @property
    def factors(self) -> tuple[Factor, ...]:
        factors = []
        for name, values in (("x", self.x), ("y", self.y)):
            factors += [Factor(name, values)] if len(values) > 1 else []
        factors += [named("shape", self.shapes)] if len(self.shapes) > 1 else []
        factors += [Factor("scale", self.scales)] if len(self.scales) > 1 else []
        factors += [Factor("rotation", self.rotations, "circular", 360.0)] if len(self.rotations) > 1 else []
        factors += [named("colour", self.colours)] if len(self.colours) > 1 else []
        return tuple(factors)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return (3 if self.rgb or self.colours else 1, self.side, self.side)

    @property
    def dark(self) -> bool:
        return self.polarity == "dark"

    @property
    def positions(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("x", "y") if len(self.x) > 1 and len(self.y) > 1 else ()

    def render(self, latents: Latents) -> Images:
        if latents.shape[1] != len(self.factors):
            raise ValueError(f"{self} has {len(self.factors)} factors; latents have shape {tuple(latents.shape)}")
        if absent(latents).any():
            return over_values(self, latents, self.absent)
        chunk = max(1, MAX_PIXELS // self.side**2)
        return torch.cat([self._drawn(part) for part in latents.split(chunk)])

    def _drawn(self, latents: Latents) -> Images:
        values = {factor.name: column for factor, column in zip(self.factors, latents.unbind(1), strict=True)}
        covered = self._coverage(values, latents)[:, None]
        ink = self._ink(values.get("colour"), latents)
        foreground = covered * (ink[..., None, None] if ink is not None else 1.0)
        return (1 - foreground if self.dark else foreground).expand(-1, *self.image_shape).contiguous()

    def _coverage(self, values: dict[str, Tensor], latents: Latents) -> Float[Tensor, "n side side"]:
        """How much of each pixel the shape covers."""
        x, y, scale, rotation = (
            values[name][:, None, None] if name in values else latents.new_full((len(latents), 1, 1), fixed)
            for name, fixed in self._fixed.items()
        )
        pixels = torch.arange(self.side, dtype=latents.dtype, device=latents.device)
        u, v = pixels - x, pixels[:, None] - y
        if self.rotations:
            cos, sin = (rotation * (math.pi / 180)).cos(), (rotation * (math.pi / 180)).sin()
            u, v = cos * u + sin * v, cos * v - sin * u  # the inverse rotation, of the pixels
        shapes = self.shapes or ("disc",)
        if len(shapes) == 1:
            return coverage(shapes[0], u, v, scale)
        index = self._index("shape", values["shape"])
        # Each shape is computed for its own rows only; `order` puts them back into place.
        rows = [(index == number).nonzero()[:, 0] for number in range(len(shapes))]
        parts = [coverage(name, u[some], v[some], scale[some]) for name, some in zip(shapes, rows, strict=True)]
        order = torch.cat(rows).argsort()
        return torch.cat(parts)[order]

    @property
    def _largest(self) -> float:
        """How far from its centre the largest shape reaches."""
        return max(self.scales, default=self.side / 6) * max(map(reach, self.shapes or ("disc",)))

    @property
    def _fixed(self) -> dict[str, float]:
        """The value of each number that is not a factor: the one that is given, or the default."""
        middle = (self.side - 1) / 2
        listed = {"x": self.x, "y": self.y, "scale": self.scales, "rotation": self.rotations}
        default = {"x": middle, "y": middle, "scale": self.side / 6, "rotation": 0.0}
        return {name: (*values, default[name])[0] for name, values in listed.items()}

    def _ink(self, colour: Tensor | None, latents: Latents) -> Float[Tensor, "n 3"] | None:
        """The foreground of a covered pixel in each channel; None if that is 1."""
        if not self.colours:
            return None
        palette = latents.new_tensor([COLOURS[name] for name in self.colours])
        palette = 1 - palette if self.dark else palette
        return palette.expand(len(latents), 3) if colour is None else palette[self._index("colour", colour)]

    def _index(self, name: str, values: Tensor) -> Tensor:
        factor = next(factor for factor in self.factors if factor.name == name)
        index = factor.index(values)
        if (index < 0).any():
            raise ValueError(f"{name} = {values[index < 0][0]:g} is not one of the values 0..{factor.size - 1}")
        return index

    def locate(self, images: Images) -> Float[Tensor, "n 2"]:
        """The centre of mass of the foreground around the place where most of it is.

        That place is where the foreground, smoothed over about the size of the largest shape, has its peak: of several
        shapes in one image, the position is that of one of them and not their mean. NaN if the image contains NaN.
        """
        if not self.positions:
            return super().locate(images)
        foreground = reduce(self.foreground(images), "n c v u -> n v u", "mean")
        pixels = torch.arange(self.side, dtype=images.dtype, device=images.device)
        blur = torch.exp(-((pixels - pixels[:, None]) / (0.7 * max(self.scales, default=self.side / 6))).square() / 2)
        weight = foreground.clamp(min=0)
        peak = (blur @ weight @ blur).flatten(1).argmax(1)
        place = torch.stack([peak % self.side, peak // self.side], 1).to(pixels)
        for _ in range(3):  # the window moves with what it finds: the peak of an uneven shape is off its centre
            near = ((pixels - place[..., None]).abs() <= self._largest + 1).to(pixels)
            mass, across, down = (
                torch.einsum("nvu,nu,nv->n", weight, near[:, 0] * of_u, near[:, 1] * of_v)
                for of_u, of_v in ((1, 1), (pixels, 1), (1, pixels))
            )
            centre = torch.stack([across, down], 1) / mass[:, None]
            place = torch.where(mass[:, None] > 0, centre, place)  # a blank image stays where it is
        return torch.where(foreground.isnan().any(2).any(1)[:, None], torch.nan, place)
