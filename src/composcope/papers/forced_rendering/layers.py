"""What figures show of networks from layer to layer: probes, factorization, maps of the volume."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.diagnosis.layers import Geometry, LayerDiagnosis, geometry_of, true_geometry
from composcope.measures.geometry import FLOOR, grid_metric
from composcope.measures.grid import on_grid
from composcope.measures.probes import linear_probes
from composcope.papers.forced_rendering.base import CODES, heldout_map
from composcope.runs.run import Run
from composcope.study.evidence import Evidence
from composcope.study.layers import IMAGE, LayerNumber, layer
from composcope.study.numbers import Numbers, Row, Rows
from composcope.study.plan import Key, label_of
from composcope.study.statistics import interval

OTHERS = "other decoders"

# R^2 on the points that the readouts were fitted to, as the authors score them, is 1 for any layer with more units than
# points; cross-validated, on points that they were not fitted to; and on held-out points, fitted on seen ones.
PROBES = {
    "probe R2, in sample": layer("probes.*.in_sample"),
    "probe R2, cross-validated": layer("probes.*.cross_validated"),
    "probe R2, seen to held-out": layer("probes.*.heldout"),
}
# 1 - mean|g_xy| / mean(|g_xx| + |g_yy|) by differences, as the authors' code has it; and the mean over the grid of
# 1 - |g_xy| / (|g_xx| + |g_yy|), as their formula (eq. 7) does.
FACTORIZATION = {
    "factorization, ratio of means": layer("geometry.factorization.ratio_of_means", "differences"),
    "factorization, mean of ratios": layer("geometry.factorization.mean_of_ratios"),
}
GAP = layer("geometry.volume.gap")
GRID_GAP = layer("geometry.volume.gap", "differences")
UNTRAINED = ", untrained"


def network_row(key: Key, run: Run) -> Row:
    """The beginning of a network's row: its key and seed, its group and name there, and its layers.

    A key's attributes `group` and `label_in_group` say where it belongs. A key without a group is one of the other
    decoders and is named with its code: "transformer (bump)".
    """
    group, name = getattr(key, "group", OTHERS), getattr(key, "label_in_group", label_of(key))
    if group == OTHERS:
        codes = [code for code, encoding in CODES.items() if encoding == run.spec.encoding]
        name = f"{label_of(key)} ({', '.join(codes) or run.spec.encoding.kind})"
    return {
        "run": label_of(key),
        "seed": run.spec.seed,
        "group": group,
        "label": name,
        "layers": list(run.diagnosis.layers),
    }


def last_hidden(row: Row) -> int:
    """The index of the last layer before the image."""
    return max(index for index, name in enumerate(row["layers"]) if name != IMAGE)


def profile_rows(evidence: Evidence, measures: Mapping[str, LayerNumber]) -> Rows:
    """Every network's measures by layer, and those of the same network before training."""
    return [
        {
            **network_row(key, run),
            **{name: measure.all_layers(run) for name, measure in measures.items()},
            **{f"{name}{UNTRAINED}": measure.all_layers(run, untrained=True) for name, measure in measures.items()},
        }
        for key, runs in evidence.items()
        for run in runs
    ]


def profiles(evidence: Evidence, measures: Mapping[str, LayerNumber]) -> Numbers:
    """Every network's measures by layer, and each measure of the true images."""
    truth = true_images(evidence.any_run)
    common = {"truth": {name: measure.measure(truth) for name, measure in measures.items()}}
    return Numbers(profile_rows(evidence, measures), common=common)


probes = partial(profiles, measures=PROBES)
factorizations = partial(profiles, measures=FACTORIZATION)
every_profile = partial(profiles, measures={**PROBES, **FACTORIZATION})


def profile_table(numbers: Numbers) -> Rows:
    """One row per network: each measure at the last hidden layer, with its interval, untrained, and by layer."""
    return [_profile_row(numbers, kind) for kind in numbers.kinds]


def _profile_row(numbers: Numbers, kind: str) -> Row:
    network = numbers.of(kind)
    first, last = network[0], last_hidden(network[0])
    row = {"network": f"{first['group']}, {first['label']}", "seeds": len(network), "layers": len(first["layers"])}
    for measure, truth in numbers.common["truth"].items():
        curves, control = numbers.stack(measure, kind), numbers.stack(f"{measure}{UNTRAINED}", kind)
        mean, low, high = map(nan_if_none, interval(curves[:, last].tolist()))
        row |= {f"{measure}: last hidden": mean, f"{measure}: low": low, f"{measure}: high": high}
        row |= {f"{measure}: untrained": control[:, last].mean().item()}
        row |= {f"{measure}: image": curves[:, -1].mean().item(), f"{measure}: true images": truth}
        row |= {f"{measure}: by layer": " ".join(f"{value:.3f}" for value in curves.mean(0))}
    return row


