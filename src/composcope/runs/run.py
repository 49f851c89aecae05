"""A finished run, opened."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from composcope.diagnosis import Diagnosis, diagnose
from composcope.diagnosis.errors import PointErrors, mean_errors, mean_over, point_errors
from composcope.diagnosis.points import grid_split
from composcope.diagnosis.summary import headline, score_text
from composcope.diagnosis.superposition import code_columns, parts_alone
from composcope.display import block, images, line, table
from composcope.errors import BadInput, CannotStore, Damaged, TooNew
from composcope.factors import Latents
from composcope.holdouts import Split
from composcope.randomness import seeded
from composcope.runs import DIAGNOSIS_VERSION, ERROR_VERSION
from composcope.runs.spec import Spec
from composcope.tasks.base import Images
from composcope.training import Trained, Weights

if TYPE_CHECKING:
    import pandas as pd

    from composcope.runs.drawing import Axes

Measures = dict[str, dict[str, Any]]
"""What was measured, by the name of the set and of the number."""

SAMPLES = 6  # images in a row


@runtime_checkable
class Artifacts(Protocol):
    """What training left of a run and what was measured since: the run's folder in a store, or `InMemory`.

    - `read_only`: whether measures may be impossible to add.
    """

    @property
    def read_only(self) -> bool: ...
    def weights(self, step: int | None = None) -> Weights: ...
    def curve(self) -> "pd.DataFrame": ...
    def provenance(self) -> Mapping[str, Any]: ...
    def measures(self, versions: Mapping[str, int] | None = None) -> Measures: ...
    def save_measures(self, name: str, version: int, values: Mapping[str, Any]) -> None: ...
    def has_diagnosis(self) -> bool: ...
    def diagnosis(self) -> Diagnosis | None: ...
    def save_diagnosis(self, diagnosis: Diagnosis) -> None: ...
    def verify(self) -> None: ...


@dataclass(frozen=True, repr=False)
class InMemory:
    """The artifacts of a run that is in no store; what is measured is kept by the `Run` alone.

    - `about`: the provenance but for the times.
    """

    trained: Trained
    about: Mapping[str, Any]
    read_only: bool = False

    def __repr__(self) -> str:
        return "in memory"

    def weights(self, step: int | None = None) -> Weights:
        return self.trained.weights if step is None else self.trained.snapshots[step]

    def curve(self) -> "pd.DataFrame":
        import pandas as pd

        return pd.DataFrame(self.trained.curve)

    def provenance(self) -> Mapping[str, Any]:
        return {**self.about, **self.trained.times}

    def measures(self, versions: Mapping[str, int] | None = None) -> Measures:
        return {}

    def save_measures(self, name: str, version: int, values: Mapping[str, Any]) -> None: ...

    def has_diagnosis(self) -> bool:
        return False

    def diagnosis(self) -> Diagnosis | None:
        return None

    def save_diagnosis(self, diagnosis: Diagnosis) -> None: ...

    def verify(self) -> None: ...


class Run:
    """A finished run, opened: everything is read or computed when it is first used, and then kept.

    `cs.run(spec)` returns one, and `store[run_id]` opens a stored one.

    - `artifacts`: where weights and measures are. `weights`: those of a run that was trained just now, which need not
      be read again.

    >>> import composcope as cs
    >>> spec = cs.Spec(cs.BumpTask(8), cs.Square(2, 5), cs.Bump(), cs.MLP(depth=1), training=cs.Training(steps=2))
    >>> run = cs.run(spec)
    >>> tuple(run.draw().shape), len(run.split.heldout)
    ((64, 1, 8, 8), 16)
    """

    def __init__(self, spec: Spec, artifacts: Artifacts | None = None, weights: Weights | None = None) -> None:
        self.spec, self._artifacts = spec, artifacts
        if weights is not None:
            self.weights = weights

    def __repr__(self) -> str:
        return f"Run({self.run_id}, {self._artifacts or 'not trained'})"

    @property
    def run_id(self) -> str:
        return self.spec.run_id

    # What training left

    @property
    def artifacts(self) -> Artifacts:
        if self._artifacts is None:
            raise BadInput(f"run {self.run_id} has neither a store nor weights in memory")
        return self._artifacts

    @cached_property
    def weights(self) -> Weights:
        return self.artifacts.weights()

    @cached_property
    def curve(self) -> "pd.DataFrame":
        """The loss by epoch."""
        return self.artifacts.curve()

    @cached_property
    def snapshots(self) -> Mapping[int, Weights]:
        """The weights after the steps named in `training.snapshots`."""
        return {step: self.artifacts.weights(step) for step in self.spec.training.snapshots}

    @cached_property
    def provenance(self) -> Mapping[str, Any]:
        """What the numbers may depend on beyond the spec: versions, machine, seconds."""
        return self.artifacts.provenance()

    @property
    def seconds(self) -> float:
        """How long training took by the clock."""
        return float(self.provenance["seconds"])

    @property
    def cpu_seconds(self) -> float | None:
        """The CPU time of training; None if it was not measured."""
        value = self.provenance.get("cpu_seconds")
        return None if value is None else float(value)

    # The trained network

    @cached_property
    def module(self) -> nn.Module:
        """The trained module, in eval mode on the CPU."""
        module = build(self.spec)
        module.load_state_dict(self.weights)
        return module.eval()

    @property
    def drawer(self) -> nn.Module:
        """The part of the module that draws images from codes; BadInput if it draws none."""
        return drawing_part(self.spec, self.module)

    @property
    def reader(self) -> nn.Module | None:
        """The part of the module that reads codes from images, None unless it is a control that does."""
        return self.spec.decoder.reader(self.module)

    @property
    def draws(self) -> bool:
        """Whether it draws images at all."""
        return self.spec.decoder.drawer(self.module) is not None

    # Over the grid

    @cached_property
    def split(self) -> Split:
        """The task's combinations in grid order, and which of them are held out."""
        return grid_split(self.spec.task, self.spec.holdout)

    @cached_property
    def truth(self) -> Images:
        """The true images, in the order of the split."""
        return self.spec.task.render(self.split.latents)

    @cached_property
    def codes(self) -> Tensor:
        """The codes, in the order of the split."""
        return self.encode(self.split.latents)

    def encode(self, latents: Latents) -> Tensor:
        return self.spec.encoding.encode(latents, self.spec.task.factors)

    def draw(self, latents: Latents | None = None) -> Images:
        """What the decoder draws for these latents; by default for the whole grid, drawn once."""
        return self._images if latents is None else self.draw_codes(self.encode(latents))

    @cached_property
    def _images(self) -> Images:
        return self.draw_codes(self.codes)

    def draw_codes(self, codes: Tensor) -> Images:
        """What the decoder draws for these codes."""
        return outputs(self.drawer, codes)

    @cached_property
    def read(self) -> Tensor:
        """The codes that a control reads from the true images, in the order of the split."""
        if self.reader is None:
            raise BadInput(f"run {self.run_id}: {type(self.spec.decoder).__name__} reads no codes from images")
        return outputs(self.reader, self.truth)

    def parts_alone(self, rows: Sequence[int] | Tensor | None = None) -> list[Images]:
        """D(x_super), D(y_super), ... as foregrounds, for these rows of the split; by default for the held-out ones."""
        selected = self.split.mask.nonzero()[:, 0] if rows is None else torch.as_tensor(rows, dtype=torch.long)
        columns = code_columns(self.spec.encoding, self.spec.task.factors)
        images = parts_alone(self.draw_codes, self.codes, columns, self.split.mask, selected)
        return [self.spec.task.foreground(part) for part in images]

    # What was measured

    @cached_property
    def measures(self) -> Mapping[str, Mapping[str, Any]]:
        """Measures by set and name. The error, which every run has, is measured and stored if it is missing or old."""
        stored = self.artifacts.measures()
        current = {"error": ERROR_VERSION}
        if self.artifacts.measures(current).keys() == current.keys():
            return stored
        error = self._measure_error()
        with self._unless_read_only():
            self.artifacts.save_measures("error", ERROR_VERSION, error)
        return {**stored, "error": error}

    @property
    def error(self) -> Mapping[str, Any]:
        """seen_mse, heldout_mse, blank_mse and, where the task defines positions, seen_accuracy and accuracy.

        A control that reads images has seen_code_mse, heldout_code_mse, seen_code_accuracy and code_accuracy.
        """
        return self.measures["error"]

    @cached_property
    def verdict(self) -> Mapping[str, Any]:
        """The verdict as plain numbers: kind, score, shares, seen_shares, factors and seen_factors; made if missing.

        It takes little more than drawing all images; the diagnosis has it with everything else.
        """
        stored = self.artifacts.measures({"verdict": DIAGNOSIS_VERSION})
        if "verdict" in stored:
            return stored["verdict"]
        verdict = self.diagnose(only="verdict").verdict
        if verdict is None:
            raise BadInput(f"run {self.run_id}: nothing is held out, so there is no verdict")
        names = ("kind", "score", "shares", "seen_shares", "factors", "seen_factors")
        values = {name: getattr(verdict, name) for name in names}
        with self._unless_read_only():
            self.artifacts.save_measures("verdict", DIAGNOSIS_VERSION, values)
        return values

    @cached_property
    def point_errors(self) -> PointErrors:
        """The error at every point of the split: of the images, or of the codes if it draws none."""
        return self._drawing_errors() if self.draws else self._reading_errors()

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """The stored diagnosis; made, and stored if there is a store, where there is none that can be read."""
        try:
            stored = self.artifacts.diagnosis()
        except TooNew:
            raise
        except Damaged:  # a diagnosis can be made again at any time, so damage to one is not an error
            stored = None
        if stored is not None:
            return stored
        diagnosis = self.diagnose()
        with self._unless_read_only():
            self.artifacts.save_diagnosis(diagnosis)
        return diagnosis

    def measure(self, on_progress: Callable[[int, int], None] | None = None) -> Diagnosis:
        """Diagnose the run anew and store the diagnosis with it."""
        diagnosis = self.diagnose(on_progress)
        self.artifacts.save_diagnosis(diagnosis)
        return diagnosis

    def diagnose(
        self,
        on_progress: Callable[[int, int], None] | None = None,
        draws: int = 1,
        only: Literal["verdict"] | None = None,
        **options: Any,
    ) -> Diagnosis:
        """Diagnose the run anew, beside the same network before training; the other options are `cs.diagnose`'s."""
        spec = self.spec
        untrained = drawing_part(spec, build(spec))
        diagnosis = diagnose(
            self.drawer,
            spec.task,
            spec.holdout,
            spec.encoding,
            untrained=untrained,
            seed=spec.seed,
            on_progress=on_progress,
            draws=draws,
            only=only,
            # Studies compare the authors' differences with exact derivatives.
            **{"geometry": "both", **options},
        )
        # A diagnosis knows the split alone; a run also knows what it was trained on.
        return replace(diagnosis, certificate=str(spec.certificate))

    # To look at

    def sample_rows(self, count: int = SAMPLES) -> list[int]:
        """Rows of the split, evenly spaced in grid order: of what is held out, or of everything if nothing is."""
        mask = self.split.mask
        rows = (mask if mask.any() else ~mask).nonzero()[:, 0].tolist()
        return list(dict.fromkeys(rows[(2 * part + 1) * len(rows) // (2 * count)] for part in range(count)))

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Held-out images, true above drawn; of seen ones if nothing is held out. Returns the matplotlib axes."""
        from composcope.runs.drawing import draw_images

        rows = self.sample_rows()
        labels = [", ".join(f"{value:g}" for value in point) for point in self.split.latents[rows].tolist()]
        return draw_images(self.truth[rows], self.draw()[rows], labels, ax)

    def _repr_html_(self) -> str:
        """Held-out images, the errors, and the verdict if it was measured."""
        parts = [line(f"Run {self.run_id}", strong=True)]
        if self.draws:
            rows = self.sample_rows()
            which = "held-out" if self.split.mask.any() else "seen"
            true, outputs = (
                each[rows].flip(-2).numpy() for each in (self.truth, self.draw())
            )  # row 0 is at the bottom
            parts += [images(f"{which}, true", true), images("drawn", outputs)]
        if self.artifacts.has_diagnosis() and (verdict := self.diagnosis.verdict):
            parts.append(line(f"Verdict: {headline(verdict)}. {score_text(verdict)}"))
        errors = [
            (name, f"{value:.4g}" if isinstance(value, int | float) else "-") for name, value in self.error.items()
        ]
        counts = f"{len(self.split.heldout)} of {len(self.split.mask)} combinations held out"
        return block(*parts, table(["error", ""], errors), line(counts))

    def _unless_read_only(self) -> AbstractContextManager[None]:
        """Within: a store that this process may only read need not take what was measured."""
        return suppress(CannotStore) if self.artifacts.read_only else nullcontext()

    def _measure_error(self) -> dict[str, float | None]:
        values: dict[str, float | None] = {}
        mask = self.split.mask
        if self.draws:
            values |= mean_errors(self._drawing_errors(), mask)
        if self.reader is not None:
            errors = self._reading_errors()
            values |= {
                "seen_code_mse": mean_over(errors.mse, ~mask),
                "heldout_code_mse": mean_over(errors.mse, mask),
                "seen_code_accuracy": mean_over(errors.placed, ~mask),
                "code_accuracy": mean_over(errors.placed, mask),
            }
        return values

    def _drawing_errors(self) -> PointErrors:
        return point_errors(self.spec.task, self.draw(), self.truth, self.split.latents)

    def _reading_errors(self) -> PointErrors:
        """Of the codes; `placed` says whether the nearest grid point is within a step of the truth."""
        factors, codes = self.spec.task.factors, self.codes
        latents = self.spec.encoding.decode(self.read, factors)
        steps = [
            factor.difference(read, true).abs() / factor.step
            for factor, read, true in zip(factors, latents.unbind(1), self.split.latents.unbind(1), strict=True)
        ]
        placed = (torch.stack(steps) <= 1.001).all(0).double()  # one step, up to rounding
        mse, zeros = ((values - codes).square().mean(1).double() for values in (self.read, torch.zeros_like(codes)))
        return PointErrors(mse, zeros, None, placed)


def build(spec: Spec) -> nn.Module:
    """The spec's module as it is before training, the same for the same seed."""
    with seeded(spec.seed, "initialisation"):
        return spec.decoder.build(spec.encoding.code_sizes(spec.task.factors), spec.task.image_shape)


def drawing_part(spec: Spec, module: nn.Module) -> nn.Module:
    """The part of a spec's module that draws images; BadInput if there is none."""
    part = spec.decoder.drawer(module)
    if part is None:
        raise BadInput(f"run {spec.run_id}: {type(spec.decoder).__name__} draws no images")
    return part


@torch.no_grad()
def outputs(module: nn.Module, inputs: Tensor, chunk: int = 256) -> Tensor:
    """The module's outputs for many inputs, in bounded memory."""
    return torch.cat([module(part) for part in inputs.split(chunk)])
