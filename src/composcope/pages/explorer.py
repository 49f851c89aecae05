"""The explorer: every image of a run over its latent grid, selected by dragging a point."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

import composcope
from composcope.diagnosis import Diagnosis
from composcope.diagnosis.layers import LayerDiagnosis
from composcope.errors import BadInput, ComposcopeError
from composcope.factors import absent, combination_numbers
from composcope.measures.error import shape_correlation
from composcope.measures.geometry import differentiable
from composcope.measures.grid import grid_index, grid_sizes, grid_steps
from composcope.measures.superposition import edge_blend
from composcope.pages.maps import levels
from composcope.pages.page import packed, render, write_page
from composcope.pages.runs import titles
from composcope.runs.run import Run
from composcope.runs.spec import training_latents
from composcope.store.store import Store
from composcope.tasks.base import Images, Task

OnProgress = Callable[[int, int], None]
Pixels = Float[Tensor, "n height width"]
MAX_BYTES = 2**25  # of one run's images, before they are compressed
BEYOND = 2.0  # pixels are kept up to this many ranges of the truth outside it


def write_explorer(store: Store, run_ids: Sequence[str], path: Path, on_progress: OnProgress | None = None) -> Path:
    """A page on which the runs can be explored; one that is missing or damaged appears with the reason.

    - `run_ids`: ids or beginnings of ids. `on_progress`: called with the runs done and their number.
    """
    data = explorer_data(*opened(store, run_ids), on_progress)
    return write_page(render("explorer.html", explorer=data, version=composcope.__version__), path)


def opened(store: Store, run_ids: Sequence[str]) -> tuple[list[Run], dict[str, str]]:
    """The runs, and why some cannot be opened, by id: a damaged spec, or a plugin that is not loaded."""
    runs, problems = [], {}
    for prefix in run_ids:
        try:
            runs.append(store[store.find(prefix)])
        except ComposcopeError as error:
            problems[prefix] = str(error)
    return runs, problems


def explorer_data(
    runs: Sequence[Run],
    problems: Mapping[str, str] | None = None,
    on_progress: OnProgress | None = None,
    stored_only: bool = False,
) -> dict[str, Any]:
    """What the explorer shows, ready to be embedded as "explorer-data".

    - `problems`: runs that could not be opened, by id, and why; runs that cannot be explored are added to them.
    - `stored_only`: show the layers of diagnoses that the store has, and make none.
    """
    failed = dict(problems or {})
    tasks: dict[Task, dict[str, Any]] = {}
    explored = []
    for done, (run, name) in enumerate(zip(runs, titles([run.spec for run in runs]), strict=True)):
        if on_progress is not None:
            on_progress(done, len(runs))
        try:
            check_explorable(run)
            tasks.setdefault(run.spec.task, task_data(run))
            explored.append({"title": name, "task": list(tasks).index(run.spec.task), **run_data(run, stored_only)})
        except ComposcopeError as error:
            failed[f"{name} ({run.spec.run_id})"] = str(error)
    if on_progress is not None:
        on_progress(len(runs), len(runs))
    reasons = [{"run": run, "reason": reason} for run, reason in failed.items()]
    return {"tasks": list(tasks.values()), "runs": explored, "problems": reasons}


def check_explorable(run: Run) -> None:
    """BadInput says why a run cannot be explored."""
    spec, factors = run.spec, run.spec.task.factors
    if not run.draws:
        raise BadInput(f"{type(spec.decoder).__name__} draws no images")
    size = len(run.split.latents) * int(np.prod(spec.task.image_shape[1:]))
    if size > MAX_BYTES:
        raise BadInput(f"its images would take {size / 2**20:.0f} MB; {MAX_BYTES / 2**20:.0f} are allowed")
    on_grid = bool((grid_index(run.split.latents, factors) >= 0).all())
    if not on_grid or len(run.split.latents) != int(np.prod(grid_sizes(factors))):
        raise BadInput("its points are not the whole grid of its factors")


def task_data(run: Run) -> dict[str, Any]:
    """The truth over the grid, shared by all runs of the task. `scale`: the pixel values drawn black and white."""
    task = run.spec.task
    truth = run.truth
    return {
        "factors": [{"name": factor.name, "values": list(factor.names or factor.values)} for factor in task.factors],
        "sizes": [*grid_sizes(task.factors)] if len(task.factors) > 1 else [*grid_sizes(task.factors), 1],
        "image": list(task.image_shape[1:]),
        "scale": scale(truth),
        "truth": packed_pixels(truth, scale(truth)),
        "blank": numbers(run.point_errors.blank_mse),
        "positions": list(task.positions),
    }


def run_data(run: Run, stored_only: bool = False) -> dict[str, Any]:
    """A run's images, errors and layers over the grid."""
    task, spec = run.spec.task, run.spec
    truth, images = run.truth, run.draw()
    heldout, latents = run.split.mask, run.split.latents
    trained = trained_on(run, heldout)
    index = grid_index(latents, task.factors)
    prediction, match = predicted(run)
    errors = run.point_errors
    notes = []
    if task.image_shape[0] > 1:
        notes.append(f"images are shown as the mean of their {task.image_shape[0]} channels")
    if clipped := outside(images, scale(truth)):
        notes.append(f"{clipped} pixels lie further than {BEYOND:g} ranges outside the truth's and are cut there")
    diagnosis, problem = diagnosed(run, stored_only)
    notes += [f"no layers to show: {problem}"] if problem else []
    return {
        "id": spec.run_id,
        "about": about(run),
        "numbers": {name: run.error.get(name) for name in ("seen_mse", "heldout_mse", "blank_mse", "accuracy")},
        "heldout": packed(heldout.numpy().astype(np.uint8)),
        "trained": packed(trained.numpy().astype(np.uint8)),
        "nearest": packed(nearest(index, trained, run).numpy().astype(np.int32)),
        "outputs": packed_pixels(images, scale(truth)),
        "error": numbers(errors.mse),
        "errors": [errors.mse.min().item(), max(errors.mse.max().item(), errors.blank_mse.max().item())],
        "position_error": None if errors.position_error is None else numbers(errors.position_error),
        "prediction": prediction,
        "match": match,
        "layers": [] if diagnosis is None else [layer_data(layer, heldout) for layer in diagnosis.layers.values()],
        "notes": notes,
    }


