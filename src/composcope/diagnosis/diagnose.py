"""Does this decoder compose, and why? The whole set of measures for any module that turns codes into images."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn

from composcope.activations import (
    Decode,
    Encode,
    Inputs,
    Pick,
    Subject,
    adapted,
    code_tangents,
    encoded,
    flat_encoding,
)
from composcope.activations.adapters import Adapted, Layout
from composcope.diagnosis.classifying import outputs_and_errors, randomness, verdict_of
from composcope.diagnosis.diagnosis import Diagnosis
from composcope.diagnosis.errors import error_report
from composcope.diagnosis.generators import diagnose_generator
from composcope.diagnosis.layers import LayerDiagnosis, chosen_units, diagnose_layers, differentiated
from composcope.diagnosis.points import (
    MAX_COMBINATIONS,
    MAX_PAIRED,
    Notes,
    Points,
    checked_split,
    points_of,
    samples_of,
)
from composcope.diagnosis.quantities import Material, image_quantities, layer_quantities, measured
from composcope.diagnosis.structure import complexities, kernel_report, no_kernels
from composcope.diagnosis.superposition import code_columns, inferred_columns, superposition_report
from composcope.encodings import Encoding
from composcope.errors import BadInput
from composcope.factors import Factor
from composcope.holdouts import GivenHoldout
from composcope.measures.geometry import differentiable
from composcope.measures.grid import grid_sizes
from composcope.readers import GivenReader, Readers
from composcope.tasks.base import Task
from composcope.tasks.examples import Examples
from composcope.verdict.references import rendered

OnProgress = Callable[[int, int], None]


def diagnose(
    module: Decode,
    task: Task,
    holdout: GivenHoldout,
    encoding: Encode,
    *,
    inputs: Inputs = "code",
    pick: Pick = None,
    layers: Sequence[str] | None = None,
    untrained: nn.Module | None = None,
    geometry: Literal["exact", "differences", "both"] = "exact",
    device: str | torch.device | None = None,
    seed: int = 0,
    memory_mb: float = 600,
    most_points: int = MAX_PAIRED,
    on_progress: OnProgress | None = None,
    draws: int = 1,
    only: Literal["verdict"] | None = None,
    reader: GivenReader | Readers | None = None,
    n_samples: int = 32,
) -> Diagnosis:
    """Measure a decoder over the task's grid, part of which was held out.

    - `module`: codes (n, code) -> images (n, channels, height, width): a module, a method of one, or any function. Its
      modes and weights are left as they are.
    - `holdout`: a `Holdout`, a mask over `task.grid()`, a list of its rows, or a function (see `as_holdout`).
    - `encoding`: an `Encoding`, or a function of the latents (n, factors) that returns codes: a tensor (n, code) or
      (n, slots, d), or a tuple or dict of tensors, which the module gets as arguments or as a dict.
    - `inputs`: what the module takes of an `Encoding`: one "code"; one argument for each of the "factors", or by name
      as "keywords"; a "dict"; or "slots", codes of shape (n, factors, d).
    - `pick`: which entry of a tuple or dict output is the image: a number, a key or a function.
    - `layers`: names of the layers to measure, all by default. `untrained`: a twin of the module, as a control.
    - `geometry`: "differences" on the grid instead of exact derivatives; also used where these do not exist. "both": in
      addition, so that each layer also has `differences`.
    - `device`: where to run a copy of the module; by default the module itself, where it is.
    - `seed`: of shuffles, folds and samples. `memory_mb`: bound on images and activations held at a time, in megabytes;
      of a grid whose images do not fit, some points are drawn, and a note says how many.
    - `most_points`: measures that compare all pairs of points (kernels, probes) use at most this many of them.
    - `on_progress`: called with the steps done and their number.
    - `draws`: images per combination of a module that is random, from one generator; the verdict is over all of them.
    - `only`: "verdict" leaves out everything but the verdict and the errors, in little more than the images' time.

    Where the task is `Examples`, there is no true image to compare with. Then `n_samples` images of each combination
    are drawn, and readers say which values they show: small networks trained on the examples. The encoding may return
    any conditions, such as a list of strings. Layers are not measured. Of the other arguments `inputs`, `pick`,
    `device`, `seed` and `on_progress` apply, the last with seconds gone and expected.

    - `reader`: readers from `train_readers`, or your own classifier: images -> for each factor the scores of its
      values, as a dict or in the factors' order.

    >>> import composcope as cs
    >>> task = cs.BumpTask(8)
    >>> module = cs.MLP(depth=1, width=16).build(code_sizes=(8, 8), image_shape=(1, 8, 8))
    >>> diagnosis = diagnose(module, task=task, holdout=cs.Square(2, 5), encoding=cs.Bump())
    >>> list(diagnosis.layers)
    ['code', 'hidden1', 'image']
    """
    if isinstance(task, Examples):
        if draws != 1:
            raise BadInput(f"draws = {draws}: of Examples n_samples says how many images of a combination are drawn")
        return diagnose_generator(
            module,
            task,
            holdout,
            encoding,
            inputs=inputs,
            pick=pick,
            reader=reader,
            n_samples=n_samples,
            device=device,
            seed=seed,
            on_progress=on_progress,
        )
    if reader is not None:
        raise BadInput("reader: the task has one true image of each combination, so readers are for Examples only")
    if only not in (None, "verdict") or draws < 1:
        raise BadInput(f"only = {only!r}, draws = {draws}: only may be 'verdict', and draws must be at least 1")
    memory = int(memory_mb * 2**20)
    rng = torch.Generator().manual_seed(seed)
    parts = checked_split(task, holdout)
    points = points_of(task, parts, most_points, rng, _most_drawn(task, memory, draws))
    codes, layout = encoded(encoding, points.latents, points.factors, inputs)
    decoder = adapted(module, layout)
    columns = _column_names(layout, encoding, codes, points)
    subject = Subject(decoder, codes, pick, layers, device, columns)
    _check_shape(subject, codes, task)
    twin = None if untrained is None else Subject(adapted(untrained, layout), codes, pick, layers, device, columns)
    random = randomness(subject, codes, draws)
    subject.random = bool(random)
    outputs, each = outputs_and_errors(subject, codes, task, points, draws, structural=only is None)
    truth = rendered(lambda rows: task.foreground(task.render(points.latents[rows]).float()), len(codes), memory / 4)
    verdict, verdict_notes = verdict_of(task, outputs, truth, points, seed, memory)
    if random and verdict is not None and verdict.spread is not None:
        random += f"; its score has a standard deviation of {verdict.spread:.3f} over draws"
    error, error_notes = error_report(task, each, points)
    notes = {"random outputs": random} if random else {}
    if points.sampled:
        notes["combinations"] = (
            f"{len(codes)} of the {len(parts.latents)} combinations, drawn at random together with their neighbours, "
            f"are measured: more images do not fit into memory_mb = {memory_mb:g}, or take too long"
        )
    diagnosis = Diagnosis(
        factors=tuple(factor.name for factor in points.factors),
        sizes=grid_sizes(points.factors),
        points=len(parts.latents),
        heldout=int(parts.mask.sum()),
        certificate=str(parts.certificate),
        verdict=verdict,
        error=error,
        superposition=None,
        kernels=no_kernels(),
        complexity=None,
        layers={},
        notes=notes | verdict_notes | error_notes,
        samples=samples_of(
            task, points.split, lambda latents: subject.images(encoded(encoding, latents, points.factors, inputs)[0])
        ),
    )
    if only == "verdict":
        return diagnosis
    superposition, superposition_notes = superposition_report(
        lambda chosen: task.foreground(subject.images(chosen)),
        codes,
        _columns(encoding, codes, points),
        outputs[0],
        truth,
        points,
        rng,
        memory,
    )
    complexity, complexity_notes = complexities(outputs[0], truth, points)
    more = dict(measured(image_quantities(), Material(task, points, outputs[0], truth)))
    compared = outputs[0][points.sample]
    del outputs, truth  # kernels and layers need the memory
    kernels, kernel_notes = kernel_report(task, compared, points, rng)
    del compared
    tangents, geometry_notes = _tangents(flat_encoding(encoding, layout), subject, codes, points, geometry)
    step = _Steps(on_progress, subject, twin, len(differentiated(points)), tangents)
    both = geometry == "both"
    measured_layers = _layers(subject, codes, points, tangents, memory, seed, step, both)
    return replace(
        diagnosis,
        superposition=superposition,
        kernels=kernels,
        complexity=complexity,
        layers=measured_layers,
        untrained=None if twin is None else _layers(twin, codes, points, tangents, memory, seed, step, both),
        notes=diagnosis.notes
        | superposition_notes
        | complexity_notes
        | kernel_notes
        | geometry_notes
        | _layer_notes(decoder, subject, points)
        | ({} if geometry_notes else _by_differences(measured_layers)),
        more=more,
    )


def _most_drawn(task: Task, memory: int, draws: int) -> int:
    """How many points may be drawn so that all draws' images fit into most of the memory."""
    return max(1, min(MAX_COMBINATIONS, int(0.85 * memory / (4 * math.prod(task.image_shape) * draws))))


