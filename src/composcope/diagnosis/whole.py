"""Does this decoder compose, and why? The whole set of measures for any module that turns codes into images."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from composcope.activations import Encode, Pick, Subject, code_tangents
from composcope.diagnosis.layers import LayerDiagnosis, Points, diagnose_layers, factor_columns, sampled
from composcope.diagnosis.outputs import (
    Errors,
    KernelReport,
    SuperpositionReport,
    additive_cross,
    complexities,
    errors,
    kernel_report,
    superposition_report,
)
from composcope.encodings import Encoding
from composcope.errors import BadInput
from composcope.holdouts import Holdout, split
from composcope.measures.complexity import Complexity
from composcope.measures.geometry import differentiable
from composcope.measures.grid import grid_index, grid_sizes
from composcope.oracles import Verdict, verdict, without_background
from composcope.tasks.base import Task

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class Diagnosis:
    """What a decoder does on held-out combinations, and what in it may be the reason.

    - `verdict`: None where nothing is held out; `certificate`: what the split proves of itself.
    - `layers`: by name, from "code" to "image"; `untrained`: the same of an untrained twin, if one was given.
    - `notes`: what could not be measured or was measured another way, and why.
    """

    factors: tuple[str, ...]
    sizes: tuple[int, ...]
    points: int
    heldout: int
    certificate: str
    verdict: Verdict | None
    error: Errors
    superposition: SuperpositionReport | None
    kernels: KernelReport
    complexity: dict[str, Complexity] | None
    layers: dict[str, LayerDiagnosis]
    untrained: dict[str, LayerDiagnosis] | None = None
    notes: dict[str, str] = field(default_factory=dict)

    def summary(self) -> str:
        """The verdict and the reasons as text for a terminal."""
        from composcope.diagnosis.summary import summary

        return summary(self)

    def numbers(self) -> dict[str, Any]:
        """Every single number, by measure: plain data, ready for JSON."""
        from composcope.diagnosis.files import numbers

        return numbers(self)


def diagnose(
    module: nn.Module,
    task: Task,
    holdout: Holdout,
    encoding: Encode,
    *,
    pick: Pick = None,
    layers: Sequence[str] | None = None,
    untrained: nn.Module | None = None,
    geometry: Literal["exact", "differences"] = "exact",
    device: str | torch.device | None = None,
    seed: int = 0,
    memory_mb: float = 600,
    most_points: int = 1024,
    on_progress: OnProgress | None = None,
) -> Diagnosis:
    """Measure a decoder over the task's grid, part of which was withheld from it.

    - `module`: codes (n, code) -> images (n, channels, height, width). Its modes and weights are left as they are.
    - `encoding`: an `Encoding`, or a function latents (n, factors) -> codes (n, code).
    - `pick`: which entry of a tuple or dict output is the image: a number, a key or a function.
    - `layers`: names of the layers to measure, all by default. `untrained`: a twin of the module, as a control.
    - `geometry`: "differences" on the grid instead of exact derivatives; where these do not exist it is so anyway.
    - `device`: where to run a copy of the module; by default the module itself, where it is.
    - `seed`: of shuffles, folds and samples. `memory_mb`: bound on activations held at a time, in megabytes.
    - `most_points`: what compares all pairs of points (kernels, probes) takes at most so many of them.
    - `on_progress`: called with the steps done and their number.

    >>> import composcope as cs
    >>> task = cs.BumpTask(8)
    >>> module = cs.MLP(depth=1, width=16).build(code_sizes=(8, 8), image_shape=(1, 8, 8))
    >>> found = diagnose(module, task=task, holdout=cs.Square(2, 5), encoding=cs.Bump())
    >>> list(found.layers)
    ['code', 'hidden1', 'image']
    """
    notes: dict[str, str] = {}
    memory = int(memory_mb * 2**20)
    rng = torch.Generator().manual_seed(seed)
    points, certificate = _points(task, holdout, most_points, rng)
    codes = _codes(encoding, points)
    subject = Subject(module, codes, pick, layers, device)
    _check_shape(subject, codes, task)
    twin = None if untrained is None else Subject(untrained, codes, pick, layers, device)
    tangents = _tangents(encoding, subject, codes, points, geometry, notes)
    step = _Steps(on_progress, subject, twin, len(codes), tangents)

    images, truth = subject.images(codes), task.render(points.latents).float()
    if not images.isfinite().all():
        broken = int((~images.flatten(1).isfinite()).any(1).sum())
        raise BadInput(f"{broken} of the module's {len(images)} images have pixels that are no finite number")
    outputs, targets = task.foreground(images), task.foreground(truth)
    notes |= {f"layers.{name}": why for name, why in subject.skipped.items()}
    if not points.whole:
        notes["points"] = f"kernels and probes are of {len(points.sample)} of the {len(codes)} points, drawn by seed"
    if not points.full:
        notes["grid"] = "the points are not the factors' whole grid: tuning and linear factorization are left out"
    found = Diagnosis(
        factors=tuple(factor.name for factor in points.factors),
        sizes=grid_sizes(points.factors),
        points=len(codes),
        heldout=int(points.heldout.sum()),
        certificate=certificate,
        verdict=_verdict(task, outputs, targets, points, notes),
        error=errors(task, images, truth, points, notes),
        superposition=superposition_report(
            lambda some: task.foreground(subject.images(some)),
            codes,
            _columns(encoding, codes, points),
            outputs,
            targets,
            points,
            rng,
            notes,
        ),
        kernels=kernel_report(task, outputs, points, rng, notes),
        complexity=complexities(outputs, targets, points, notes),
        layers=diagnose_layers(subject, codes, points, tangents, memory, seed, step),
        untrained=None if twin is None else diagnose_layers(twin, codes, points, tangents, memory, seed, step),
        notes=notes,
    )
    _note_geometry(found, notes)
    return found


class _Steps:
    """Counts chunks of derivatives and layers, and tells how many there are."""

    def __init__(
        self, tell: OnProgress | None, subject: Subject, twin: Subject | None, points: int, tangents: Tensor | None
    ) -> None:
        studied = [one for one in (subject, twin) if one is not None]
        self.tell, self.done = tell, 0
        self.total = sum(len(one.layers) for one in studied)
        if tangents is not None:
            self.total += sum(one.chunks(points, len(tangents)) for one in studied)
        if tell is not None:
            tell(0, self.total)

    def __call__(self) -> None:
        self.done += 1
        if self.tell is not None:
            self.tell(self.done, self.total)


def _points(task: Task, holdout: Holdout, most: int, rng: torch.Generator) -> tuple[Points, str]:
    """The task's points in the grid's order, and the split's certificate."""
    try:
        parts = split(task, holdout)
    except ValueError as error:
        raise BadInput(str(error)) from None
    place = grid_index(parts.latents, task.factors)
    sizes = grid_sizes(task.factors)
    key = torch.zeros(len(place), dtype=torch.long)
    for axis, size in enumerate(sizes):
        key = key * size + place[:, axis]
    order = key.argsort()
    full = len(order) == math.prod(sizes) and bool((place >= 0).all())  # and no combination is there twice
    heldout = parts.mask[order]
    points = Points(parts.latents[order], heldout, tuple(task.factors), full, sampled(heldout, most, rng))
    return points, str(parts.certificate)


