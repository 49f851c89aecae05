"""Figures 1a to 1c and 5: the set-up, the failure of every code, a plane bent by a decoder."""

import torch
from torch import Tensor

from composcope.diagnosis.errors import Errors
from composcope.encodings import Encoding
from composcope.factors import Latents
from composcope.holdouts import split
from composcope.measures.grid import grid_sizes, on_grid
from composcope.papers.forced_rendering.base import (
    CODES,
    SIZES,
    all_codes,
    bump_and_rate,
    heldout_map,
    spread_rows,
)
from composcope.papers.forced_rendering.codes.drawing import draw_bent_plane, draw_failure, draw_setup
from composcope.runs.run import Run
from composcope.study.evidence import Evidence
from composcope.study.numbers import Numbers, Row, Rows
from composcope.study.panel import Panel
from composcope.study.plan import Plan, Preset, label_of, of_preset, only
from composcope.tasks.bump import BumpTask


def no_runs(preset: Preset) -> Plan:
    """No runs at all."""
    return {}


def setup(evidence: Evidence) -> Numbers:
    """Four points outside the hole and four inside it, their true images, and the codes of one of them."""
    sizes = of_preset(SIZES, evidence.preset)
    size, hole = sizes.size, sizes.hole
    task = BumpTask(size)
    grid = split(task, hole)
    inside = grid.latents[spread_rows(grid.latents, grid.mask, 2)]
    low, middle = hole.lo // 2, size // 2
    high = size - 1 - low
    outside = torch.tensor([[low, high], [high, high], [low, middle], [middle, low]], dtype=inside.dtype)
    points = torch.cat([outside, inside])
    rows: Rows = []
    for name, encoding in CODES.items():
        x, y = _by_factor(encoding, inside[:1], task)
        rows.append({"code": name, "units that encode x": len(x), "units that encode y": len(y), "x": x, "y": y})
    common = {
        "heldout": on_grid(grid.mask, task.factors),
        "points": points,
        "inside": hole.contains(points),
        "images": task.render(points),
        "index": len(outside),  # of the point whose codes are shown
    }
    return Numbers(rows, common=common)


def _by_factor(encoding: Encoding, point: Latents, task: BumpTask) -> tuple[Tensor, Tensor]:
    """The code of one point: the units of x and the units of y."""
    x, y = encoding.encode(point, task.factors)[0].split(encoding.code_sizes(task.factors))
    return x, y


def failure(evidence: Evidence) -> Numbers:
    """The errors of every run; of the first seed the error over the plane and the images of some held-out points."""
    any_run = evidence.any_run
    points = spread_rows(any_run.split.latents, any_run.split.mask)

    def numbers(run: Run) -> Row:
        error = run.diagnosis.error
        return {
            "seen MSE": error.seen_mse,
            "held-out MSE": error.heldout_mse,
            "blank MSE": error.blank_mse,
            "seen within 1 pixel": error.seen_accuracy,
            "held-out within 1 pixel": error.accuracy,
            "held-out correlation": error.heldout_correlation,
            "within 1 pixel beyond 2 steps": accuracy_beyond(error, 2),
            "reach (grid steps)": reach(error),
            "within 1 pixel by distance": error.by_distance["placed"].means,
        }

    def maps(run: Run) -> Row:
        error = run.diagnosis.error
        images = run.spec.task.foreground(run.draw()[points])
        return {"share": error.map / error.maps["blank_mse"], "images": images}

    common = {
        "heldout": heldout_map(any_run),
        "points": any_run.split.latents[points],
        "distances": any_run.diagnosis.error.by_distance["placed"].distances,
    }
    return evidence.numbers("code", numbers, maps, common)


def reach(error: Errors) -> float | None:
    """How far into the hole images are right, in grid steps: the accuracy at each distance, summed over distances.

    A decoder that draws the first two rings right and nothing beyond has 2.
    """
    curve = error.by_distance.get("placed")
    return None if curve is None else curve.means.sum().item()


def accuracy_beyond(error: Errors, steps: float) -> float | None:
    """Accuracy on images more than this many grid steps into the hole; None if there are none."""
    curve = error.by_distance.get("placed")
    if curve is None or not (curve.distances > steps).any():
        return None
    beyond = curve.distances > steps
    return ((curve.means * curve.counts)[beyond].sum() / curve.counts[beyond].sum()).item()


def bent_plane(evidence: Evidence) -> Numbers:
    """The latent plane at the input, halfway and in the image: three principal components over the grid."""
    rows = [row for key in evidence for row in _layer_planes(label_of(key), evidence.first(key))]
    return Numbers(rows, common={"heldout": heldout_map(evidence.any_run)})


def _layer_planes(code: str, run: Run) -> Rows:
    """The code, the layer in the middle of the decoder, and the image; a layer that does not vary is left out."""
    layers = run.diagnosis.layers
    names = list(layers)
    rows: Rows = []
    for name in (names[0], names[len(names) // 2], names[-1]):
        manifold = layers[name].manifold
        if manifold is None or manifold.explained is None:
            continue
        row: Row = {"code": code, "layer": name, "units": int(torch.tensor(layers[name].shape).prod())}
        shares = {f"share of component {i + 1}": share for i, share in enumerate(manifold.explained.float().tolist())}
        coordinates = manifold.coordinates.reshape(*grid_sizes(run.spec.task.factors), 3)
        rows.append({**row, **shares, "coordinates": coordinates})
    return rows


PANELS = (
    Panel(
        "1a",
        "The set-up",
        "Every x and every y is seen, but not the combinations in the square; separate units encode x and y.",
        no_runs,
        setup,
        draw_setup,
        no_claim="it shows the question, not a result",
    ),
    Panel(
        "1b",
        "Bump and one-hot codes",
        "The error over the plane, the held-out square outlined; images drawn there, with a cross at the true "
        "position; how far in from the edge of the hole bumps are still within 1 pixel of it.",
        only(all_codes, "bump", "one-hot"),
        failure,
        draw_failure,
        first_seed="maps and images",
    ),
    Panel(
        "1c",
        "Rate and positional codes",
        "The same with codes in which every unit changes with the value; look at the seen error before judging.",
        only(all_codes, "rate", "positional"),
        failure,
        draw_failure,
        first_seed="maps and images",
    ),
    Panel(
        "5",
        "The latent plane, bent into a layer",
        "The grid of (x, y) in three principal components of a layer: how it folds, and what becomes of the hole.",
        bump_and_rate,
        bent_plane,
        draw_bent_plane,
        no_claim="a sketch in the paper; the claims about geometry rest on figures 2, 11 and 13",
        first_seed="planes",
    ),
)