def _layer_notes(decoder: nn.Module, subject: Subject, points: Points) -> Notes:
    """Which layers are not measured, or not everywhere."""
    notes = {f"layers.{name}": why for name, why in subject.skipped.items()}
    if isinstance(decoder, Adapted) and decoder.why_no_layers:
        notes["layers"] = decoder.why_no_layers
    if subject.repeated:
        name, calls = max(subject.repeated.items(), key=lambda item: item[1])
        notes["layers.calls"] = (
            f"{len(subject.repeated)} layers are called often ({name} {calls} times, as in a sampler): their last call "
            "is measured"
        )
    total = len(points.latents)
    scored = {layer.name: len(chosen_units(layer.features, total)) for layer in subject.layers.values()}
    many = [name for name, units in scored.items() if units < subject.layers[name].features]
    if many and points.full:
        notes["tuning"] = (
            f"tuning and linear factorization of {', '.join(many)} are of {scored[many[0]]} units each, drawn at random"
        )
    if len(differentiated(points)) < total:
        notes["geometry.points"] = (
            f"derivatives are taken at {len(points.sample)} of the {total} points, drawn at random"
        )
    if not points.whole:
        notes["points"] = (
            f"kernels and probes use {len(points.sample)} of the {len(points.latents)} points, drawn at random"
        )
    if not points.full:
        notes["grid"] = "the points are not the factors' whole grid: tuning and linear factorization are left out"
    return notes


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


