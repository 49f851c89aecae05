"""The volume element of each layer over the latent plane: maps, and how even it is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from composcope.diagnosis.layers import Geometry, LayerDiagnosis, true_geometry
from composcope.measures.geometry import FLOOR
from composcope.measures.grid import grid_sizes, on_grid
from composcope.papers.forced_rendering.base import heldout_map
from composcope.papers.forced_rendering.layers import (
    Curves,
    before_image,
    by_layer,
    grid_volume_gap,
    group_and_label,
    join_networks,
    nan_if_none,
    volume_gap,
)
from composcope.runs.run import Run
from composcope.study.evidence import Evidence
from composcope.study.joining import pick_by_seed
from composcope.study.panel import Rows
from composcope.study.plan import Key, label_of
from composcope.study.statistics import interval


@dataclass(frozen=True)
class VolumeMaps:
    """One network's volume element over (x, y), layer by layer.

    - `maps`: log10 dv minus its mean over seen points, for the smallest seed; volumes below `floor` count as `floor`.
    - `gaps`: mean over held-out points minus that over seen ones, for every seed. `grid_maps`, `grid_gaps`: the same by
      differences on the grid, as the authors take derivatives. `seen`: the means subtracted from the maps.
    - `floored`: points below the floor, for the smallest seed. `method`: how the derivatives were taken.
    - `seeds`: those of the gaps' rows; `place`: the network's position in the plan.
    """

    group: str
    label: str
    layers: tuple[str, ...]
    maps: Float[Tensor, "layers x y"]
    grid_maps: Float[Tensor, "layers x y"]
    gaps: Curves
    grid_gaps: Curves
    seen: Float[Tensor, "layers"]
    heldout: Bool[Tensor, "x y"]
    floor: float
    floored: int
    method: str
    seeds: tuple[int, ...] = ()
    place: int = 0

    def joined(self, other: "VolumeMaps") -> "VolumeMaps":
        """The gaps of the seeds of both, and the maps of the smallest seed."""
        rows, both = pick_by_seed(self.seeds, other.seeds), (self, other)
        return replace(
            both[rows[0][0]],
            gaps=torch.stack([both[of].gaps[row] for of, row in rows]),
            grid_gaps=torch.stack([both[of].grid_gaps[row] for of, row in rows]),
            seeds=tuple(both[of].seeds[row] for of, row in rows),
        )


@dataclass(frozen=True)
class Volumes:
    """Volume maps of several networks."""

    networks: tuple[VolumeMaps, ...]

    def joined(self, other: "Volumes") -> "Volumes":
        return Volumes(join_networks(self.networks, other.networks))

    def seed_counts(self) -> list[int]:
        return [len(network.seeds) for network in self.networks]

    def table(self) -> Rows:
        """One row per network: the gap between held-out and seen points at the image, its interval, and by layer."""
        rows: Rows = []
        for network in self.networks:
            mean, low, high = map(nan_if_none, interval(network.gaps[:, -1].tolist()))
            grid_gaps = network.grid_gaps.mean(0)
            rows.append(
                {
                    "network": f"{network.group}, {network.label}",
                    "seeds": len(network.gaps),
                    "gap of log10 volume at the image": mean,
                    "low": low,
                    "high": high,
                    "gap by layer": " ".join(f"{gap:+.2f}" for gap in network.gaps.mean(0)),
                    "gap by layer, differences on the grid": " ".join(f"{gap:+.2f}" for gap in grid_gaps),
                    "mean log10 volume on seen points by layer": " ".join(f"{value:.2f}" for value in network.seen),
                    "floor": network.floor,
                    "points below the floor": network.floored,
                    "derivatives": network.method,
                }
            )
        return rows


def volumes(evidence: Evidence) -> Volumes:
    """Every network's volume maps from the code to the image."""
    return Volumes(tuple(_volume_maps(key, runs, place) for place, (key, runs) in enumerate(evidence.items()) if runs))


def _volume_maps(key: Key, runs: Sequence[Run], place: int) -> VolumeMaps:
    first = runs[0]
    shapes = [layer.geometry for layer in first.diagnosis.layers.values()]
    known = [shape for shape in shapes if shape is not None]
    return VolumeMaps(
        *group_and_label(key, first),
        tuple(first.diagnosis.layers),
        _maps(first, shapes),
        _maps(first, [layer.differences for layer in first.diagnosis.layers.values()]),
        torch.stack([by_layer(run, volume_gap) for run in runs]),
        torch.stack([by_layer(run, grid_volume_gap) for run in runs]),
        torch.tensor([nan_if_none(shape.volumes.seen if shape else None) for shape in shapes], dtype=torch.float64),
        heldout_map(first),
        known[0].volumes.floor if known else FLOOR,
        sum(shape.volumes.floored for shape in known),
        " and ".join(sorted({shape.method for shape in known})),
        tuple(run.spec.seed for run in runs),
        place,
    )