def nan_if_none(value: float | None) -> float:
    """The value, or NaN if there is none."""
    return torch.nan if value is None else value


def true_images(run: Run) -> LayerDiagnosis:
    """The true images as if they were a layer: what a perfect decoder ends with."""
    task, latents, heldout = run.spec.task, run.split.latents, run.split.mask
    probe = linear_probes(run.truth, latents, task.factors, heldout, seed=run.spec.seed)
    geometry = true_geometry(task, latents, heldout)
    differences = geometry_of(grid_metric(run.truth.flatten(1), task.factors), "differences", task.factors, heldout)
    return LayerDiagnosis(
        "true images", "", task.image_shape, geometry, probe, None, None, None, differences=differences
    )


def volumes(evidence: Evidence) -> Numbers:
    """Maps of every network's volume element from the code to the image, and their gap for every seed.

    The maps are of log10 dv minus its mean over seen points; exact and, as the authors take derivatives, by differences
    on the grid. Volumes below the floor count as the floor.
    """
    rows = [
        {
            **network_row(key, run),
            "gap": GAP.all_layers(run),
            "gap, differences": GRID_GAP.all_layers(run),
        }
        for key, runs in evidence.items()
        for run in runs
    ]
    first = {label_of(key): _volume_maps(runs[0]) for key, runs in evidence.items() if runs}
    return Numbers(rows, first, {"heldout": heldout_map(evidence.any_run)})


def _volume_maps(run: Run) -> Row:
    layers = run.diagnosis.layers.values()
    shapes = [layer.geometry for layer in layers]
    present = [shape for shape in shapes if shape is not None]
    seen = [nan_if_none(shape.volumes.seen if shape else None) for shape in shapes]
    return {
        "maps": log_maps(run, shapes),
        "maps, differences": log_maps(run, [layer.differences for layer in layers]),
        "seen": torch.tensor(seen, dtype=torch.float64),
        "floor": present[0].volumes.floor if present else FLOOR,
        "floored": sum(shape.volumes.floored for shape in present),
        "method": " and ".join(sorted({shape.method for shape in present})),
    }


def log_maps(run: Run, shapes: list[Geometry | None]) -> Float[Tensor, "layers x y"]:
    """log10 max(dv, floor) minus its mean over seen points, layer by layer; NaN where a layer has no geometry."""
    return torch.stack([on_grid(_relative_logs(shape, run.split.mask), run.spec.task.factors) for shape in shapes])


def _relative_logs(shape: Geometry | None, heldout: Bool[Tensor, "points"]) -> Float[Tensor, "points"]:
    if shape is None:
        return torch.full((len(heldout),), torch.nan, dtype=torch.float64)
    logs = shape.volume.double().clamp(min=shape.volumes.floor).log10()
    return logs - nan_if_none(shape.volumes.seen)


def volume_table(numbers: Numbers) -> Rows:
    """One row per network: the gap between held-out and seen points at the image, its interval, and by layer."""
    rows: Rows = []
    for kind in numbers.kinds:
        network, shown = numbers.of(kind), numbers.first[kind]
        gaps, grid_gaps = numbers.stack("gap", kind), numbers.stack("gap, differences", kind)
        mean, low, high = map(nan_if_none, interval(gaps[:, -1].tolist()))
        rows.append(
            {
                "network": f"{network[0]['group']}, {network[0]['label']}",
                "seeds": len(network),
                "gap of log10 volume at the image": mean,
                "low": low,
                "high": high,
                "gap by layer": _signed(gaps.mean(0)),
                "gap by layer, differences on the grid": _signed(grid_gaps.mean(0)),
                "mean log10 volume on seen points by layer": " ".join(f"{value:.2f}" for value in shown["seen"]),
                "floor": shown["floor"],
                "points below the floor": shown["floored"],
                "derivatives": shown["method"],
            }
        )
    return rows


def _signed(values: Any) -> str:
    return " ".join(f"{value:+.2f}" for value in values)
