"""How alike rows are: Gram matrices of activations and of images, and the kernels that factorized images would have."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.factors import Factor

CHUNK = 1024  # features taken to double precision at a time
BLOCKS = 14  # of rows: the more, the less is computed twice; beyond this the products get too small to be fast


def gram_matrix(rows: Float[Tensor, "n ..."]) -> Float[Tensor, "n n"]:
    """G_ij = sum_f a_if a_jf, symmetric to the last bit.

    Gram matrices of parts of a layer add up to the layer's.

    >>> gram_matrix(torch.tensor([[1.0, 2.0], [0.0, 3.0]])).tolist()
    [[5.0, 6.0], [6.0, 9.0]]
    """
    flat = rows.flatten(1)
    gram = torch.zeros(len(flat), len(flat), dtype=torch.float64, device=flat.device)
    edges = [len(flat) * block // BLOCKS for block in range(BLOCKS + 1)]
    for part in flat.split(CHUNK, dim=1):
        part = part.double()
        for start, stop in pairwise(edges):  # each pair of blocks once: the rest is its mirror
            gram[start:stop, start:] += part[start:stop] @ part[start:].T
    return gram.triu() + gram.triu(1).T


def centred_gram(gram: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
    """The Gram matrix of the rows minus their mean: H G H with H = 1 - 1/n."""
    gram = gram.double()
    gram = gram - gram.mean(0, keepdim=True)
    return gram - gram.mean(1, keepdim=True)


class Spectrum(NamedTuple):
    """A symmetric matrix's eigenvalues, rising, and its eigenvectors in columns."""

    values: Float[Tensor, "n"]
    vectors: Float[Tensor, "n n"]


def centred_spectrum(gram: Float[Tensor, "n n"]) -> Spectrum:
    """Variances along the principal directions, and each row's place along them up to their lengths."""
    return Spectrum(*torch.linalg.eigh(centred_gram(gram)))


Stack = Float[Tensor, "n ..."]
Gram = Float[Tensor, "n m"]
Widths = float | Mapping[str, float] | None


def cosine_kernel(images: Stack) -> Gram:
    """<a, b> / (|a| |b|) for every two images; 0 with an image of zeros, its own diagonal included.

    >>> cosine_kernel(torch.tensor([[1.0, 0.0], [3.0, 0.0], [0.0, 2.0]])).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    pixels = images.flatten(1).double()
    norms = pixels.norm(dim=1, keepdim=True)
    unit = pixels / norms.where(norms > 0, torch.ones_like(norms))
    return gram_matrix(unit)


def l2_distance(images: Stack) -> Gram:
    """|a - b| for every two images: a distance, so small where the kernels are large."""
    pixels = images.flatten(1).double()
    pixels = pixels - pixels.mean(0)  # the same distances, and less to cancel
    squares = pixels.square().sum(1)
    squared = squares[:, None] + squares[None, :] - 2 * gram_matrix(pixels)
    return squared.fill_diagonal_(0).clamp(min=0).sqrt()


def overlap_kernel(images: Stack, threshold: float = 0.3) -> Gram:
    """#(pixels where both exceed `threshold`) / #(pixels), as the authors count it.

    Faint images have none above a fixed threshold and so overlap with nothing: see `soft_overlap_kernel`.
    """
    above = (images.flatten(1) > threshold).float()
    return (above @ above.T).double() / above.shape[1]


def soft_overlap_kernel(images: Stack) -> Gram:
    """sum_p min(a_p, b_p) / sum_p max(a_p, b_p), with pixels below 0 taken as 0; 0 between two empty images.

    From min(a, b) = (a + b - |a - b|) / 2, so only city-block distances are needed, and no array of pairs x pixels.

    >>> soft_overlap_kernel(torch.tensor([[1.0, 1.0], [1.0, 0.0]])).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    pixels = images.flatten(1).clamp(min=0).double()
    total = pixels.sum(1)
    both = total[:, None] + total[None, :]
    apart = _city_block(pixels)
    larger = (both + apart) / 2
    return torch.where(larger > 0, (both - apart) / 2 / larger.where(larger > 0, torch.ones_like(larger)), 0.0)


