"""Does this decoder compose, and why? The whole set of measures for any module that turns codes into images."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn

from composcope.activations import Encode, Pick, Subject, code_tangents
from composcope.diagnosis.diagnosis import Diagnosis
from composcope.diagnosis.errors import errors
from composcope.diagnosis.judging import drawn_images, judged
from composcope.diagnosis.kernels import kernel_report, no_kernels
from composcope.diagnosis.layers import LayerDiagnosis, diagnose_layers
from composcope.diagnosis.points import Points, checked_split, points_of
from composcope.diagnosis.quantities import Material, image_quantities, layer_quantities, measured
from composcope.diagnosis.structure import complexities
from composcope.diagnosis.superposition import code_columns, inferred_columns, superposition_report
from composcope.encodings import Encoding
from composcope.errors import BadInput
from composcope.holdouts import Holdout
from composcope.measures.geometry import differentiable
from composcope.measures.grid import grid_sizes
from composcope.tasks.base import Task

OnProgress = Callable[[int, int], None]


def diagnose(
    module: nn.Module,
    task: Task,
    holdout: Holdout,
    encoding: Encode,
    *,
    pick: Pick = None,
    layers: Sequence[str] | None = None,
    untrained: nn.Module | None = None,
    geometry: Literal["exact", "differences", "both"] = "exact",
    device: str | torch.device | None = None,
    seed: int = 0,
    memory_mb: float = 600,
    most_points: int = 1024,
    on_progress: OnProgress | None = None,
    draws: int = 1,
    only: Literal["verdict"] | None = None,
) -> Diagnosis:
    """Measure a decoder over the task's grid, part of which was withheld from it.

    - `module`: codes (n, code) -> images (n, channels, height, width). Its modes and weights are left as they are.
    - `encoding`: an `Encoding`, or a function latents (n, factors) -> codes (n, code).
    - `pick`: which entry of a tuple or dict output is the image: a number, a key or a function.
    - `layers`: names of the layers to measure, all by default. `untrained`: a twin of the module, as a control.
    - `geometry`: "differences" on the grid instead of exact derivatives; also used where these do not exist. "both": in
      addition, so that each layer also has `differences`.
    - `device`: where to run a copy of the module; by default the module itself, where it is.
    - `seed`: of shuffles, folds and samples. `memory_mb`: bound on activations held at a time, in megabytes.
    - `most_points`: measures that compare all pairs of points (kernels, probes) use at most this many of them.
    - `on_progress`: called with the steps done and their number.
    - `draws`: images per combination of a module that is random, from one generator; the verdict is over all of them.
    - `only`: "verdict" leaves out everything but the verdict and the errors, in little more than the images' time.

    >>> import composcope as cs
    >>> task = cs.BumpTask(8)
    >>> module = cs.MLP(depth=1, width=16).build(code_sizes=(8, 8), image_shape=(1, 8, 8))
    >>> diagnosis = diagnose(module, task=task, holdout=cs.Square(2, 5), encoding=cs.Bump())
    >>> list(diagnosis.layers)
    ['code', 'hidden1', 'image']
    """
    if only not in (None, "verdict") or draws < 1:
        raise BadInput(f"only = {only!r}, draws = {draws}: only may be 'verdict', and draws must be at least 1")
    notes: dict[str, str] = {}
    memory = int(memory_mb * 2**20)
    rng = torch.Generator().manual_seed(seed)
    parts = checked_split(task, holdout)
    points = points_of(task, parts, most_points, rng)
    codes = _codes(encoding, points)
    subject = Subject(module, codes, pick, layers, device)
    _check_shape(subject, codes, task)
    twin = None if untrained is None else Subject(untrained, codes, pick, layers, device)
    images, truth = drawn_images(subject, codes, draws, notes), task.render(points.latents).float()
    _check_finite(images)
    outputs, targets = [task.foreground(draw) for draw in images], task.foreground(truth)
    brief = Diagnosis(
        factors=tuple(factor.name for factor in points.factors),
        sizes=grid_sizes(points.factors),
        points=len(codes),
        heldout=int(points.heldout.sum()),
        certificate=str(parts.certificate),
        verdict=judged(task, outputs, targets, points, seed, notes),
        error=errors(task, images[0], truth, points, notes, structural=only is None),
        superposition=None,
        kernels=no_kernels(),
        complexity=None,
        layers={},
        notes=notes,
    )
    if only == "verdict":
        return brief
    tangents = _tangents(encoding, subject, codes, points, geometry, notes)
    step = _Steps(on_progress, subject, twin, len(codes), tangents)
    both = geometry == "both"
    notes |= {f"layers.{name}": why for name, why in subject.skipped.items()}
    if not points.whole:
        notes["points"] = f"kernels and probes use {len(points.sample)} of the {len(codes)} points, drawn at random"
    if not points.full:
        notes["grid"] = "the points are not the factors' whole grid: tuning and linear factorization are left out"
    diagnosis = replace(
        brief,
        superposition=superposition_report(
            lambda chosen: task.foreground(subject.images(chosen)),
            codes,
            _columns(encoding, codes, points),
            outputs[0],
            targets,
            points,
            rng,
            notes,
        ),
        kernels=kernel_report(task, outputs[0], points, rng, notes),
        complexity=complexities(outputs[0], targets, points, notes),
        layers=_layers(subject, codes, points, tangents, memory, seed, step, both),
        untrained=None if twin is None else _layers(twin, codes, points, tangents, memory, seed, step, both),
        more=dict(measured(image_quantities(), Material(task, points, outputs[0], targets))),
    )
    _note_geometry(diagnosis, notes)
    return diagnosis


def _check_finite(draws: Sequence[Tensor]) -> None:
    for images in draws:
        if not images.isfinite().all():
            broken = int((~images.flatten(1).isfinite()).any(1).sum())
            raise BadInput(f"{broken} of the module's {len(images)} images have pixels that are not finite")


def _layers(
    subject: Subject,
    codes: Tensor,
    points: Points,
    tangents: Tensor | None,
    memory: int,
    seed: int,
    step: Callable[[], None],
    both: bool,
) -> dict[str, LayerDiagnosis]:
    """Every layer's measures, with those quantities that have no field of their own."""
    layers = diagnose_layers(subject, codes, points, tangents, memory, seed, step, both)
    quantities = layer_quantities([factor.name for factor in points.factors], bool(points.heldout.any()))
    return {name: replace(layer, more=dict(measured(quantities, layer))) for name, layer in layers.items()}