def about(run: Run) -> str:
    """The image's size, the hole and the seed."""
    _, height, width = run.spec.task.image_shape
    return f"{height} x {width} pixels, {run.spec.holdout!r} held out, seed {run.spec.seed}"


def trained_on(run: Run, heldout: Bool[Tensor, "n"]) -> Bool[Tensor, "n"]:
    """Which grid points the training set contains; all seen ones where it was drawn between the points of the grid."""
    spec = run.spec
    latents = training_latents(spec.task, spec.holdout, spec.sampling, spec.seed)
    index = grid_index(latents[~absent(latents).any(1)], spec.task.factors)
    if (index < 0).any():
        return ~heldout
    sizes = grid_sizes(spec.task.factors)
    mask = torch.zeros(sizes, dtype=torch.bool)
    mask[tuple(index.unbind(1))] = True
    return mask.flatten()


def nearest(index: Tensor, trained: Bool[Tensor, "n"], run: Run) -> Tensor:
    """For each point the row of the trained point the fewest grid steps away, the first of several; -1 if none."""
    rows = trained.nonzero()[:, 0]
    if not len(rows):
        return torch.full((len(index),), -1)
    factors = run.spec.task.factors
    steps = [grid_steps(chunk, index[rows], factors).argmin(1) for chunk in index.split(1024)]
    return rows[torch.cat(steps)]