def _codes(encoding: Encode, points: Points) -> Tensor:
    if isinstance(encoding, Encoding):
        try:
            return encoding.encode(points.latents, points.factors)
        except ValueError as error:
            raise BadInput(str(error)) from None
    codes = encoding(points.latents.clone())
    if not isinstance(codes, Tensor) or codes.ndim != 2 or len(codes) != len(points.latents):
        shape = tuple(codes.shape) if isinstance(codes, Tensor) else type(codes).__name__
        wanted = f"({len(points.latents)}, code)"
        raise BadInput(
            f"encoding: latents of shape {tuple(points.latents.shape)} need codes of shape {wanted}; it gives {shape}"
        )
    return codes.detach().float().cpu()


def _check_shape(subject: Subject, codes: Tensor, task: Task) -> None:
    shape = tuple(subject.images(codes[:1]).shape[1:])
    if shape != tuple(task.image_shape):
        raise BadInput(
            f"the task's images have shape {tuple(task.image_shape)}; the module gives {shape}"
            " (pick may be a function that reshapes)"
        )


def _tangents(
    encoding: Encode, subject: Subject, codes: Tensor, points: Points, geometry: str, notes: dict[str, str]
) -> Tensor | None:
    """The codes' derivatives, if exact geometry is wanted and possible."""
    axes = differentiable(points.factors)
    if not axes:
        notes["geometry"] = "no factor has distances: there is no derivative"
        return None
    found: Tensor | str = "asked for"
    if geometry == "exact":
        found = code_tangents(encoding, points.latents, points.factors, axes)
        if isinstance(found, Tensor):
            found = found.cpu()
            why = subject.differentiates(codes, found)
            found = found if why is None else f"the module has no forward-mode derivative ({why})"
    if isinstance(found, Tensor):
        return found
    notes["geometry"] = f"by differences on the grid: {found}" if points.full else f"none: no whole grid, and {found}"
    return None


