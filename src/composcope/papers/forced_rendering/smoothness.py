"""How even the volume element is over the latent plane: by differences on the grid as the authors do, and exactly."""

from collections.abc import Callable
from copy import copy
from dataclasses import replace

from composcope.diagnosis.layers import Geometry, LayerDiagnosis
from composcope.papers.forced_rendering.layers import nan_if_none
from composcope.papers.forced_rendering.volumes import Evenness, evenness, inner, logs, std
from composcope.runs.run import Run
from composcope.study.evidence import Evidence
from composcope.study.plan import label_of

Way = Callable[[LayerDiagnosis], Geometry | None]
"""How the derivatives are taken."""


def differences(layer: LayerDiagnosis) -> Geometry | None:
    """By differences on the grid, as the authors do."""
    return layer.differences


def exact(layer: LayerDiagnosis) -> Geometry | None:
    """Exact derivatives; none for a one-hot code, which has no derivative."""
    return layer.geometry if layer.geometry is not None and layer.geometry.method == "exact" else None


def hidden_layers(run: Run) -> list[LayerDiagnosis]:
    """The layers between code and image, in order."""
    return [layer for name, layer in run.diagnosis.layers.items() if name not in ("code", "image")]


def hidden_spread(way: Way) -> Callable[[Run], float]:
    """The spread of log10 volume over the grid without its border, mean over the hidden layers."""

    def number(run: Run) -> float:
        layers = hidden_layers(run)
        return sum(_spread(way(layer), run.diagnosis.sizes) for layer in layers) / len(layers)

    return number


def image_spread(way: Way) -> Callable[[Run], float]:
    """The same of the image."""
    return lambda run: _spread(way(run.diagnosis.layers["image"]), run.diagnosis.sizes)


def _spread(geometry: Geometry | None, sizes: tuple[int, ...]) -> float:
    return nan_if_none(None if geometry is None else std(inner(logs(geometry.volume, sizes))))


def late_gap(way: Way) -> Callable[[Run], float]:
    """Mean log10 volume over held-out points minus that over seen points, in the last hidden layer."""
    return lambda run: _gap(way(hidden_layers(run)[-1]))


def image_gap(way: Way) -> Callable[[Run], float]:
    """The same of the image."""
    return lambda run: _gap(way(run.diagnosis.layers["image"]))


def _gap(geometry: Geometry | None) -> float:
    return nan_if_none(None if geometry is None else geometry.volumes.gap)


def magnitude(number: Callable[[Run], float]) -> Callable[[Run], float]:
    """The number without its sign."""
    return lambda run: abs(number(run))


def evenness_both_ways(evidence: Evidence) -> Evenness:
    """The volume element of every kind of run, by differences and exactly, in turn."""
    runs = {key: [_by_differences(run) for run in row] for key, row in evidence.items()}
    ways = {"differences": evenness(Evidence(evidence.preset, runs)), "exact": evenness(evidence)}
    keys = [(key, name, even) for key in evidence for name, even in ways.items()]
    return Evenness(
        maps={f"{label_of(key)}, {name}": even.maps[key] for key, name, even in keys},
        spreads={f"{label_of(key)}, {name}": even.spreads[key] for key, name, even in keys},
        truth=ways["exact"].truth,
    )


def _by_differences(run: Run) -> Run:
    """The run with its layers' geometry by differences."""
    layers = {name: replace(layer, geometry=layer.differences) for name, layer in run.diagnosis.layers.items()}
    twin = copy(run)
    twin.__dict__["diagnosis"] = replace(run.diagnosis, layers=layers)
    return twin
