"""How far a decoder's images are from the truth: point by point, in the mean, and by distance into the hole."""

from collections.abc import Mapping
from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from composcope.diagnosis.points import Notes, Points
from composcope.factors import Latents, column
from composcope.measures.error import (
    ByDistance,
    blank_mse,
    distance_to_seen,
    mean_by_distance,
    mse,
    placed,
    position_error,
    shape_correlation,
    ssim_error,
)
from composcope.measures.grid import grid_sizes
from composcope.tasks.base import Images, Task


@dataclass(frozen=True)
class PointErrors:
    """The error at every point.

    - `mse`: over an image's pixels (or a code's units); `blank_mse`: that of a blank image (or a code of zeros).
    - `position_error`: in pixels; `placed`: 1 within 1 pixel (or grid step) of the true position, else 0. None where
      the task does not define a position.
    """

    mse: Float[Tensor, "n"]
    blank_mse: Float[Tensor, "n"]
    position_error: Float[Tensor, "n"] | None
    placed: Float[Tensor, "n"] | None

    @property
    def share(self) -> Float[Tensor, "n"]:
        """MSE over that of a blank image: below 1 if the image is better than none."""
        return self.mse / self.blank_mse


def point_errors(task: Task, images: Images, truth: Images, latents: Latents) -> PointErrors:
    """The error of every image against its truth: the one definition that runs, diagnoses and studies share."""
    position = close = None
    if task.positions:
        columns = [column(task.factors, name) for name in task.positions]
        positions = task.locate(images)
        position = position_error(positions, latents[:, columns]).double()
        close = placed(positions, latents[:, columns]).double()
    blank = blank_mse(task.foreground(truth))
    return PointErrors(mse(images, truth).double(), blank.double(), position, close)


def mean_errors(points: PointErrors, heldout: Bool[Tensor, "n"]) -> dict[str, float | None]:
    """The errors' means over seen and held-out points, by the names under which every run stores them.

    `blank_mse` is over the held-out points if there are any, else over the seen ones: the MSE to compare with.
    """
    seen = ~heldout
    values = {
        "seen_mse": mean_over(points.mse, seen),
        "heldout_mse": mean_over(points.mse, heldout),
        "blank_mse": mean_over(points.blank_mse, heldout if heldout.any() else seen),
    }
    if points.placed is not None:
        values["seen_accuracy"] = mean_over(points.placed, seen)
        values["accuracy"] = mean_over(points.placed, heldout)
    return values


def mean_over(values: Float[Tensor, "n"] | None, mask: Bool[Tensor, "n"]) -> float | None:
    """The mean over the masked points; None if there are none."""
    return None if values is None or not mask.any() else values[mask].double().mean().item()


@dataclass(frozen=True)
class Errors:
    """Every image's distance from the truth: means over seen and held-out points, maps, and by distance into the hole.

    - `map`: MSE over the grid, (x, y, ...), or over the points where they are not a whole grid; `maps`: the same of
      the other errors ("ssim_error", "position_error", "correlation", "blank_mse").
    - `blank_mse`: that of a blank image, over the held-out points if there are any: no MSE means anything without it.
    - `accuracy`: share of held-out images drawn within 1 pixel of the true position.
    """

    map: Float[Tensor, "..."]
    maps: dict[str, Float[Tensor, "..."]]
    seen_mse: float | None
    heldout_mse: float | None
    blank_mse: float | None
    seen_blank_mse: float | None
    seen_ssim_error: float | None
    heldout_ssim_error: float | None
    seen_position_error: float | None
    heldout_position_error: float | None
    seen_accuracy: float | None
    accuracy: float | None
    seen_correlation: float | None
    heldout_correlation: float | None
    by_distance: dict[str, ByDistance]


def each_error(
    task: Task, images: Images, truth: Images, latents: Latents, span: float | None = None
) -> dict[str, Float[Tensor, "n"]]:
    """Every image's errors, by name, in all the ways that apply.

    - `span`: the range of all true pixels; without it the structural errors, which are slow, are left out.
    """
    basic = point_errors(task, images, truth, latents)
    each = {"mse": basic.mse, "blank_mse": basic.blank_mse}
    if span is not None:
        each["correlation"] = shape_correlation(images, truth)
        if min(task.image_shape[1:]) >= 3:
            each["ssim_error"] = ssim_error(images, truth, span)
    if basic.position_error is not None and basic.placed is not None:
        each |= {"position_error": basic.position_error, "placed": basic.placed}
    return each


def error_report(task: Task, each: Mapping[str, Float[Tensor, "n"]], points: Points) -> tuple[Errors, Notes]:
    """The means, maps and curves of the errors that `each_error` gives at every point."""
    notes: Notes = {}
    if "correlation" not in each:
        notes["correlation"] = "only the verdict was asked for"
    if "ssim_error" not in each:
        height, width = task.image_shape[1:]
        small = f"images of {height} x {width} pixels are too small for it"
        notes["ssim_error"] = small if min(height, width) < 3 else "only the verdict was asked for"
    if "position_error" not in each:
        notes["position"] = f"{task.kind} does not define a position in the image"
    basic = PointErrors(each["mse"], each["blank_mse"], each.get("position_error"), each.get("placed"))
    held, seen = points.heldout, ~points.heldout
    distances = distance_to_seen(points.latents, held, points.factors)[held]
    sizes = grid_sizes(points.factors) if points.full else (len(each["mse"]),)
    means = mean_errors(basic, held)
    report = Errors(
        map=each["mse"].reshape(sizes),
        maps={name: values.reshape(sizes) for name, values in each.items() if name not in ("mse", "placed")},
        seen_mse=means["seen_mse"],
        heldout_mse=means["heldout_mse"],
        blank_mse=means["blank_mse"],
        seen_blank_mse=mean_over(basic.blank_mse, seen),
        seen_ssim_error=mean_over(each.get("ssim_error"), seen),
        heldout_ssim_error=mean_over(each.get("ssim_error"), held),
        seen_position_error=mean_over(basic.position_error, seen),
        heldout_position_error=mean_over(basic.position_error, held),
        seen_accuracy=means.get("seen_accuracy"),
        accuracy=means.get("accuracy"),
        seen_correlation=mean_over(each.get("correlation"), seen),
        heldout_correlation=mean_over(each.get("correlation"), held),
        # Among some of the points the nearest seen one is farther away than it really is.
        by_distance={}
        if points.sampled
        else {name: mean_by_distance(values[held], distances) for name, values in each.items()},
    )
    return report, notes
