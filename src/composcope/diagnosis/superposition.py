"""Whether held-out images are sums or blends of what was seen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.diagnosis.points import Notes, Points
from composcope.encodings import Encoding
from composcope.factors import Factor, Latents, column
from composcope.measures.geometry import differentiable
from composcope.measures.superposition import (
    GapBlend,
    Superposition,
    edge_blend,
    gap_blend,
    shared_value_means,
    superposition,
)
from composcope.randomness import some_rows
from composcope.tasks.base import Images, Task
from composcope.verdict.references import Pictures, whole

# Each is drawn once more per factor, and compared with ten shuffled sums.
MAX_SUPERPOSED = 512
Codes = Float[Tensor, "n code"]
Columns = Sequence[Bool[Tensor, "code"]]


@dataclass(frozen=True)
class SuperpositionReport:
    """Whether held-out outputs are sums of what was seen; None where a number does not apply.

    - `parts`: correlation with the sum of the outputs for one factor's code and the others' mean code.
    - `means`: correlation with the sum, over factors, of the mean of seen outputs that share the factor's value.
    - `blend`: for a single factor with distances, how near the outputs are to the blend of the gap's edges.
    """

    parts: Superposition | None
    means: Superposition | None
    blend: GapBlend | None


def parts_alone(
    draw: Callable[[Codes], Images], codes: Codes, columns: Columns, heldout: Bool[Tensor, "n"], rows: Tensor
) -> list[Float[Tensor, "rows channels height width"]]:
    """D(x_super), D(y_super), ...: one stack of images per factor, row by row those of `codes[rows]`.

    - `draw`: codes -> images (or their foregrounds). `columns`: for each factor, which code units are its own.

    In x_super only the factor x has its code; every other factor has the mean code of the seen points.
    """
    mean = codes[~heldout].mean(0)
    return [draw(torch.where(own, codes[rows], mean)) for own in columns]


def code_columns(encoding: Encoding, factors: Sequence[Factor]) -> list[Bool[Tensor, "code"]]:
    """For each factor, which code units are its own."""
    sizes = torch.tensor(encoding.code_sizes(factors))
    owner = torch.arange(len(factors)).repeat_interleave(sizes)
    return [owner == axis for axis in range(len(factors))]


def inferred_columns(
    codes: Codes, latents: Float[Tensor, "n factors"], factors: Sequence[Factor]
) -> list[Bool[Tensor, "code"]] | None:
    """The same from codes alone: a factor's units are constant wherever its value is. None if some unit has several."""
    unowned = (codes != codes[0]).any(0)
    columns = []
    for axis in range(len(factors)):
        values, member = latents[:, axis].unique(return_inverse=True)
        first = torch.full((len(values),), len(codes)).scatter_reduce(0, member, torch.arange(len(codes)), "amin")
        own = unowned & (codes == codes[first[member]]).all(0)
        columns.append(own)
        unowned = unowned & ~own
    return None if unowned.any() else columns


def superposition_report(
    draw: Callable[[Codes], Images],
    codes: Codes,
    columns: Columns | None,
    outputs: Images,
    truth: Pictures,
    points: Points,
    generator: torch.Generator,
    memory: int,
) -> tuple[SuperpositionReport | None, Notes]:
    """Compare the held-out outputs with sums and blends. `draw`: codes -> foreground; `columns`: each factor's code."""
    held = points.heldout
    if not held.any():
        return None, {"superposition": "no point is held out"}
    notes: Notes = {}
    parts = means = blend = None
    # Two stacks of images per factor, their sums and shuffled copies take up to an eighth of the memory.
    fitting = memory // (8 * 4 * outputs[0].numel() * (2 * len(points.factors) + 4))
    rows = some_rows(held.nonzero()[:, 0], max(64, min(MAX_SUPERPOSED, fitting)), generator)
    if len(rows) < int(held.sum()):
        notes["superposition.points"] = f"{len(rows)} of the {int(held.sum())} held-out images, drawn at random"
    if len(points.factors) > 1:
        try:
            seen_means = shared_value_means(outputs, points.latents, held, points.factors, rows)
            means = superposition(outputs[rows], seen_means, generator)
        except ValueError as error:
            notes["superposition.means"] = str(error)
        if columns is None:
            notes["superposition.parts"] = "some code units depend on several factors; no factor has a code of its own"
        else:
            alone = parts_alone(draw, codes, columns, held, rows)
            parts = superposition(outputs[rows], alone, generator)
    along = differentiable(points.factors)
    if len(along) == 1:
        try:
            true = whole(truth)
            edges = edge_blend(true, points.latents, held, points.factors, points.factors[along[0]].name)
            blend = gap_blend(outputs[held], edges, true[held])
        except ValueError as error:
            notes["superposition.blend"] = str(error)
    return SuperpositionReport(parts, means, blend), notes


def additive_cross(task: Task, latents: Latents) -> Images | None:
    """The sum of the task's stripes at each point: every position factor alone, the others absent, as foregrounds.

    None if the task cannot draw a factor alone.
    """
    names = task.positions or tuple(factor.name for factor in task.factors)
    columns = [column(task.factors, name) for name in names]
    if len(columns) < 2:
        return None
    stripes = []
    for kept in columns:
        alone = latents.clone()
        alone[:, [other for other in columns if other != kept]] = torch.nan
        try:
            stripes.append(task.foreground(task.render(alone)))
        except ValueError:
            return None
    return torch.stack(stripes).sum(0)