def _column_names(layout: Layout, encoding: Encode, codes: Tensor, points: Points) -> str:
    """What the columns of the code are, for the message that a module does not take it."""
    if not layout.plain:
        return f"given as {layout}"
    columns = _columns(encoding, codes, points)
    if columns is None:
        return ""
    return "columns " + ", ".join(_range(factor, own) for factor, own in zip(points.factors, columns, strict=True))


def _range(factor: Factor, own: Tensor) -> str:
    """A factor's columns, as "3-7 for x"."""
    rows = own.nonzero()[:, 0].tolist()
    if not rows:
        return f"none for {factor.name}"
    if rows != list(range(rows[0], rows[-1] + 1)):
        return f"{', '.join(map(str, rows))} for {factor.name}"
    return f"{rows[0]}-{rows[-1]} for {factor.name}" if len(rows) > 1 else f"{rows[0]} for {factor.name}"


def _check_shape(subject: Subject, codes: Tensor, task: Task) -> None:
    shape = tuple(subject.images(codes[:1]).shape[1:])
    if shape != tuple(task.image_shape):
        raise BadInput(
            f"the task's images have shape {tuple(task.image_shape)}; the module's have {shape}"
            " (pick may be a function that reshapes)"
        )


def _tangents(
    encoding: Encode, subject: Subject, codes: Tensor, points: Points, geometry: str
) -> tuple[Tensor | None, Notes]:
    """The codes' derivatives, if exact geometry is requested and possible; otherwise a note says why not."""
    axes = differentiable(points.factors)
    if not axes:
        return None, {"geometry": "no factor has distances: there is no derivative"}
    reason = "as requested"
    if geometry in ("exact", "both"):
        tangents = code_tangents(encoding, points.latents, points.factors, axes)
        if isinstance(tangents, Tensor):
            tangents = tangents.cpu()
            problem = subject.differentiates(codes, tangents)
            if problem is None:
                return tangents, {}
            reason = f"the module has no forward-mode derivative ({problem})"
        else:
            reason = tangents
    where = f"by differences on the grid: {reason}" if points.full else f"none: no whole grid, {reason}"
    return None, {"geometry": where}


def _columns(encoding: Encode, codes: Tensor, points: Points) -> list[Tensor] | None:
    """For each factor, which code units are its own; None if they cannot be told apart."""
    if isinstance(encoding, Encoding):
        return code_columns(encoding, points.factors)
    return inferred_columns(codes, points.latents, points.factors)


def _by_differences(layers: Mapping[str, LayerDiagnosis]) -> Notes:
    """Which layers were measured by differences though the others were not."""
    names = ", ".join(
        name for name, layer in layers.items() if layer.geometry and layer.geometry.method == "differences"
    )
    if not names:
        return {}
    return {"geometry": f"by differences on the grid in {names}: the exact derivative is 0 or not finite there"}
