"""How large the reproduction is: every size, length and number of seeds, in one value."""

from dataclasses import dataclass, replace
from typing import Self

from composcope.holdouts import Corner, Square
from composcope.sampling import Draws, Everything, Sampling
from composcope.training import Training


@dataclass(frozen=True)
class Preset:
    """What the paper's experiments are run at.

    - `training`: of most runs; `patient`: of rate codes, which learn slowly.
    - `seeds`: of runs on which a claim rests; `few`: of runs that only illustrate.
    - `transformer`, `pixelwise`: depth and width.
    - `bumps`: how many bumps join the stripes; the last is compared with as many bumps alone.
    - `scaling_counts`: training images tried, each twice the one before; the last is the cap.
    """

    name: str
    size: int
    hole: Square
    corner: Corner
    width: int
    depth: int
    depths: tuple[int, ...]
    sampling: Sampling
    training: Training
    patient: Training
    seeds: tuple[int, ...]
    few: tuple[int, ...]
    mlp_width: int
    transformer: tuple[int, int]
    transformer_training: Training
    pixelwise: tuple[int, int]
    pixelwise_training: Training
    lowrank_size: int
    lowrank_corner: Corner
    lowrank_training: Training
    lowrank_seeds: tuple[int, ...]
    bumps: tuple[int, ...]
    stripes_training: Training
    angles: int
    rotation_width: int
    rotation_training: Training
    scaling_sizes: tuple[int, ...]
    scaling_counts: tuple[int, ...]
    scaling_width: int
    scaling_training: Training
    scaling_seeds: tuple[int, ...]

    def with_seeds(self, count: int) -> Self:
        """The same with so many seeds everywhere."""
        seeds = tuple(range(count))
        return replace(self, seeds=seeds, few=seeds, lowrank_seeds=seeds, scaling_seeds=seeds)


QUICK = Preset(
    name="quick",
    size=16,
    hole=Square(4, 11),
    corner=Corner(8),
    width=24,
    depth=3,
    depths=(2, 3, 5),
    sampling=Everything(),
    training=Training(steps=1500, batch=16),
    patient=Training(steps=2000, batch=16),
    seeds=(0, 1, 2),
    few=(0,),
    mlp_width=256,
    transformer=(2, 32),
    transformer_training=Training(steps=500, batch=8, lr=2e-3),
    pixelwise=(2, 64),
    pixelwise_training=Training(steps=3000, batch=16, weight_decay=1e-4),
    lowrank_size=16,
    lowrank_corner=Corner(6),
    lowrank_training=Training(epochs=600, weight_decay=1e-4),
    lowrank_seeds=(0, 1, 2),
    bumps=(0, 10, 50, 100),
    stripes_training=Training(steps=1500, batch=16),
    angles=222,
    rotation_width=24,
    rotation_training=Training(epochs=50, l1=0.1, schedule="cosine"),
    scaling_sizes=(10, 15, 20),
    scaling_counts=(8, 16, 32, 64, 128, 256, 512),
    scaling_width=16,
    scaling_training=Training(steps=600, batch=16),
    scaling_seeds=(0, 1, 2),
)
"""Every figure and claim in reduced size: ten minutes on two cores."""

PAPER = Preset(
    name="paper",
    size=28,
    hole=Square(6, 22),
    corner=Corner(11),
    width=64,
    depth=4,
    depths=(2, 3, 4, 5, 6, 7, 8, 9, 10),
    sampling=Draws(2000),
    training=Training(epochs=50),
    patient=Training(epochs=50),
    seeds=(0, 1, 2),
    few=(0, 1, 2),
    mlp_width=256,
    transformer=(3, 128),
    transformer_training=Training(epochs=50),
    pixelwise=(3, 256),
    pixelwise_training=Training(epochs=2000, weight_decay=1e-4),
    lowrank_size=32,
    lowrank_corner=Corner(12),
    lowrank_training=Training(epochs=1000, weight_decay=1e-4),
    lowrank_seeds=(0, 1, 2, 3, 4),
    bumps=(0, 10, 50, 100),
    stripes_training=Training(steps=3150),
    angles=888,
    rotation_width=64,
    rotation_training=Training(epochs=50, l1=0.1, schedule="cosine"),
    scaling_sizes=(10, 15, 20, 25, 30),
    scaling_counts=(16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192),
    scaling_width=32,
    scaling_training=Training(steps=3000),
    scaling_seeds=(0, 1, 2, 3, 4),
)
"""The authors' sizes and lengths; days on two cores."""

TINY = replace(
    QUICK,
    name="tiny",
    size=8,
    hole=Square(2, 5),
    corner=Corner(4),
    width=4,
    depth=2,
    depths=(1, 2),
    training=Training(steps=5, batch=8),
    patient=Training(steps=5, batch=8),
    seeds=(0, 1),
    mlp_width=8,
    transformer=(1, 4),
    transformer_training=Training(steps=2, batch=4),
    pixelwise=(1, 4),
    pixelwise_training=Training(steps=3, batch=4),
    lowrank_size=8,
    lowrank_corner=Corner(3),
    lowrank_training=Training(steps=5),
    lowrank_seeds=(0, 1),
    bumps=(0, 10, 20),
    stripes_training=Training(steps=5, batch=8),
    angles=24,
    rotation_width=4,
    rotation_training=Training(steps=3),
    scaling_sizes=(8, 10),
    scaling_counts=(4, 8),
    scaling_width=4,
    scaling_training=Training(steps=3, batch=4),
    scaling_seeds=(0, 1),
)
"""For tests: shows nothing but that everything runs."""

PRESETS = {preset.name: preset for preset in (QUICK, PAPER, TINY)}
