"""How even the volume element is over the latent plane, layer by layer."""

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from composcope.diagnosis.layers import Geometry, LayerDiagnosis, true_geometry
from composcope.measures.geometry import FLOOR
from composcope.measures.grid import grid_sizes
from composcope.papers.forced_rendering.base import heldout_map
from composcope.papers.forced_rendering.layers import log_maps, nan_if_none
from composcope.runs.run import Run
from composcope.study.evidence import Evidence
from composcope.study.layers import LayerNumber
from composcope.study.numbers import Numbers, Row, Rows

Ways = Mapping[str, Callable[[LayerDiagnosis], Geometry | None]]
"""How derivatives are taken, by what is added to a name."""

ONE_WAY: Ways = {"": lambda layer: layer.geometry}
BOTH_WAYS: Ways = {", differences": lambda layer: layer.differences, ", exact": lambda layer: layer.geometry}


def spread(run: Run, layer: str, differences: bool = False) -> float:
    """The spread of log10 volume in a layer: its standard deviation over the grid without its border.

    0 for a layer stretched evenly. Without the border, since differences there are one-sided: a one-hot code, which is
    perfectly even, would have 0.14.
    """
    diagnosis = run.diagnosis.layers[layer]
    return _spread(diagnosis.differences if differences else diagnosis.geometry, run.diagnosis.sizes)


def _spread(geometry: Geometry | None, sizes: tuple[int, ...]) -> float:
    return torch.nan if geometry is None else std(inner(logs(geometry.volume, sizes)))


def hidden_spread(run: Run) -> float:
    """The spread by differences, mean over the hidden layers."""
    names = [name for name in run.diagnosis.layers if name not in ("code", "image")]
    return sum(spread(run, name, differences=True) for name in names) / len(names)


def image_spread(run: Run) -> float:
    """The spread of the image by differences."""
    return spread(run, "image", differences=True)


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

    return LayerNumber(distortion).curve(run)


def logs(volume: Float[Tensor, "points"], sizes: tuple[int, ...]) -> Float[Tensor, "..."]:
    """log10 max(dv, floor) over the grid."""
    return volume.double().clamp(min=FLOOR).log10().reshape(sizes)


def inner(values: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
    """The grid without its border."""
    return values[tuple(slice(1, -1) for _ in values.shape)]


def std(values: Float[Tensor, "..."]) -> float:
    """Root mean square distance from the mean."""
    return values.std(correction=0).item()


def evenness(evidence: Evidence, ways: Ways = ONE_WAY) -> Numbers:
    """Spread and gap of the volume element by layer, its maps for the first seed, and the map of the true images.

    The true images are what a perfect decoder has at its last layer.
    """
    run = evidence.any_run
    task, heldout = run.spec.task, heldout_map(run)
    true = logs(true_geometry(task, run.split.latents, run.split.mask).volume, grid_sizes(task.factors))

    def numbers(run: Run) -> Row:
        row: Row = {"layers": list(run.diagnosis.layers)}
        for name, geometry in ways.items():
            shapes = [geometry(layer) for layer in run.diagnosis.layers.values()]
            spreads = [_spread(shape, run.diagnosis.sizes) for shape in shapes]
            gaps = [nan_if_none(shape.volumes.gap if shape else None) for shape in shapes]
            row |= {f"spread{name}": _tensor(spreads), f"gap{name}": _tensor(gaps)}
        return row

    def maps(run: Run) -> Row:
        layers = run.diagnosis.layers.values()
        return {f"maps{name}": log_maps(run, [geometry(layer) for layer in layers]) for name, geometry in ways.items()}

    common = {"heldout": heldout, "truth": true - true[~heldout].mean(), "ways": list(ways)}
    return evidence.numbers("runs", numbers, maps, common)


def _tensor(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def evenness_both_ways(evidence: Evidence) -> Numbers:
    """The same by differences and exactly."""
    return evenness(evidence, BOTH_WAYS)


def evenness_table(numbers: Numbers) -> Rows:
    """One row per kind of run and layer, means over seeds; the true images last."""
    rows: Rows = [
        {
            "runs": f"{kind}{way}",
            "layer": layer,
            "spread of log10 volume": numbers.stack(f"spread{way}", kind)[:, index].mean().item(),
            "held-out minus seen": numbers.stack(f"gap{way}", kind)[:, index].mean().item(),
            "seeds": len(numbers.of(kind)),
        }
        for kind in numbers.kinds
        for way in numbers.common["ways"]
        for index, layer in enumerate(numbers.of(kind)[0]["layers"])
    ]
    truth, heldout = numbers.common["truth"], numbers.common["heldout"]
    gap = (truth[heldout].mean() - truth[~heldout].mean()).item()
    perfect = {"runs": "true images", "layer": "image", "spread of log10 volume": std(inner(truth))}
    return [*rows, {**perfect, "held-out minus seen": gap, "seeds": 1}]
