"""The paper's task: a Gaussian bump at (x, y)."""

from typing import Annotated, ClassVar, Literal

import torch
from einops import reduce
from jaxtyping import Float
from pydantic import AfterValidator, Field
from torch import Tensor

from composcope.components import Listed, register
from composcope.factors import Factor, Latents, absent, strictly_increasing
from composcope.tasks.base import Images, Task, over_values

Brightness = Annotated[float, Field(gt=0, le=1)]


@register("bump")
class BumpTask(Task):
    """exp(-((u - x)^2 + (v - y)^2) / (2 sigma^2)) at column u and row v; 1 minus that when dark.

    The bump is a product of one term per factor. An absent factor's term is 1: (x, NaN) is the vertical stripe at x.

    - `continuous`: training samples have real-valued centres; the grid for measurements stays the integers.
    - `brightness`: the values of a third factor, which multiplies the bump.
    - `absent`: how an absent factor is drawn: as a "stripe" (above), or as the "max" or "mean" over all of its values.

    >>> BumpTask(28).render(torch.tensor([[3.0, 5.0]])).shape
    torch.Size([1, 1, 28, 28])
    """

    size: Annotated[int, Field(ge=2, le=1024)]
    sigma: Annotated[float, Field(gt=0)] = 1.0
    polarity: Literal["dark", "bright"] = "dark"
    continuous: bool = False
    brightness: Annotated[
        tuple[Brightness, ...], Listed, Field(max_length=256), AfterValidator(strictly_increasing)
    ] = ()
    absent: Literal["stripe", "max", "mean"] = "stripe"

    positions: ClassVar[tuple[str, ...]] = ("x", "y")

    @property
    def factors(self) -> tuple[Factor, ...]:
        coordinates = tuple(map(float, range(self.size)))
        factors = (Factor("x", coordinates), Factor("y", coordinates))
        return (*factors, Factor("brightness", self.brightness)) if self.brightness else factors

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return (1, self.size, self.size)

    @property
    def dark(self) -> bool:
        return self.polarity == "dark"

    def render(self, latents: Latents) -> Images:
        if latents.shape[1] != len(self.factors):
            raise ValueError(f"{self} has {len(self.factors)} factors; latents have shape {tuple(latents.shape)}")
        missing = absent(latents)
        if self.absent != "stripe" and missing.any():
            return over_values(self, latents, self.absent)
        # Replace NaN before computing: masking only the result would leave NaN in the gradient (0 * NaN is NaN).
        present = torch.where(missing, 0.0, latents)
        pixels = torch.arange(self.size, dtype=latents.dtype, device=latents.device)
        # Divide before squaring: sigma^2 of a very small sigma would underflow to 0 and give 0 / 0 at the centre.
        profiles = torch.exp(-((pixels - present[:, :2, None]) / self.sigma).square() / 2)
        profiles = torch.where(missing[:, :2, None], 1.0, profiles)
        foreground = torch.einsum("nu,nv->nvu", profiles[:, 0], profiles[:, 1])[:, None]
        if self.brightness:
            foreground = foreground * torch.where(missing[:, 2], 1.0, present[:, 2])[:, None, None, None]
        return 1 - foreground if self.dark else foreground

    def locate(self, images: Images) -> Float[Tensor, "n 2"]:
        """The brightest foreground pixel, refined by a parabola through the logarithms of it and its neighbours.

        This is exact for a Gaussian, whose logarithm is a parabola. The refined position stays within the pixel; the
        position of an image that contains NaN is NaN.
        """
        # From the brightest pixel, not from row and column sums: those are right even for a superposition of stripes.
        foreground = reduce(self.foreground(images), "n c v u -> n v u", "mean")
        peak = foreground.flatten(1).argmax(1)
        v, u = peak // self.size, peak % self.size
        sample = torch.arange(len(images), device=images.device)
        x = _refine(foreground[sample, v], u)
        y = _refine(foreground[sample, :, u], v)
        has_nan = foreground.isnan().any(2).any(1)
        return torch.where(has_nan[:, None], torch.nan, torch.stack([x, y], 1))

    def draw(self, n: int, rng: torch.Generator) -> Latents:
        latents = super().draw(n, rng)
        if self.continuous:
            latents[:, :2] = torch.rand(n, 2, generator=rng) * (self.size - 1)
        return latents


def _refine(profile: Float[Tensor, "n pixels"], peak: Tensor) -> Float[Tensor, "n"]:
    """The vertex of the parabola through three log values around each profile's peak, at most half a pixel away."""
    if profile.shape[1] < 3:
        return peak.to(profile.dtype)
    middle = peak.clamp(1, profile.shape[1] - 2)  # a peak at the border lacks a neighbour: use the three last pixels
    three = torch.stack([profile.gather(1, (middle + shift)[:, None])[:, 0] for shift in (-1, 0, 1)])
    low, centre, high = three.clamp(min=1e-12).log()  # a decoder's output may be zero or negative
    curvature = low - 2 * centre + high
    # Without a maximum (a flat or convex profile) the brightest pixel itself is the answer.
    vertex = torch.where(curvature < 0, 0.5 * (low - high) / curvature, peak - middle)
    return torch.maximum(torch.minimum(middle + vertex, peak + 0.499), peak - 0.499)
