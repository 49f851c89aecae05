"""How even the volume element of each layer is over the latent plane, with a cure and without."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diagnosis.layers import LayerDiagnosis
from composcope.experiments.run import Run
from composcope.measures.geometry import FLOOR, grid_metric, volume_element
from composcope.measures.grid import grid_sizes, on_grid
from composcope.papers.forced_rendering.layers import Curves, VolumeMaps, by_layer, volumes
from composcope.study.evidence import Evidence
from composcope.study.panel import Rows


@dataclass(frozen=True)
class Evenness:
    """Volume maps of some kinds of runs, by name, and their spread: by seed and layer.

    - `truth`: the map of the true images, by differences on the grid, less its mean over seen points: what a perfect
      decoder has at its last layer.
    """

    maps: dict[str, VolumeMaps]
    spreads: dict[str, Curves]
    truth: Float[Tensor, "x y"]

    def table(self) -> Rows:
        rows: Rows = [
            {
                "runs": name,
                "layer": layer,
                "spread of log10 volume": self.spreads[name][:, place].mean().item(),
                "held-out less seen": maps.gaps[:, place].mean().item(),
                "seeds": len(maps.gaps),
            }
            for name, maps in self.maps.items()
            for place, layer in enumerate(maps.layers)
        ]
        heldout = next(iter(self.maps.values())).heldout
        gap = (self.truth[heldout].mean() - self.truth[~heldout].mean()).item()
        perfect = {"runs": "true images", "layer": "image", "spread of log10 volume": std(inner(self.truth))}
        return [*rows, {**perfect, "held-out less seen": gap, "seeds": 1}]


def evenness(evidence: Evidence) -> Evenness:
    """The volume element of every kind of run, layer by layer, and that of a perfect decoder's images."""
    run = evidence.first(next(iter(evidence)))
    factors = run.spec.task.factors
    heldout = on_grid(run.split.mask, factors)
    true = logs(volume_element(grid_metric(run.truth, factors)), grid_sizes(factors))
    return Evenness(
        maps=dict(zip(evidence, volumes(evidence).networks, strict=True)),
        spreads={name: torch.stack([spreads(run) for run in runs]) for name, runs in evidence.items()},
        truth=true - true[~heldout].mean(),
    )


def spreads(run: Run) -> Float[Tensor, "layers"]:
    """Of every layer, the spread of log10 volume: its standard deviation over the grid without its border.

    0 for a layer stretched evenly. Without the border, since differences there are one-sided: a one-hot code, as even
    as can be, would have 0.14.
    """

    def spread(layer: LayerDiagnosis) -> float:
        return torch.nan if layer.geometry is None else std(inner(logs(layer.geometry.volume, run.diagnosis.sizes)))

    return by_layer(run, spread)


def mean_spread(run: Run) -> float:
    """The spread's mean over all layers after the code."""
    return spreads(run)[1:].mean().item()


def logs(volume: Float[Tensor, "points"], sizes: tuple[int, ...]) -> Float[Tensor, "..."]:
    """log10 max(dv, floor) over the grid."""
    return volume.double().clamp(min=FLOOR).log10().reshape(sizes)


def inner(values: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """The grid without its border."""
    return values[tuple(slice(1, -1) for _ in values.shape)]


def std(values: Float[Tensor, "..."]) -> float:
    """Root mean square distance from the mean."""
    return values.std(correction=0).item()
