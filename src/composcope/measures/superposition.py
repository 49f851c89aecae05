"""Is the output on a held-out combination a sum of what was seen? All images are foregrounds."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from composcope.factors import Factor, column
from composcope.measures.error import Images, mse, shape_correlation
from composcope.measures.grid import grid_index

SHUFFLES = 10  # of the control


@dataclass(frozen=True)
class Superposition:
    """Correlation of outputs with the sum of one part per factor, and with sums of parts of shuffled coordinates.

    The correlation is only meaningful beside its control: where any two sums look alike, both are high.
    """

    correlations: Float[Tensor, "n"]
    correlation: float
    control: float


def superposition(outputs: Images, parts: Sequence[Images], generator: torch.Generator) -> Superposition:
    """corr(D(x, y), D(x_super) + D(y_super)), a Pearson correlation over pixels, averaged over held-out images.

    - `outputs`: the decoder's images of held-out combinations.
    - `parts`: one stack of images per factor, in the order of the outputs: D of the codes in which only that factor
      has its value and the others their mean code, or the means from `shared_value_means`.
    - `generator`: draws the control, in which each factor's rows are shuffled by themselves, ten times.
    """
    if not parts or any(part.shape != outputs.shape for part in parts):
        shapes = [tuple(part.shape) for part in parts]
        raise ValueError(f"one part per factor, of the outputs' shape {tuple(outputs.shape)}, is needed; got {shapes}")
    correlations = shape_correlation(outputs, torch.stack(list(parts)).sum(0))
    controls = [shape_correlation(outputs, sum_of_shuffled(parts, generator)).mean() for _ in range(SHUFFLES)]
    return Superposition(correlations, correlations.mean().item(), torch.stack(controls).mean().item())


def sum_of_shuffled(parts: Sequence[Images], generator: torch.Generator) -> Images:
    """The parts' sum with each part's rows in an order of its own."""
    orders = [torch.randperm(len(part), generator=generator).to(part.device) for part in parts]
    return torch.stack([part[order] for part, order in zip(parts, orders, strict=True)]).sum(0)


def shared_value_means(
    outputs: Images,
    latents: Float[Tensor, "n factors"],
    heldout: Bool[Tensor, "n"],
    factors: Sequence[Factor],
    chosen: Int[Tensor, "chosen"] | None = None,
) -> list[Float[Tensor, "chosen channels height width"]]:
    """For each factor and held-out point, the mean of the seen outputs that share the point's value of that factor.

    - `outputs`: images over all n points. The list has one stack of images per factor, in the held-out points' order.
    - `chosen`: rows of the points for which means are wanted, by default all held-out ones.
    """
    index = grid_index(latents, factors)
    wanted = heldout.nonzero()[:, 0] if chosen is None else chosen
    means = []
    for axis, factor in enumerate(factors):
        rows = (~heldout & (index[:, axis] >= 0)).nonzero()[:, 0]
        sums = torch.zeros(factor.size, outputs[0].numel(), dtype=torch.float64)
        for some in rows.split(256):  # in double precision all at once would need twice the memory of the images
            sums.index_add_(0, index[some, axis], outputs[some].flatten(1).double())
        counts = torch.bincount(index[rows, axis], minlength=factor.size)
        needed = index[wanted, axis]
        missing = sorted({factor.values[i] for i in needed.tolist() if i < 0 or counts[i] == 0})
        if missing:
            raise ValueError(f"no seen point has {factor.name} = {missing}: there is no mean to superpose")
        mean = sums[needed] / counts[needed, None]
        means.append(mean.reshape(-1, *outputs.shape[1:]).to(outputs.dtype))
    return means


def edge_blend(
    images: Images,
    latents: Float[Tensor, "n factors"],
    heldout: Bool[Tensor, "n"],
    factors: Sequence[Factor],
    along: str,
) -> Float[Tensor, "heldout channels height width"]:
    """(1 - w) image(a) + w image(b), w = (t - a) / (b - a), with a and b the seen values on either side of t.

    - `images`: over all n points: the truth, or the decoder's outputs.
    - `along`: the factor that has the gap; only points that share every other factor's value count as edges.

    A circular factor wraps around. Where one side has no seen point, the other edge is used alone.
    """
    axis = column(factors, along)
    others = [i for i in range(len(factors)) if i != axis]
    index = grid_index(latents[:, others], [factors[i] for i in others])
    held, seen = heldout.nonzero()[:, 0], (~heldout).nonzero()[:, 0]
    related = (index[held, None, :] == index[None, seen, :]).all(-1)
    forward = latents[seen, axis].double()[None, :] - latents[held, axis].double()[:, None]
    above, below = _gaps(forward, factors[axis].period)
    above, below = (gap.masked_fill(~related | gap.isnan(), torch.inf) for gap in (above, below))
    alone = torch.isinf(above).all(1) & torch.isinf(below).all(1)
    if alone.any():
        raise ValueError(f"{int(alone.sum())} held-out points have no seen point along {along!r} to blend from")
    (up, high), (down, low) = above.min(1), below.min(1)
    weight = torch.where(torch.isinf(up), 0.0, torch.where(torch.isinf(down), 1.0, down / (up + down)))
    weight = weight.to(images.dtype)[:, None, None, None]
    return (1 - weight) * images[seen[low]] + weight * images[seen[high]]


def _gaps(forward: Tensor, period: float | None) -> tuple[Tensor, Tensor]:
    """Distances upwards and downwards along a factor; infinite on the other side unless it wraps around."""
    if period is not None:
        return torch.remainder(forward, period), torch.remainder(-forward, period)
    return forward.masked_fill(forward < 0, torch.inf), (-forward).masked_fill(forward > 0, torch.inf)


@dataclass(frozen=True)
class GapBlend:
    """Where the outputs in a gap lie between the blend of its edges and the truth.

    - `means`: of the four, over the images, by name.
    - `share_nearer_blend`: share of images whose MSE to the blend is below that to the truth.
    """

    mse_to_blend: Float[Tensor, "n"]
    mse_to_truth: Float[Tensor, "n"]
    correlation_with_blend: Float[Tensor, "n"]
    correlation_with_truth: Float[Tensor, "n"]
    means: dict[str, float] = field(init=False)
    share_nearer_blend: float = field(init=False)

    def __post_init__(self) -> None:
        names = ("mse_to_blend", "mse_to_truth", "correlation_with_blend", "correlation_with_truth")
        nearer = (self.mse_to_blend < self.mse_to_truth).double().mean().item()
        object.__setattr__(self, "means", {name: getattr(self, name).double().mean().item() for name in names})
        object.__setattr__(self, "share_nearer_blend", nearer)


def gap_blend(outputs: Images, blend: Images, truth: Images) -> GapBlend:
    """MSE and correlation of each held-out output with the blend from `edge_blend`, and with the truth."""
    return GapBlend(
        mse(outputs, blend), mse(outputs, truth), shape_correlation(outputs, blend), shape_correlation(outputs, truth)
    )
