"""Controls of the failure: another hole, no hole, and the reverse map from images to codes."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.func import jvp

from composcope.experiments.run import outputs
from composcope.holdouts import Holdout
from composcope.measures.error import mse, position_accuracy
from composcope.measures.geometry import metric_tensor, volume_element, volume_summary
from composcope.measures.grid import on_grid
from composcope.paper.evidence import Evidence, Rows, Run
from composcope.tasks.base import Task


@dataclass(frozen=True)
class Region:
    """A run's numbers inside a region of the latent plane and outside it, held out or not.

    - `share`: MSE over that of an empty image (or code), in and out; `placed`: share within one step of its place.
    - `volume_gap`: mean log10 dv of the image inside less that outside, less the same of the true images; None for
      a run that draws none.
    """

    share: tuple[float, float]
    placed: tuple[float, float]
    volume_gap: float | None


def region(run: Run, inside: Bool[Tensor, "n"]) -> Region:
    """The same numbers for every kind of run; the image encoder's are of codes."""
    shares, places = point_shares(run), point_places(run)
    return Region(
        share=(shares[inside].mean().item(), shares[~inside].mean().item()),
        placed=(_accuracy(run, places, inside), _accuracy(run, places, ~inside)),
        volume_gap=volume_gap(run, inside),
    )


def point_shares(run: Run) -> Float[Tensor, "n"]:
    """MSE of every image over that of a blank one; of every code over that of a code of zeros."""
    reader = run.spec.decoder.reader(run.result.module)
    if reader is None:
        blank = run.spec.task.blank(len(run.truth))
        return mse(run.images, run.truth).double() / mse(blank, run.truth).double()
    codes = run.spec.encoding.encode(run.parts.latents, run.spec.task.factors)
    read = outputs(reader, run.truth)
    return (read - codes).double().square().sum(1) / codes.double().square().sum(1)


def point_places(run: Run) -> Float[Tensor, "n 2"]:
    """Where each image is drawn, or which place each code tells."""
    reader = run.spec.decoder.reader(run.result.module)
    if reader is None:
        return run.spec.task.locate(run.images)
    return run.spec.encoding.decode(outputs(reader, run.truth), run.spec.task.factors)


def _accuracy(run: Run, places: Tensor, where: Tensor) -> float:
    return position_accuracy(places[where], run.parts.latents[where]) or 0.0


def volume_gap(run: Run, inside: Bool[Tensor, "n"]) -> float | None:
    """By how many powers of ten the image's volume is larger inside than outside, beyond what true images have."""
    if run.spec.decoder.drawer(run.result.module) is None:
        return None
    shape = run.diagnosis.layers["image"].geometry
    if shape is None:
        return None
    found, true = volume_summary(shape.volume, inside).gap, true_volume_gap(run.spec.task, inside)
    return None if found is None or true is None else found - true


def true_volume_gap(task: Task, inside: Bool[Tensor, "n"]) -> float | None:
    """The same of exact images: not 0, since the frame cuts bumps near the border."""
    grid = task.grid()
    along = torch.eye(grid.shape[1])[:, None, :].expand(-1, len(grid), -1)
    slopes = [jvp(task.render, (grid,), (tangent,))[1].flatten(1) for tangent in along]
    return volume_summary(volume_element(metric_tensor(torch.stack(slopes, -1))), inside).gap


@dataclass(frozen=True)
class Control:
    """One control: its error over the plane for the first seed, and the numbers of every seed in and out of the region.

    - `withheld`: whether the region was withheld; without a hole it is where the square would be.
    """

    name: str
    region: Bool[Tensor, "x y"]
    withheld: bool
    share: Float[Tensor, "x y"]
    seeds: tuple[int, ...]
    regions: Sequence[Region]


@dataclass(frozen=True)
class Controls:
    """All controls, beside the run that they are controls of."""

    controls: tuple[Control, ...]

    def table(self) -> Rows:
        return [
            {
                "run": control.name,
                "seed": seed,
                "region": "held out" if control.withheld else "the middle, seen",
                "MSE / blank, outside": found.share[1],
                "MSE / blank, in the region": found.share[0],
                "in place, outside": found.placed[1],
                "in place, in the region": found.placed[0],
                "log10 volume, region less rest": found.volume_gap,
            }
            for control in self.controls
            for seed, found in zip(control.seeds, control.regions, strict=True)
        ]


def controls(evidence: Evidence) -> Controls:
    """The figure of controls."""
    return Controls(tuple(_control(name, runs, evidence.preset.hole) for name, runs in evidence.items()))


def where(run: Run, hole: Holdout) -> Bool[Tensor, "n"]:
    """What is withheld from the run or, if nothing is, what the hole would withhold."""
    return run.parts.mask if run.parts.mask.any() else hole.contains(run.parts.latents, run.spec.task.factors)


def _control(name: str, runs: Sequence[Run], hole: Holdout) -> Control:
    first, factors = runs[0], runs[0].spec.task.factors
    inside = where(first, hole)
    return Control(
        name=name,
        region=on_grid(inside, factors),
        withheld=bool(first.parts.mask.any()),
        share=on_grid(point_shares(first), factors),
        seeds=tuple(run.spec.seed for run in runs),
        regions=[region(run, inside) for run in runs],
    )