class _Steps:
    """Counts chunks of derivatives and layers, and reports how many are done."""

    def __init__(
        self, report: OnProgress | None, subject: Subject, twin: Subject | None, points: int, tangents: Tensor | None
    ) -> None:
        subjects = [studied for studied in (subject, twin) if studied is not None]
        self.report, self.done = report, 0
        self.total = sum(len(studied.layers) for studied in subjects)
        if tangents is not None:
            self.total += sum(studied.chunks(points, len(tangents)) for studied in subjects)
        if report is not None:
            report(0, self.total)

    def __call__(self) -> None:
        self.done += 1
        if self.report is not None:
            self.report(self.done, self.total)


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
            f"encoding: latents of shape {tuple(points.latents.shape)} need codes of shape {wanted}; it returns {shape}"
        )
    return codes.detach().float().cpu()


def _check_shape(subject: Subject, codes: Tensor, task: Task) -> None:
    shape = tuple(subject.images(codes[:1]).shape[1:])
    if shape != tuple(task.image_shape):
        raise BadInput(
            f"the task's images have shape {tuple(task.image_shape)}; the module's have {shape}"
            " (pick may be a function that reshapes)"
        )


def _tangents(
    encoding: Encode, subject: Subject, codes: Tensor, points: Points, geometry: str, notes: dict[str, str]
) -> Tensor | None:
    """The codes' derivatives, if exact geometry is requested and possible; otherwise a note says why not."""
    axes = differentiable(points.factors)
    if not axes:
        notes["geometry"] = "no factor has distances: there is no derivative"
        return None
    tangents: Tensor | str = "as requested"  # or the reason why there are none
    if geometry in ("exact", "both"):
        tangents = code_tangents(encoding, points.latents, points.factors, axes)
        if isinstance(tangents, Tensor):
            tangents = tangents.cpu()
            problem = subject.differentiates(codes, tangents)
            if problem is None:
                return tangents
            tangents = f"the module has no forward-mode derivative ({problem})"
    notes["geometry"] = f"by differences on the grid: {tangents}" if points.full else f"none: no whole grid, {tangents}"
    return None


def _columns(encoding: Encode, codes: Tensor, points: Points) -> list[Tensor] | None:
    """For each factor, which code units are its own; None if they cannot be told apart."""
    if isinstance(encoding, Encoding):
        return code_columns(encoding, points.factors)
    return inferred_columns(codes, points.latents, points.factors)


def _note_geometry(diagnosis: Diagnosis, notes: dict[str, str]) -> None:
    """Say which layers were measured by differences though the others were not."""
    methods = {name: layer.geometry.method for name, layer in diagnosis.layers.items() if layer.geometry}
    by_differences = ", ".join(name for name, method in methods.items() if method == "differences")
    if by_differences and "geometry" not in notes:
        notes["geometry"] = (
            f"by differences on the grid in {by_differences}: the exact derivative is 0 or not finite there"
        )