def _columns(encoding: Encode, codes: Tensor, points: Points) -> list[Tensor] | None:
    """For each factor, which code units are its own."""
    if not isinstance(encoding, Encoding):
        return factor_columns(codes, points.latents, points.factors)
    ends = torch.tensor(encoding.code_sizes(points.factors)).cumsum(0)
    unit = torch.arange(codes.shape[1])
    owner = torch.searchsorted(ends, unit, right=True)
    return [owner == axis for axis in range(len(points.factors))]


def _verdict(task: Task, outputs: Tensor, truth: Tensor, points: Points, notes: dict[str, str]) -> Verdict | None:
    if not points.heldout.any():
        notes["verdict"] = "no point is held out"
        return None
    cross = additive_cross(task, points.latents)
    if cross is None:
        notes["verdict.cross"] = f"{task.kind} draws no stripes: there is no additive cross among the oracles"
    scaling = [points.factors[axis].name for axis in _scaling_axes(truth, points)]
    if scaling:
        notes["verdict.scale"] = f"{', '.join(scaling)} only scales the image, and the verdict does not see scale"
    found = verdict(outputs, truth, points.latents, points.heldout, points.factors, cross)
    if found.without_dictionary:
        missing = f"{found.without_dictionary} of {len(found.classes)} held-out points"
        notes["verdict.superposer"] = f"{missing} have no seen point that shares all but one factor's value"
    return found


def _scaling_axes(truth: Tensor, points: Points) -> list[int]:
    """Factors along which images differ in scale alone, judged by the first two points that differ in nothing else."""
    axes = []
    pixels = without_background(truth)
    for axis in range(len(points.factors)):
        others = [place for place in range(len(points.factors)) if place != axis]
        same = (points.latents[:, others] == points.latents[0, others]).all(1).nonzero()[:, 0][:2]
        if len(same) == 2:
            a, b = pixels[same]
            scale = a.norm() * b.norm()
            if scale > 0 and not torch.allclose(a, b) and (a * b).sum() > 0.9999 * scale:
                axes.append(axis)
    return axes


def _note_geometry(found: Diagnosis, notes: dict[str, str]) -> None:
    """Say which layers were measured by differences though the others were not."""
    methods = {name: layer.geometry.method for name, layer in found.layers.items() if layer.geometry}
    stepping = [name for name, method in methods.items() if method == "differences"]
    if stepping and "geometry" not in notes:
        named = ", ".join(stepping)
        notes["geometry"] = f"by differences on the grid in {named}: the exact derivative is 0 or not finite there"
