"""A finished run, opened."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from composcope.diagnosis import Diagnosis, diagnose
from composcope.diagnosis.errors import PointErrors, mean_errors, mean_over, point_errors
from composcope.diagnosis.points import grid_split
from composcope.diagnosis.superposition import code_columns, parts_alone
from composcope.errors import BadInput, CannotStore
from composcope.factors import Latents
from composcope.holdouts import Split
from composcope.randomness import seeded
from composcope.runs.spec import Spec
from composcope.store.checked_files import Damaged, TooNew
from composcope.store.measure_files import DIAGNOSIS_VERSION
from composcope.store.store import Store
from composcope.tasks.base import Images
from composcope.training import Trained, Weights

if TYPE_CHECKING:
    import pandas as pd

    from composcope.runs.drawing import Axes

log = logging.getLogger(__name__)

# Measures made at the end of every run, with the version of their definition.
VERSIONS = {"error": 2}  # 2: a table's background is learned or given
# Of the verdict that is stored by itself: that of the diagnosis.
VERDICT_VERSION = DIAGNOSIS_VERSION


class Run:
    """A finished run, opened: everything is read or computed when it is first used, and then kept.

    - `store`: where the run is; None for a run that is only in memory, of which `trained` and `provenance` are given.

    >>> import composcope as cs
    >>> spec = cs.Spec(cs.BumpTask(8), cs.Square(2, 5), cs.Bump(), cs.MLP(depth=1), training=cs.Training(steps=2))
    >>> run = cs.run(spec)
    >>> tuple(run.draw().shape), len(run.split.heldout)
    ((64, 1, 8, 8), 16)
    """

    def __init__(
        self,
        spec: Spec,
        store: Store | None = None,
        *,
        trained: Trained | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> None:
        self.spec, self.store = spec, store
        self._trained, self._provenance = trained, provenance

    def __repr__(self) -> str:
        return f"Run({self.run_id}, {self.store or 'in memory'})"

    @property
    def run_id(self) -> str:
        return self.spec.run_id

    # What training left

    @cached_property
    def weights(self) -> Weights:
        return self._trained.weights if self._trained else self._stored.weights(self.run_id)

    @cached_property
    def curve(self) -> "pd.DataFrame":
        """The loss by epoch."""
        import pandas as pd

        return pd.DataFrame(self._trained.curve) if self._trained else self._stored.curve(self.run_id)

    @cached_property
    def snapshots(self) -> Mapping[int, Weights]:
        """The weights after the steps named in `training.snapshots`."""
        if self._trained:
            return self._trained.snapshots
        return {step: self._stored.weights(self.run_id, step) for step in self.spec.training.snapshots}

    @cached_property
    def provenance(self) -> Mapping[str, Any]:
        """What the numbers may depend on beyond the spec: versions, machine, seconds."""
        return self._stored.provenance(self.run_id) if self._provenance is None else self._provenance

    @property
    def seconds(self) -> float:
        """How long training took by the clock."""
        return float(self.provenance["seconds"])

    @property
    def cpu_seconds(self) -> float | None:
        """The CPU time of training; None for a run of an earlier version, which did not measure it."""
        value = self.provenance.get("cpu_seconds")
        return None if value is None else float(value)

    @property
    def _stored(self) -> Store:
        if self.store is None:
            raise BadInput(f"run {self.run_id} has neither a store nor weights in memory")
        return self.store

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
        chosen = self.split.mask.nonzero()[:, 0] if rows is None else torch.as_tensor(rows, dtype=torch.long)
        columns = code_columns(self.spec.encoding, self.spec.task.factors)
        images = parts_alone(self.draw_codes, self.codes, columns, self.split.mask, chosen)
        return [self.spec.task.foreground(part) for part in images]

    # What was measured

    @cached_property
    def measures(self) -> Mapping[str, Mapping[str, Any]]:
        """Measures by set and name. Those that the store lacks, or has in an older version, are made and stored."""
        if self.store is None:
            return {"error": self._measure_error()}
        if self.store.measures(self.run_id, VERSIONS).keys() == VERSIONS.keys():
            return self.store.measures(self.run_id)
        error = self._measure_error()
        with suppress(CannotStore) if self.store.read_only else nullcontext():
            self.store.save_measures(self.run_id, "error", VERSIONS["error"], error)
        return {**self.store.measures(self.run_id), "error": error}

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
        known = {} if self.store is None else self.store.measures(self.run_id, {"verdict": VERDICT_VERSION})
        if "verdict" in known:
            return known["verdict"]
        found = self.diagnose(only="verdict").verdict
        if found is None:
            raise BadInput(f"run {self.run_id}: nothing is held out, so there is no verdict")
        names = ("kind", "score", "shares", "seen_shares", "factors", "seen_factors")
        values = {name: getattr(found, name) for name in names}
        if self.store is not None:
            with suppress(CannotStore) if self.store.read_only else nullcontext():
                self.store.save_measures(self.run_id, "verdict", VERDICT_VERSION, values)
        return values

    @cached_property
    def point_errors(self) -> PointErrors:
        """The error at every point of the split: of the images, or of the codes if it draws none."""
        return self._drawing_errors() if self.draws else self._reading_errors()

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """The stored diagnosis; made, and stored if there is a store, where there is none that can be read."""
        if self.store is None:
            return self.diagnose()
        try:
            if self.store.has_diagnosis(self.run_id):
                return self.store.diagnosis(self.run_id)
        except TooNew:
            raise
        except Damaged:  # a diagnosis can be made again at any time, so damage to one is not an error
            pass
        diagnosis = self.diagnose()
        with suppress(CannotStore) if self.store.read_only else nullcontext():
            self.store.save_diagnosis(self.run_id, diagnosis)
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

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Held-out images, true above drawn; of seen ones if nothing is held out. Returns the matplotlib axes."""
        from composcope.runs.display import shown_rows
        from composcope.runs.drawing import draw_images

        rows = shown_rows(self)
        labels = [", ".join(f"{value:g}" for value in point) for point in self.split.latents[rows].tolist()]
        return draw_images(self.truth[rows], self.draw()[rows], labels, ax)

    def _repr_html_(self) -> str:
        from composcope.runs.display import run_html

        return run_html(self)

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


Result = Run
"""The name of a finished run in earlier versions."""


def load(store: Store, run_id: str) -> Run:
    """A stored run, after a check that none of its files is damaged; its error is measured if it was not."""
    store.verify(run_id)
    opened = Run(store.spec(run_id), store)
    _ = opened.measures
    return opened


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
