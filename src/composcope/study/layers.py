"""Numbers of a run's layers, by the diagnosis's own keys: `layer("geometry.volume.gap").at("last hidden")`."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from composcope.diagnosis.layers import Geometry, LayerDiagnosis
from composcope.diagnosis.quantities import Quantity, layer_quantities
from composcope.runs.run import Run

IMAGE = "image"
Curve = Float[Tensor, "layers"]
Place = Literal["first hidden", "last hidden", "image"]
Derivatives = Literal["exact", "differences"]


@dataclass(frozen=True)
class LayerNumber:
    """A number of each layer of a run, and numbers of the run that follow from it.

    - `measure`: the number of one layer; NaN where it has none.
    """

    measure: Callable[[LayerDiagnosis], float]

    def __sub__(self, other: "LayerNumber") -> "LayerNumber":
        return LayerNumber(lambda layer: self.measure(layer) - other.measure(layer))

    def all_layers(self, run: Run, untrained: bool = False) -> Curve:
        """The number from the code to the image, of the run's network or of the same network before training."""
        layers = (run.diagnosis.untrained or {}) if untrained else run.diagnosis.layers
        values = [self.measure(layers[name]) if name in layers else torch.nan for name in run.diagnosis.layers]
        return torch.tensor(values, dtype=torch.float64)

    def curve(self, run: Run, untrained: bool = False) -> Curve:
        """The number of the input and the hidden layers."""
        return self.all_layers(run, untrained)[[name != IMAGE for name in run.diagnosis.layers]]

    def at(self, place: Place) -> Callable[[Run], float]:
        """The number of one layer."""
        if place == "image":
            return lambda run: self.measure(run.diagnosis.layers[IMAGE])
        return self.of_curve(lambda curve: float(curve[1 if place == "first hidden" else -1]))

    def of_curve(self, number: Callable[[Curve], float]) -> Callable[[Run], float]:
        """A number of the curve over the input and the hidden layers."""
        return lambda run: number(self.curve(run))

    def beyond_untrained(self, number: Callable[[Curve], float]) -> Callable[[Run], float]:
        """By how much a number of the curve exceeds that of the same network before training."""
        return lambda run: number(self.curve(run)) - number(self.curve(run, untrained=True))


def layer(key: str, derivatives: Derivatives | None = None) -> LayerNumber:
    """The number that a diagnosis has under this key for each layer (see `Diagnosis.numbers`).

    - `key`: without the layer's name: "geometry.volume.gap". A star stands for every factor: "probes.*.heldout" is the
      mean over factors.
    - `derivatives`: those that the geometry is computed from: "exact" ones, which codes such as one-hot do not have, or
      "differences" on the grid. By default exact ones, and differences where there are none.
    """

    def measure(diagnosis: LayerDiagnosis) -> float:
        if derivatives is not None:
            diagnosis = replace(diagnosis, geometry=geometry_by(diagnosis, derivatives))
        factors = tuple(diagnosis.probe or ())
        keys = [key.replace("*", factor) for factor in factors] if "*" in key else [key]
        values = [_value(_quantities(factors)[each], diagnosis) for each in keys]
        present = [value for value in values if value is not None]
        return sum(present) / len(present) if present and len(present) == len(values) else math.nan

    return LayerNumber(measure)


def geometry_by(diagnosis: LayerDiagnosis, derivatives: Derivatives) -> Geometry | None:
    """The layer's geometry by exact derivatives, if it has them, or by differences on the grid."""
    if derivatives == "differences":
        return diagnosis.differences
    geometry = diagnosis.geometry
    return geometry if geometry is not None and geometry.method == "exact" else None


@cache
def _quantities(factors: tuple[str, ...]) -> dict[str, Quantity]:
    return {quantity.key: quantity for quantity in layer_quantities(factors, heldout=True)}


def _value(quantity: Quantity, diagnosis: LayerDiagnosis) -> float | None:
    assert quantity.get is not None  # the quantities of layers that are single numbers have one
    value: float | None = quantity.get(diagnosis)
    return value


def fall(curve: Curve) -> float:
    """The first value minus the last."""
    return float(curve[0] - curve[-1])


def hidden(number: Callable[[Curve], float]) -> Callable[[Curve], float]:
    """A number of the hidden layers alone: at the input most scores are the highest there can be, whatever follows."""
    return lambda curve: number(curve[1:])


def slope(values: Sequence[float] | Curve) -> float:
    """The slope of the least-squares line through values one step apart.

    >>> round(slope([0.0, 1.0, 2.0, 3.0]), 6)
    1.0
    """
    steps = np.arange(len(values)) - (len(values) - 1) / 2
    return float(steps @ np.asarray(values, dtype=float) / (steps @ steps))


def largest_fall(curve: Curve) -> float:
    """The largest fall of the curve from one layer to the next.

    >>> round(largest_fall(torch.tensor([1.0, 0.9, 0.6, 0.7])), 2)
    0.3
    """
    return float(-curve.diff().min())


def steadiness(curve: Curve) -> float:
    """The net fall over the total variation: 1 if the curve only falls, -1 if it only rises, NaN if it is flat.

    >>> steadiness(torch.tensor([1.0, 0.75, 0.5])), steadiness(torch.tensor([1.0, 0.5, 0.75]))
    (1.0, 0.3333333432674408)
    """
    steps = curve.diff()
    return float(-steps.sum() / steps.abs().sum())


def layer_trend(curve: Curve) -> float:
    """Rank correlation of a curve with the layer's index: -1 if it only falls; NaN if it is flat.

    >>> layer_trend(torch.tensor([1.0, 0.9, 0.5]))
    -1.0
    """
    if curve.unique().numel() == 1:
        return math.nan
    from scipy import stats

    return float(stats.spearmanr(range(len(curve)), curve.numpy()).statistic)