def predicted(run: Run) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """A prediction from what was seen, and its correlation with what is drawn: a sum of parts, or of a gap's two edges.

    An image is `base + sign * sum of parts[i].images[parts[i].rows[point]]`; -1 where there is no prediction.
    """
    task, heldout = run.spec.task, run.split.mask
    index = grid_index(run.split.latents, task.factors)
    foregrounds = task.foreground(run.draw())
    if len(task.factors) > 1:
        name, rows = "Superposition", list(index.unbind(1))
        # A diagonal of the grid has every value of all factors, so its parts are all there are.
        sizes = grid_sizes(task.factors)
        steps = torch.arange(max(sizes))
        diagonal = combination_numbers(torch.stack([steps.clamp(max=size - 1) for size in sizes], 1), sizes)
        parts = [part[: factor.size] for part, factor in zip(run.parts_alone(diagonal), task.factors, strict=True)]
    elif differentiable(task.factors) and heldout.any():
        name = "Blend of the edges"
        truth, latents = task.foreground(run.truth), run.split.latents
        parts = [edge_blend(truth, latents, heldout, task.factors, task.factors[0].name)]
        rows = [torch.where(heldout, heldout.cumsum(0) - 1, -1)]
    else:
        return None, None
    complete = torch.stack(rows).amin(0) >= 0
    total = torch.stack([part[row[complete]] for part, row in zip(parts, rows, strict=True)]).sum(0)
    match = torch.full((len(index),), torch.nan, dtype=torch.float64)
    match[complete] = shape_correlation(foregrounds[complete], total)
    packs = [
        {"rows": packed(row.numpy().astype(np.int32)), "images": packed_pixels(part, scale(part))}
        for part, row in zip(parts, rows, strict=True)
    ]
    # The page adds one value to every pixel: of a coloured background, its mean.
    base = torch.as_tensor(task.background).float().mean().item()
    return {"name": name, "base": base, "sign": -1 if task.dark else 1, "parts": packs}, numbers(match)


def diagnosed(run: Run, stored_only: bool = False) -> tuple[Diagnosis | None, str]:
    """The diagnosis, or why there is none."""
    try:
        diagnosis = run.artifacts.diagnosis() if stored_only else run.diagnosis
    except ComposcopeError as error:
        return None, str(error)
    return diagnosis, "" if diagnosis else "the run is not diagnosed"


def layer_data(layer: LayerDiagnosis, heldout: Bool[Tensor, "n"]) -> dict[str, Any]:
    """log10 of a layer's volume element over the grid, its mean over seen points, and the most variable units' maps."""
    data: dict[str, Any] = {
        "name": layer.name,
        "shape": " x ".join(map(str, layer.shape)),
        "volume": None,
        "tuning": None,
    }
    if layer.geometry is not None and len(layer.geometry.volume) == len(heldout):
        volumes = layer.geometry.volumes
        logs = layer.geometry.volume.double().clamp(min=volumes.floor).log10()
        data["volume"] = {**numbers(logs), "centre": logs[~heldout].mean().item(), "gap": volumes.gap}
    if layer.tuning is not None:
        maps = layer.tuning.maps.flatten(1)
        low, high = maps.amin(1, keepdim=True), maps.amax(1, keepdim=True)
        flat = ((maps - low) / (high - low).clamp(min=1e-12)).nan_to_num(0)
        ranges = torch.cat([low, high], 1).double().nan_to_num(0).tolist()
        units = layer.tuning.shown.tolist()
        data["tuning"] = {"units": units, "ranges": ranges, "maps": packed(levels(flat, 0, 1))}
    return data


def scale(images: Images) -> list[float]:
    """0 to 1, or as far beyond as the pixels go."""
    return [min(0.0, images.min().item()), max(1.0, images.max().item())]


def outside(images: Images, ends: Sequence[float]) -> int:
    """How many pixels lie too far outside a range to be kept."""
    low, high = ends
    room = BEYOND * (high - low)
    return int(((images < low - room) | (images > high + room)).sum())


def packed_pixels(images: Images, ends: Sequence[float]) -> dict[str, Any]:
    """Images as bytes, with the values of the first and the last level; 255 is no value."""
    low, high = ends
    room = BEYOND * (high - low)
    pixels: Pixels = images.float().mean(1)
    least = max(min(low, pixels.min().item()), low - room)
    most = min(max(high, pixels.max().item()), high + room)
    return {**packed(levels(pixels, least, most)), "low": least, "high": most}


def numbers(values: Tensor) -> dict[str, Any]:
    """One number per point."""
    return packed(values.numpy().astype(np.float32))
