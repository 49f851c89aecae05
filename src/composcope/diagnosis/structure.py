"""Whether images are products of single-factor functions: how many a pixel needs, and which factors act together."""

from composcope.diagnosis.points import Points
from composcope.measures.complexity import Complexity, independent_blocks, pixel_complexity
from composcope.tasks.base import Images

# The blocks of three or more factors are judged from the strongest pixels, so that their cost stays bounded.
MOST_PIXELS = 64
MOST_VALUES = 2**20
# The share of the norm that a split into blocks may miss: a trained decoder is never exact.
BLOCK_TOLERANCE = 0.05


def complexities(outputs: Images, truth: Images, points: Points, notes: dict[str, str]) -> dict[str, Complexity] | None:
    """Product terms per pixel, of the targets and of the outputs."""
    if not points.full or len(points.factors) != 2:
        notes["complexity"] = "it is defined for two factors over their whole grid"
        return None
    return {
        name: pixel_complexity(images, points.factors) for name, images in (("targets", truth), ("outputs", outputs))
    }


def shared_blocks(foreground: Images, points: Points) -> str | None:
    """Which of three or more factors act together, as "x, y | brightness"; None for fewer, or without a whole grid.

    Factors in different blocks enter every pixel as a product, up to 5 % of the norm: partial factorization.
    """
    if not points.full or len(points.factors) < 3:
        return None
    pixels = foreground.flatten(1).double()
    count = max(1, min(MOST_PIXELS, MOST_VALUES // len(pixels), pixels.shape[1]))
    strongest = pixels[:, pixels.square().sum(0).topk(count).indices]
    blocks = independent_blocks(strongest, points.factors, BLOCK_TOLERANCE)
    return " | ".join(", ".join(block) for block in blocks)