def _maps(run: Run, shapes: Sequence[Geometry | None]) -> Float[Tensor, "layers x y"]:
    return torch.stack([on_grid(_relative_logs(shape, run.split.mask), run.spec.task.factors) for shape in shapes])


def _relative_logs(shape: Geometry | None, heldout: Bool[Tensor, "points"]) -> Float[Tensor, "points"]:
    """log10 max(dv, floor) minus its mean over seen points; NaN where a layer has no geometry."""
    if shape is None:
        return torch.full((len(heldout),), torch.nan, dtype=torch.float64)
    logs = shape.volume.double().clamp(min=shape.volumes.floor).log10()
    return logs - nan_if_none(shape.volumes.seen)


@dataclass(frozen=True)
class Evenness:
    """Volume maps of some kinds of runs, by the plan's keys, and their spread by seed and layer.

    - `truth`: the map of the true images minus its mean over seen points: what a perfect decoder has at its last layer.
    """

    maps: dict[Key, VolumeMaps]
    spreads: dict[Key, Curves]
    truth: Float[Tensor, "x y"]

    def table(self) -> Rows:
        """One row per kind of run and layer, means over seeds; the true images last."""
        rows: Rows = [
            {
                "runs": label_of(key),
                "layer": layer,
                "spread of log10 volume": self.spreads[key][:, index].mean().item(),
                "held-out minus seen": maps.gaps[:, index].mean().item(),
                "seeds": len(maps.gaps),
            }
            for key, maps in self.maps.items()
            for index, layer in enumerate(maps.layers)
        ]
        heldout = next(iter(self.maps.values())).heldout
        gap = (self.truth[heldout].mean() - self.truth[~heldout].mean()).item()
        perfect = {"runs": "true images", "layer": "image", "spread of log10 volume": std(inner(self.truth))}
        return [*rows, {**perfect, "held-out minus seen": gap, "seeds": 1}]


def evenness(evidence: Evidence) -> Evenness:
    """The volume element of every kind of run, layer by layer, and that of a perfect decoder's images."""
    run = evidence.any_run
    task, heldout = run.spec.task, heldout_map(run)
    true = logs(true_geometry(task, run.split.latents, run.split.mask).volume, grid_sizes(task.factors))
    return Evenness(
        maps=dict(zip(evidence, volumes(evidence).networks, strict=True)),
        spreads={key: torch.stack([spreads(run) for run in runs]) for key, runs in evidence.items()},
        truth=true - true[~heldout].mean(),
    )


def spreads(run: Run) -> Float[Tensor, "layers"]:
    """The spread of log10 volume in every layer: its standard deviation over the grid without its border.

    0 for a layer stretched evenly. Without the border, since differences there are one-sided: a one-hot code, which is
    perfectly even, would have 0.14.
    """

    def spread(layer: LayerDiagnosis) -> float:
        return torch.nan if layer.geometry is None else std(inner(logs(layer.geometry.volume, run.diagnosis.sizes)))

    return by_layer(run, spread)


def mean_spread(run: Run) -> float:
    """The mean spread over all layers after the code."""
    return spreads(run)[1:].mean().item()


def distortions(run: Run, region: Bool[Tensor, "x y"]) -> Float[Tensor, "layers"]:
    """Root mean square of log10 volume minus its mean over seen points, over a region of the grid without its border.

    Of the input and the hidden layers, by differences, as the authors take derivatives; 0 for a layer stretched evenly.
    """
    seen, region = inner(~heldout_map(run)), inner(region)

    def distortion(layer: LayerDiagnosis) -> float:
        if layer.differences is None:
            return torch.nan
        values = inner(logs(layer.differences.volume, run.diagnosis.sizes))
        return (values - values[seen].mean())[region].square().mean().sqrt().item()

    return before_image(run, distortion)


def logs(volume: Float[Tensor, "points"], sizes: tuple[int, ...]) -> Float[Tensor, "..."]:
    """log10 max(dv, floor) over the grid."""
    return volume.double().clamp(min=FLOOR).log10().reshape(sizes)


def inner(values: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
    """The grid without its border."""
    return values[tuple(slice(1, -1) for _ in values.shape)]


def std(values: Float[Tensor, "..."]) -> float:
    """Root mean square distance from the mean."""
    return values.std(correction=0).item()
