"""A callable for any training loop that records the verdict as training goes on."""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composcope.activations import Decode, Encode, Inputs, Pick
from composcope.diagnosis.diagnose import diagnose
from composcope.errors import BadInput
from composcope.files import write_atomically
from composcope.holdouts import GivenHoldout
from composcope.tasks.base import Task
from composcope.verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Moment:
    """The verdict at one moment of training, beside the errors."""

    step: float
    verdict: Verdict
    seen_mse: float
    heldout_mse: float

    def numbers(self) -> dict[str, float]:
        """Every number by name, as loggers take them: "score", "share/superposer", "factor/x", "seen factor/x", ..."""
        verdict = self.verdict
        values = {"seen_mse": self.seen_mse, "heldout_mse": self.heldout_mse}
        if verdict.score is not None:
            values["score"] = verdict.score
        values |= {f"share/{name}": share for name, share in verdict.shares.items()}
        values |= {f"seen share/{name}": share for name, share in verdict.seen_shares.items()}
        values |= {f"factor/{name}": share for name, share in verdict.factors.items()}
        return values | {f"seen factor/{name}": share for name, share in verdict.seen_factors.items()}


@dataclass
class Monitor:
    """Call it with the decoder in a training loop; every so many calls it classifies the held-out combinations.

    - `task`, `holdout`, `encoding`, `inputs`, `pick`: as in `cs.diagnose`.
    - `every`: classify on the first call and then on every so many; other calls cost nothing.
    - `log`: called with the numbers and `step=`, for example `wandb.log`.
    - `memory_mb`: bounds the images drawn at a time; of a larger grid some points are drawn.

    The decoder's mode, weights and random state are left as they are.

    >>> import composcope as cs
    >>> monitor = Monitor(cs.BumpTask(8), cs.Square(2, 5), cs.Bump(), every=10)
    >>> module = cs.MLP(depth=1, width=16).build(code_sizes=(8, 8), image_shape=(1, 8, 8))
    >>> for step in range(25):
    ...     _ = monitor(module)
    >>> [moment.step for moment in monitor.moments]
    [0, 10, 20]
    """

    task: Task
    holdout: GivenHoldout
    encoding: Encode
    every: int = 1
    inputs: Inputs = "code"
    pick: Pick = None
    log: Callable[..., Any] | None = None
    memory_mb: float = 200
    seed: int = 0
    moments: list[Moment] = field(default_factory=list)
    calls: int = 0

    def __post_init__(self) -> None:
        if self.every < 1:
            raise BadInput(f"every = {self.every}: at least 1 is needed")

    def __call__(self, module: Decode, step: float | None = None) -> Moment | None:
        """Classify the held-out images if it is time, and return the moment, else None.

        - `step`: what the moment is called, by default the number of calls so far.
        """
        number, self.calls = self.calls, self.calls + 1
        if number % self.every:
            return None
        diagnosis = diagnose(
            module,
            self.task,
            self.holdout,
            self.encoding,
            inputs=self.inputs,
            pick=self.pick,
            memory_mb=self.memory_mb,
            seed=self.seed,
            only="verdict",
        )
        if diagnosis.verdict is None or diagnosis.error.seen_mse is None or diagnosis.error.heldout_mse is None:
            raise BadInput(f"{self.holdout} holds out nothing: there is no verdict to watch")
        moment = Moment(
            number if step is None else step, diagnosis.verdict, diagnosis.error.seen_mse, diagnosis.error.heldout_mse
        )
        self.moments.append(moment)
        if self.log is not None:
            self.log(moment.numbers(), step=moment.step)
        return moment

    def on_epoch(self, row: Mapping[str, float], module: Decode) -> None:
        """For `cs.run(spec, on_epoch=monitor.on_epoch)` and `cs.train`: called after every epoch."""
        self(module, step=row["epoch"])

    def on_step(self, step: int, module: Decode) -> None:
        """For `cs.run(spec, on_step=monitor.on_step)` and `cs.train`: called after every step."""
        self(module, step=step)

    def frame(self) -> "pd.DataFrame":
        """One row per moment: its step, what the decoder does, and every number."""
        import pandas as pd

        rows = [
            {"step": moment.step, "kind": moment.verdict.kind, "score": math.nan, **moment.numbers()}
            for moment in self.moments
        ]
        return pd.DataFrame(rows)

    def plot(self, path: str | os.PathLike[str] | None = None, title: str = "") -> Any:
        """A matplotlib figure of what held-out images show over training, the score and each factor.

        It is written to a PNG file if a path is given.
        """
        from composcope.monitor.drawing import drawn
        from composcope.study.drawing import as_bytes, style

        if not self.moments:
            raise BadInput("the monitor has not been called yet: there is nothing to plot")
        with style():
            figure = drawn(self.moments, title)
            if path is not None:
                write_atomically(Path(path), as_bytes(figure, "png"))
        return figure