def _city_block(pixels: Float[Tensor, "n pixels"]) -> Gram:
    """sum_p |a_p - b_p|; every pair once, mirrored."""
    n = len(pixels)
    apart = pixels.new_zeros(n, n)
    upper = torch.triu_indices(n, n, offset=1, device=pixels.device)
    apart[upper[0], upper[1]] = torch.nn.functional.pdist(pixels, p=1.0)
    return apart + apart.T


def heldout_seen_slice(gram: Float[Tensor, "n n"], heldout: Bool[Tensor, "n"]) -> Float[Tensor, "heldout seen"]:
    """The held-out x seen part of a Gram matrix: how each output in the hole resembles those outside it."""
    if gram.shape[0] != len(heldout):
        raise ValueError(f"the Gram matrix has shape {tuple(gram.shape)}; the mask covers {len(heldout)} points")
    return gram[heldout][:, ~heldout]


def factor_kernels(
    latents: Float[Tensor, "n factors"],
    factors: Sequence[Factor],
    widths: Widths = None,
    others: Float[Tensor, "m factors"] | None = None,
) -> list[Gram]:
    """k_i(a, b) = [a_i = b_i], or exp(-(a_i - b_i)^2 / (4 w_i^2)) with a width: one matrix per factor.

    - `widths`: the bump's width, one for all factors or by name; the kernel is then the overlap of two such bumps.
      Categories are compared for equality whatever the width.
    - `others`: the points in the columns; by default the same as in the rows.

    An absent factor is like no value, not even another absent one.
    """
    columns = latents if others is None else others
    kernels = []
    for axis, factor in enumerate(factors):
        width = widths.get(factor.name) if isinstance(widths, Mapping) else widths
        (a, row), (b, column) = (part[:, axis].double().unique(return_inverse=True) for part in (latents, columns))
        distinct = likeness(factor.difference(a[:, None], b[None, :]), factor, width)  # few values, many points
        kernels.append(distinct.index_select(0, row).index_select(1, column))
    return kernels


def likeness(difference: Float[Tensor, "..."], factor: Factor, width: float | None) -> Float[Tensor, "..."]:
    """[difference = 0], or exp(-difference^2 / (4 width^2)): how alike two values are; 0 if one is absent."""
    if width is None or factor.kind == "categorical":
        return (difference.abs() <= 1e-4 * factor.step).double()
    return torch.exp(-difference.square() / (4 * width**2)).nan_to_num(0.0)


def binary_kernel(latents: Float[Tensor, "n factors"], factors: Sequence[Factor], widths: Widths = None) -> Gram:
    """k_x OR k_y = k_x + k_y - k_x k_y = 1 - (1 - k_x)(1 - k_y), over any number of factors.

    Alike if any factor's value is shared. The arguments are those of `factor_kernels`: exact Kronecker deltas, or
    smoothed by the bump's width. The diagonal is 1, so normalising by it changes nothing.

    >>> xy = [Factor("x", range(2)), Factor("y", range(2))]
    >>> binary_kernel(torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), xy)[0].tolist()
    [1.0, 1.0, 1.0, 0.0]
    """
    kernels = factor_kernels(latents, factors, widths)
    unlike = kernels[0].sub_(1)
    for kernel in kernels[1:]:
        unlike *= kernel.sub_(1).neg_()
    return unlike.add_(1)  # it started as k - 1, so its sign is already negative


def product_kernel(
    latents: Float[Tensor, "n factors"],
    factors: Sequence[Factor],
    widths: Widths = None,
    others: Float[Tensor, "m factors"] | None = None,
) -> Gram:
    """k_x k_y: alike only if every factor's value is shared. Arguments as for `factor_kernels`."""
    kernels = factor_kernels(latents, factors, widths, others)
    alike = kernels[0]
    for kernel in kernels[1:]:
        alike *= kernel
    return alike


def kernel_agreement(a: Float[Tensor, "..."], b: Float[Tensor, "..."]) -> float:
    """Pearson correlation of two kernels over their entries; 0 if either is constant. For slices without a diagonal."""
    if a.shape != b.shape:
        raise ValueError(f"kernels of shapes {tuple(a.shape)} and {tuple(b.shape)} cannot be compared")
    a, b = a.double() - a.double().mean(), b.double() - b.double().mean()
    scale = a.norm() * b.norm()
    return ((a * b).sum() / scale).item() if scale > 1e-12 * a.numel() else 0.0
