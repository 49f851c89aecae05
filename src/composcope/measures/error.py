"""How far images are from the truth, and from the true position."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.factors import Factor
from composcope.measures.grid import grid_index, grid_steps

Images = Float[Tensor, "n channels height width"]
CHUNK = 200_000  # pixels at a time: their copies in double precision stay in a processor's cache


def mse(images: Images, truth: Images) -> Float[Tensor, "n"]:
    """Mean over pixels and channels of (image - truth)^2, one number per image."""
    return (images - truth).square().flatten(1).mean(1)


def blank_mse(foreground: Images) -> Float[Tensor, "n"]:
    """Mean over pixels of foreground^2: a blank image's error, with which every MSE should be compared.

    - `foreground`: the true images' foreground.
    """
    return foreground.square().flatten(1).mean(1)


LEARNED = 0.25
"""The most of a blank image's error that may be left on seen images; the authors' own rate networks have 0.13-0.17."""


def has_learned(seen_mse: float, seen_blank_mse: float) -> bool:
    """Whether seen_mse < 0.25 seen_blank_mse: otherwise a failure on held-out images says nothing about composition.

    >>> has_learned(0.0004, 0.004), has_learned(0.002, 0.004)
    (True, False)
    """
    return seen_mse < LEARNED * seen_blank_mse


def ssim_error(images: Images, truth: Images, data_range: float | None = None) -> Float[Tensor, "n"]:
    """1 - SSIM(image, truth), one number per image: uniform window, mean over channels, as scikit-image defines it.

    - `data_range`: range of the pixel values; by default that of the whole of `truth` (1 if it is constant).

    The window is 7 pixels wide, or the largest odd width that fits a smaller image.
    """
    if images.shape != truth.shape:
        raise ValueError(f"images have shape {tuple(images.shape)}; the truth has {tuple(truth.shape)}")
    side = min(truth.shape[-2:])
    if side < 3:
        raise ValueError(f"SSIM needs images of at least 3 x 3 pixels; these are {tuple(truth.shape[-2:])}")
    if len(truth) == 0:
        return torch.zeros(0)
    window = min(7, side - 1 + side % 2)
    span = data_range if data_range is not None else (truth.max() - truth.min()).item() or 1.0
    some = max(1, CHUNK // truth[0].numel())
    pairs = zip(images.cpu().split(some), truth.cpu().split(some), strict=True)
    return 1 - torch.cat([_ssim(a.double(), b.double(), window, span) for a, b in pairs])


def _ssim(a: Images, b: Images, window: int, span: float) -> Float[Tensor, "n"]:
    """The mean over windows of (2 m_a m_b + c1) (2 v_ab + c2) / ((m_a^2 + m_b^2 + c1) (v_a + v_b + c2))."""
    mean_a, mean_b = _window_means(a, window), _window_means(b, window)
    squares, product = mean_a.square() + mean_b.square(), mean_a * mean_b
    unbiased = window**2 / (window**2 - 1)
    variances = unbiased * (_window_means(a.square() + b.square(), window) - squares)
    covariance = unbiased * (_window_means(a * b, window) - product)
    c1, c2 = (0.01 * span) ** 2, (0.03 * span) ** 2
    return ((2 * product + c1) * (2 * covariance + c2) / ((squares + c1) * (variances + c2))).mean((1, 2, 3))


def _window_means(pixels: Images, window: int) -> Float[Tensor, "n channels tall wide"]:
    """The mean of every square window that lies within the image: shifted copies are added, axis by axis."""
    for axis in (2, 3):
        places = pixels.shape[axis] - window + 1
        shifted = [pixels.narrow(axis, start, places) for start in range(window)]
        total = shifted[0] + shifted[1]
        for other in shifted[2:]:
            total += other
        pixels = total
    return pixels / window**2


def shape_correlation(images: Float[Tensor, "n ..."], truth: Float[Tensor, "n ..."]) -> Float[Tensor, "n"]:
    """Pearson correlation of image and truth over the image's pixels; 0 where either is constant.

    >>> a = torch.tensor([[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]])
    >>> shape_correlation(a, torch.tensor([[5.0, 4.0, 3.0], [0.0, 1.0, 2.0]])).round(decimals=6).tolist()
    [-1.0, 0.0]
    """
    images, truth = images.flatten(1), truth.flatten(1)
    some = max(1, CHUNK // truth.shape[1])
    parts = zip(images.split(some), truth.split(some), strict=True)
    products = [_correlation(a.double(), b.double()) for a, b in parts]
    return torch.cat(products) if products else torch.zeros(0, dtype=torch.float64)


def _correlation(a: Float[Tensor, "n pixels"], b: Float[Tensor, "n pixels"]) -> Float[Tensor, "n"]:
    """Each pair of rows' correlation; 0 if one of them is constant up to rounding."""
    length = torch.ones(len(a), dtype=a.dtype)
    varies = torch.ones(len(a), dtype=torch.bool)
    centred = []
    for pixels in (a, b):
        centred.append(pixels - pixels.mean(1, keepdim=True))
        norm = centred[-1].norm(dim=1)
        varies &= norm > 1e-9 * pixels.norm(dim=1)
        length *= norm
    product = torch.linalg.vecdot(*centred)
    return torch.where(varies, product / length.where(varies, torch.ones_like(length)), 0.0)


