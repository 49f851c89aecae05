"""Whether images are products of single-factor functions: how many a pixel needs, and which factors act together."""

from collections.abc import Sequence

import torch

from composcope.diagnosis.points import Points
from composcope.measures.complexity import Complexity, independent_blocks, pixel_complexity
from composcope.measures.linear_factorization import VarianceShares, additive_blocks
from composcope.tasks.base import Images
from composcope.verdict.pictures import Pictures, whole

# The blocks of three or more factors are judged from the strongest pixels, so that their cost stays bounded.
MOST_PIXELS = 64
MOST_VALUES = 2**20
# The share of the norm that a split into blocks may miss: a trained decoder is never exact.
BLOCK_TOLERANCE = 0.05
CHUNK = 256  # images at a time


def complexities(
    outputs: Images, truth: Pictures, points: Points, notes: dict[str, str]
) -> dict[str, Complexity] | None:
    """Product terms per pixel, of the targets and of the outputs."""
    if not points.full or len(points.factors) != 2:
        notes["complexity"] = "it is defined for two factors over their whole grid"
        return None
    return {
        name: pixel_complexity(images, points.factors)
        for name, images in (("targets", whole(truth)), ("outputs", outputs))
    }


def shared_blocks(foreground: Pictures, points: Points) -> str | None:
    """Which of three or more factors act together, as "x, y | brightness"; None for fewer, or without a whole grid.

    Factors in different blocks enter every pixel as a product, up to 5 % of the norm: partial factorization.
    """
    if not points.full or len(points.factors) < 3:
        return None
    count = max(1, min(MOST_PIXELS, MOST_VALUES // len(foreground), foreground.shape[1:].numel()))
    chunks = torch.arange(len(foreground)).split(CHUNK)
    # Sums and tables are made beforehand: what stays of each chunk would break up the memory of the images.
    energy = torch.zeros(foreground.shape[1:].numel(), dtype=torch.float64)
    for rows in chunks:
        energy += foreground[rows].flatten(1).double().square().sum(0)
    best = energy.topk(count).indices
    strongest = torch.empty(len(foreground), count, dtype=torch.float64)
    for rows in chunks:
        strongest[rows] = foreground[rows].flatten(1)[:, best].double()
    blocks = independent_blocks(strongest, points.factors, BLOCK_TOLERANCE)
    return blocks_text(blocks)


def layer_blocks(shares: VarianceShares | None) -> str | None:
    """Which of three or more factors a layer mixes, as "x, y | brightness"; up to 5 % of its variance (eq. 28)."""
    if shares is None or len(shares.by_order) < 3:
        return None
    return blocks_text(additive_blocks(shares, BLOCK_TOLERANCE))


def blocks_text(blocks: Sequence[Sequence[str]]) -> str:
    return " | ".join(", ".join(block) for block in blocks)
