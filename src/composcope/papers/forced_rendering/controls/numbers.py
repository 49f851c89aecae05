"""The numbers behind the figure of controls: errors, accuracy and volume inside a region and outside it."""

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from composcope.diagnosis.errors import mean_over
from composcope.diagnosis.layers import true_geometry
from composcope.holdouts import Holdout
from composcope.measures.geometry import volume_summary
from composcope.measures.grid import on_grid
from composcope.papers.forced_rendering.base import sizes_of
from composcope.runs.run import Run
from composcope.study.evidence import Evidence
from composcope.study.panel import Rows
from composcope.study.plan import Key, label_of


@dataclass(frozen=True)
class Region:
    """A run's numbers inside a region of the latent plane and outside it, whether it was held out or not.

    - `share`: MSE over that of a blank image (or a code of zeros), inside and outside; `accuracy`: share within one
      step of the true position, inside and outside.
    - `volume_gap`: mean log10 dv of the image inside minus that outside, minus the same for the true images; None for
      a run that does not draw images.
    """

    share: tuple[float, float]
    accuracy: tuple[float, float]
    volume_gap: float | None


def region(run: Run, inside: Bool[Tensor, "n"]) -> Region:
    """The same numbers for every kind of run; the image encoder's are of codes."""
    shares, placed = point_shares(run), run.point_errors.placed
    return Region(
        share=(shares[inside].mean().item(), shares[~inside].mean().item()),
        accuracy=(mean_over(placed, inside) or 0.0, mean_over(placed, ~inside) or 0.0),
        volume_gap=volume_gap(run, inside),
    )


def point_shares(run: Run) -> Float[Tensor, "n"]:
    """MSE of every image over that of a blank one; of every code over that of a code of zeros."""
    return run.point_errors.share


def volume_gap(run: Run, inside: Bool[Tensor, "n"]) -> float | None:
    """By how many powers of ten the image's volume is larger inside than outside, beyond what true images have."""
    geometry = run.diagnosis.layers["image"].geometry if run.spec.decoder.draws else None
    if geometry is None:
        return None
    gap = volume_summary(geometry.volume, inside).gap
    true = true_geometry(run.spec.task, run.split.latents, inside).volumes.gap
    return None if gap is None or true is None else gap - true


@dataclass(frozen=True)
class Control:
    """One control: its error over the plane for the smallest seed, and the numbers of every seed.

    - `heldout`: whether the region was held out; without a hole it is where the square would be.
    """

    name: str
    region: Bool[Tensor, "x y"]
    heldout: bool
    share: Float[Tensor, "x y"]
    seeds: tuple[int, ...]
    regions: Sequence[Region]


@dataclass(frozen=True)
class Controls:
    """All controls, beside the run that they are controls for."""

    controls: tuple[Control, ...]

    def table(self) -> Rows:
        """One row per control and seed."""
        return [
            {
                "run": control.name,
                "seed": seed,
                "region": "held out" if control.heldout else "the middle, seen",
                "MSE / blank, outside": region.share[1],
                "MSE / blank, in the region": region.share[0],
                "within 1 pixel, outside": region.accuracy[1],
                "within 1 pixel, in the region": region.accuracy[0],
                "log10 volume, region minus rest": region.volume_gap,
            }
            for control in self.controls
            for seed, region in zip(control.seeds, control.regions, strict=True)
        ]


def controls(evidence: Evidence) -> Controls:
    """The figure of controls."""
    hole = sizes_of(evidence.preset).hole
    return Controls(tuple(_control(key, runs, hole) for key, runs in evidence.items()))


def compared_region(run: Run, hole: Holdout) -> Bool[Tensor, "n"]:
    """What was held out or, if nothing was, what this hole would hold out."""
    mask = run.split.mask
    return mask if mask.any() else hole.contains(run.split.latents, run.spec.task.factors)


def _control(key: Key, runs: Sequence[Run], hole: Holdout) -> Control:
    first, factors = runs[0], runs[0].spec.task.factors
    inside = compared_region(first, hole)
    return Control(
        name=label_of(key),
        region=on_grid(inside, factors),
        heldout=bool(first.split.mask.any()),
        share=on_grid(point_shares(first), factors),
        seeds=tuple(run.spec.seed for run in runs),
        regions=[region(run, inside) for run in runs],
    )