def position_error(positions: Float[Tensor, "n axes"], truth: Float[Tensor, "n axes"]) -> Float[Tensor, "n"]:
    """|position - truth|, the Euclidean distance in pixels, one number per image."""
    return (positions - truth).norm(dim=1)


def placed(positions: Float[Tensor, "n axes"], truth: Float[Tensor, "n axes"]) -> Bool[Tensor, "n"]:
    """Whether each image's position is within 1 pixel of the true position on every axis.

    Positions are rounded to whole pixels first, so a bump drawn exactly one pixel off counts as placed.
    """
    return ((positions.round() - truth).abs() <= 1).all(1)


def distance_to_seen(
    latents: Float[Tensor, "n factors"], heldout: Bool[Tensor, "n"], factors: Sequence[Factor]
) -> Float[Tensor, "n"]:
    """min over seen points s of sum_i |index_i - index_i(s)|: the distance to the edge of the hole, in grid steps.

    Seen points are at 0; combinations with an absent factor do not count as seen. The distance is infinite if nothing
    is seen.
    """
    index = grid_index(latents, factors)
    seen = index[~heldout & (index >= 0).all(1)]
    distances = torch.zeros(len(latents))
    if len(seen) == 0:
        return distances.masked_fill(heldout, torch.inf)
    rows = heldout.nonzero()[:, 0]
    for chunk in rows.split(max(1, 4_000_000 // len(seen))):
        distances[chunk] = grid_steps(index[chunk], seen, factors).amin(1)
    return distances


@dataclass(frozen=True)
class ByDistance:
    """A number's mean at each distance from the edge of the hole, and how many images it is a mean of."""

    distances: Float[Tensor, "bins"]
    means: Float[Tensor, "bins"]
    counts: Float[Tensor, "bins"]


def mean_by_distance(values: Float[Tensor, "n"], distances: Float[Tensor, "n"]) -> ByDistance:
    """Mean of `values` over the images at each whole distance; NaN values are left out.

    >>> curve = mean_by_distance(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([1.0, 1.0, 2.0]))
    >>> curve.means.tolist(), curve.counts.tolist()
    ([2.0, 5.0], [2.0, 1.0])
    """
    finite = torch.isfinite(values)
    bins, member = distances[finite].round().unique(return_inverse=True)
    counts = torch.zeros(len(bins), dtype=torch.float64).index_add(0, member, torch.ones(len(member)).double())
    sums = torch.zeros_like(counts).index_add(0, member, values[finite].double())
    return ByDistance(bins, sums / counts, counts)
