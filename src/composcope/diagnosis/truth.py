"""What a task's true images are like: the geometry of a perfect decoder, and the sum of stripes."""

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.func import jvp

from composcope.diagnosis.layers import Geometry, geometry_of
from composcope.factors import Latents, column
from composcope.measures.geometry import differentiable, metric_tensor
from composcope.tasks.base import Images, Task


def true_geometry(task: Task, latents: Latents, heldout: Bool[Tensor, "n"]) -> Geometry:
    """The geometry of a perfect decoder's image, exact: `task.render` is differentiated along each factor."""
    axes = differentiable(task.factors)
    slopes = []
    for axis in axes:
        along = torch.zeros_like(latents)
        along[:, axis] = 1
        slopes.append(jvp(task.render, (latents,), (along,))[1].flatten(1))
    return geometry_of(metric_tensor(torch.stack(slopes, -1)), "exact", task.factors, heldout)


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
