"""The numbers behind figures 1a to 1c and 5: the set-up, the failure of every code, a plane bent by a decoder."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.diagnosis.errors import Errors
from composcope.encodings import Encoding
from composcope.factors import Latents
from composcope.holdouts import split
from composcope.measures.grid import grid_sizes, on_grid
from composcope.papers.forced_rendering.base import CODES, heldout_map, sizes_of, spread_rows
from composcope.runs.run import Run
from composcope.study.evidence import Evidence
from composcope.study.panel import Rows
from composcope.study.plan import Key, label_of
from composcope.tasks.base import Images
from composcope.tasks.bump import BumpTask


@dataclass(frozen=True)
class Setup:
    """The latent plane with its hole, true images of some points, and the codes of one of them.

    - `shown`: index of the point whose codes are shown; `codes`: by name, the units that encode x and those for y.
    """

    heldout: Bool[Tensor, "x y"]
    points: Latents
    inside: Bool[Tensor, "points"]
    images: Images
    shown: int
    codes: dict[str, tuple[Float[Tensor, "x_units"], Float[Tensor, "y_units"]]]

    def table(self) -> Rows:
        return [
            {"code": name, "units that encode x": len(x), "units that encode y": len(y)}
            for name, (x, y) in self.codes.items()
        ]


def setup(evidence: Evidence) -> Setup:
    """Figure 1a, which needs no runs: four points outside the hole and four inside it."""
    sizes = sizes_of(evidence.preset)
    size, hole = sizes.size, sizes.hole
    task = BumpTask(size)
    grid = split(task, hole)
    inside = grid.latents[spread_rows(grid.latents, grid.mask, 2)]
    low, middle = hole.lo // 2, size // 2
    high = size - 1 - low
    outside = torch.tensor([[low, high], [high, high], [low, middle], [middle, low]], dtype=inside.dtype)
    points = torch.cat([outside, inside])
    return Setup(
        heldout=on_grid(grid.mask, task.factors),
        points=points,
        inside=hole.contains(points),
        images=task.render(points),
        shown=len(outside),
        codes={name: _by_factor(encoding, inside[:1], task) for name, encoding in CODES.items()},
    )


def _by_factor(encoding: Encoding, point: Latents, task: BumpTask) -> tuple[Tensor, Tensor]:
    """The code of one point: the units of x and the units of y."""
    x, y = encoding.encode(point, task.factors)[0].split(encoding.code_sizes(task.factors))
    return x, y


@dataclass(frozen=True)
class CodeFailure:
    """The runs of one code: the error over the plane and some images of the smallest seed, and every seed's numbers.

    - `share`: MSE over that of a blank image, point by point; `drawn`: foregrounds of some held-out images.
    - `accuracy`: share of held-out images within 1 pixel of the true position at each distance into the hole.
    """

    code: str
    heldout: Bool[Tensor, "x y"]
    share: Float[Tensor, "x y"]
    points: Latents
    drawn: Images
    seeds: tuple[int, ...]
    errors: Sequence[Errors]
    distances: Float[Tensor, "bins"]
    accuracy: Float[Tensor, "seeds bins"]


@dataclass(frozen=True)
class Failure:
    """The runs of some codes."""

    codes: tuple[CodeFailure, ...]

    def table(self) -> Rows:
        """One row per code and seed."""
        return [
            {
                "code": failure.code,
                "seed": seed,
                "seen MSE": error.seen_mse,
                "held-out MSE": error.heldout_mse,
                "blank MSE": error.blank_mse,
                "seen within 1 pixel": error.seen_accuracy,
                "held-out within 1 pixel": error.accuracy,
                "held-out correlation": error.heldout_correlation,
                "within 1 pixel beyond 2 steps": accuracy_beyond(error, 2),
                "reach (grid steps)": reach(error),
            }
            for failure in self.codes
            for seed, error in zip(failure.seeds, failure.errors, strict=True)
        ]


def failure(evidence: Evidence) -> Failure:
    """Figures 1b and 1c."""
    return Failure(tuple(_code_failure(key, runs) for key, runs in evidence.items()))


def _code_failure(key: Key, runs: Sequence[Run]) -> CodeFailure:
    first = runs[0]
    error = first.diagnosis.error
    rows = spread_rows(first.split.latents, first.split.mask)
    curves = [run.diagnosis.error.by_distance["placed"] for run in runs]
    return CodeFailure(
        code=label_of(key),
        heldout=heldout_map(first),
        share=error.map / error.maps["blank_mse"],
        points=first.split.latents[rows],
        drawn=first.spec.task.foreground(first.draw()[rows]),
        seeds=tuple(run.spec.seed for run in runs),
        errors=[run.diagnosis.error for run in runs],
        distances=curves[0].distances,
        accuracy=torch.stack([curve.means for curve in curves]),
    )


def reach(error: Errors) -> float | None:
    """How far into the hole images are right, in grid steps: the accuracy at each distance, summed over distances.

    A decoder that draws the first two rings right and nothing beyond has 2.
    """
    curve = error.by_distance.get("placed")
    return None if curve is None else curve.means.sum().item()


def accuracy_beyond(error: Errors, steps: float) -> float | None:
    """Accuracy on images more than this many grid steps into the hole; None if there are none."""
    curve = error.by_distance.get("placed")
    if curve is None or not (curve.distances > steps).any():
        return None
    beyond = curve.distances > steps
    return ((curve.means * curve.counts)[beyond].sum() / curve.counts[beyond].sum()).item()


@dataclass(frozen=True)
class LayerPlane:
    """The latent plane in a layer: three principal components over the grid, and their shares of the variance."""

    code: str
    layer: str
    units: int
    coordinates: Float[Tensor, "x y 3"]
    explained: Float[Tensor, "3"]


@dataclass(frozen=True)
class BentPlane:
    """The latent plane at the input, halfway and in the image: one row per code, the one of the fewest units first."""

    heldout: Bool[Tensor, "x y"]
    rows: tuple[tuple[LayerPlane, ...], ...]

    def table(self) -> Rows:
        return [
            {
                "code": plane.code,
                "layer": plane.layer,
                "units": plane.units,
                **{f"share of component {i + 1}": share for i, share in enumerate(plane.explained.tolist())},
            }
            for row in self.rows
            for plane in row
        ]


def bent_plane(evidence: Evidence) -> BentPlane:
    """Figure 5."""
    rows = [_layer_planes(label_of(key), evidence.first(key)) for key in evidence]
    rows.sort(key=lambda planes: planes[0].units)
    return BentPlane(heldout_map(evidence.any_run), tuple(rows))


def _layer_planes(code: str, run: Run) -> tuple[LayerPlane, ...]:
    """The code, the layer in the middle of the decoder, and the image; a layer that does not vary is left out."""
    layers = run.diagnosis.layers
    names = list(layers)
    planes = []
    for name in (names[0], names[len(names) // 2], names[-1]):
        manifold = layers[name].manifold
        if manifold is not None and manifold.explained is not None:
            units = int(torch.tensor(layers[name].shape).prod())
            coordinates = manifold.coordinates.reshape(*grid_sizes(run.spec.task.factors), 3)
            planes.append(LayerPlane(code, name, units, coordinates, manifold.explained))
    return tuple(planes)
