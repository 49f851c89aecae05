"""How much of an image each reference leaves unexplained: |f - fit|^2 / |f|^2.

`f` is what the decoder drew minus the offset it adds everywhere; images are rows of pixels.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from composcope.factors import Factor
from composcope.tasks.base import Images
from composcope.verdict.defect import MAX_IMAGES, MAX_PIXELS, Defect, fit_defect
from composcope.verdict.references import AdditiveModel, Pictures, fit_additive, neighbours, nonnegative_weights

# Bytes of true images that go through the defect at a time.
CHUNK_BYTES = 64_000_000

Pixels = Float[Tensor, "n pixels"]


@dataclass(frozen=True)
class World:
    """What every image is compared with.

    - `outputs`, `truth`: foregrounds over all points; `index`: their positions on the grid; `seen`: which were seen.
    - `candidates`: rows of the combinations among which images are placed, all unless there are very many.
    - `floor`: what is left of a typical seen image, |output - truth with the defect|^2: noise and small flaws, which
      held-out images have as well.
    - `scaling`: the factors that only scale an image. If there are any, no reference is brightened or dimmed to fit.
    """

    outputs: Images
    truth: Pictures
    index: Int[Tensor, "n factors"]
    seen: Bool[Tensor, "n"]
    factors: Sequence[Factor]
    cross: Pictures | None
    candidates: Int[Tensor, "m"]
    scaling: Sequence[int]
    defect: Defect
    additive: AdditiveModel
    floor: float

    @property
    def free_scale(self) -> bool:
        """Whether a reference may be brightened or dimmed to fit."""
        return not self.scaling


def world_of(
    outputs: Images,
    truth: Pictures,
    index: Int[Tensor, "n factors"],
    seen: Bool[Tensor, "n"],
    factors: Sequence[Factor],
    cross: Pictures | None,
    candidates: Int[Tensor, "m"],
) -> World:
    """Fit the decoder's defect and its main effects on seen points."""
    rows = seen.nonzero()[:, 0]
    most = min(len(rows), MAX_IMAGES, max(1, MAX_PIXELS // truth.shape[2:].numel()))
    chosen = rows[torch.linspace(0, len(rows) - 1, most).long()]
    defect = fit_defect(outputs[chosen], truth[chosen])
    additive = fit_additive(outputs, index, seen, factors)
    scaling = scaling_axes(truth, index)
    rest = outputs[chosen] - defect.offset - defect.drawn(truth[chosen])
    floor = rest.flatten(1).double().square().sum(1).median().item() if len(chosen) else 0.0
    return World(outputs, truth, index, seen, factors, cross, candidates, scaling, defect, additive, floor)


def scaling_axes(truth: Pictures, index: Int[Tensor, "n factors"]) -> list[int]:
    """Factors along which images differ in scale alone, by the first two points that differ in nothing else."""
    axes = []
    for axis in range(index.shape[1]):
        others = [other for other in range(index.shape[1]) if other != axis]
        same = (index[:, others] == index[0, others]).all(1).nonzero()[:, 0][:2]
        if len(same) == 2:
            a, b = truth[same].flatten(1).double()
            scale = a.norm() * b.norm()
            if scale > 0 and not torch.allclose(a, b) and (a * b).sum() > 0.9999 * scale:
                axes.append(axis)
    return axes


def pixels(world: World, rows: Int[Tensor, "n"]) -> Pixels:
    """The decoder's images at these rows, its offset removed."""
    return (world.outputs[rows] - world.defect.offset).flatten(1)


def left(target: Pixels, reference: Pixels, free_scale: bool) -> Float[Tensor, "n"]:
    """min over a >= 0 of |f - a r|^2 / |f|^2 row by row, or with a = 1; NaN where the reference is."""
    overlap = (target * reference).sum(1, dtype=torch.float64)
    energy, norm = (images.square().sum(1, dtype=torch.float64) for images in (target, reference))
    return _residual(overlap, energy, norm, free_scale)


def _residual(overlap: Tensor, energy: Tensor, reference: Tensor, free_scale: bool) -> Tensor:
    """The residual from <f, r>, |f|^2 and |r|^2; 0 for an image of zeros if scales are free."""
    safe = energy.where(energy > 0, torch.ones_like(energy))
    if not free_scale:
        return torch.where(energy > 0, (energy - 2 * overlap + reference).clamp(min=0) / safe, torch.inf)
    fitted = overlap.clamp(min=0).square() / reference.where(reference > 0, torch.ones_like(reference))
    residual = torch.where(energy > 0, (1 - fitted / safe).clamp(min=0), 0.0)
    return residual.masked_fill(reference.isnan(), torch.nan)


@dataclass(frozen=True)
class ToCombinations:
    """The residual from the true image of every candidate, and the energy of each image's own true image."""

    residuals: Float[Tensor, "n m"]
    own_energy: Float[Tensor, "n"]
    own_error: Float[Tensor, "n"]

    def __getitem__(self, part: slice) -> "ToCombinations":
        return ToCombinations(self.residuals[part], self.own_energy[part], self.own_error[part])


def to_combinations(world: World, rows: Int[Tensor, "n"]) -> ToCombinations:
    """Compare the images with every candidate, drawn with the decoder's defect, by products of matrices in chunks."""
    target = pixels(world, rows)
    energy = target.square().sum(1, dtype=torch.float64)
    columns = []
    chunk = max(1, CHUNK_BYTES // (4 * target.shape[1]))
    for some in world.candidates.split(chunk):
        references = world.defect.drawn(world.truth[some]).flatten(1)
        overlap = (target @ references.T).double()
        reference = torch.linalg.vecdot(references, references).double()[None]
        columns.append(_residual(overlap, energy[:, None], reference.expand_as(overlap), world.free_scale).float())
    own = torch.cat([world.defect.drawn(world.truth[some]).flatten(1) for some in rows.split(chunk)])
    return ToCombinations(
        torch.cat(columns, 1),
        own.square().sum(1, dtype=torch.float64),
        (target - own).square().sum(1, dtype=torch.float64),
    )


def to_additive(world: World, rows: Int[Tensor, "n"], target: Pixels) -> Float[Tensor, "n"]:
    """The residual from the additive prediction, to which a seen image's own output does not contribute."""
    offset = world.defect.offset.expand(world.outputs.shape[1:]).flatten()
    seen, index = world.seen[rows], world.index[rows]
    predicted = world.additive.predicted(index)
    if seen.any():
        predicted[seen] = world.additive.left_out(index[seen], world.outputs[rows[seen]].flatten(1))
    return left(target, predicted - offset, world.free_scale)


def to_cross(world: World, rows: Int[Tensor, "n"], target: Pixels) -> Float[Tensor, "n"] | None:
    """The residual from the sum of the truth's stripes; None if the task has none."""
    if world.cross is None:
        return None
    return left(target, world.defect.drawn(world.cross[rows]).flatten(1), world.free_scale)


def to_superposition(world: World, rows: Int[Tensor, "n"], target: Pixels) -> Float[Tensor, "n"]:
    """min over w >= 0 of |f - sum_j w_j s_j|^2 / |f|^2, s the decoder's own seen images that differ in one factor.

    Not in a factor that only scales: such neighbours are multiples of the image itself and would fit any brightness.
    Divided by 1 - k / pixels, k the number of weights that are not 0: as many weights as pixels fit anything. NaN if
    there are no such seen images.
    """
    seen = world.seen.nonzero()[:, 0]
    residual = torch.full((len(target),), torch.nan, dtype=torch.float64)
    for row, beside in neighbours(world.index[rows], world.index[seen]):
        members = torch.cat([beside[0][:0], *(some for axis, some in enumerate(beside) if axis not in world.scaling)])
        energy = target[row].double().square().sum().item()
        if not len(members):
            continue
        dictionary = pixels(world, seen[members])
        weights = nonnegative_weights(dictionary @ dictionary.T, dictionary @ target[row])
        rest = (target[row] - weights.float() @ dictionary).double().square().sum().item()
        freedom = 1 - int((weights > 0).sum()) / target.shape[1]
        residual[row] = 0.0 if energy == 0 else min(1.0, rest / energy / freedom) if freedom > 0 else 1.0
    return residual
