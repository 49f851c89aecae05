"""Readers that are trained and tested, ready for any number of generators of the same images."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from composcope.errors import BadInput
from composcope.holdouts import GivenHoldout, split
from composcope.readers.clock import Clock, OnProgress
from composcope.readers.factor_readers import GivenReader, OwnReader, Reading
from composcope.readers.likeness import Likeness, train_likeness
from composcope.readers.testing import tested_own, tested_readers
from composcope.tasks.examples import Examples
from composcope.verdict.by_readers import Tested
from composcope.verdict.readings import Readings


@dataclass(frozen=True, repr=False)
class Readers:
    """A reader of every factor, a network that knows real images, and how both do on real images.

    - `heldout`, `examples`: what they were made for: which combinations are held out, and a checksum of the images.
    """

    reader: Reading
    likeness: Likeness
    tested: Tested
    heldout: Bool[Tensor, "combinations"]
    examples: str

    def check(self, task: Examples, heldout: Bool[Tensor, "combinations"]) -> None:
        """BadInput unless they were made for these images and this holdout."""
        if self.examples != task.checksum or not torch.equal(self.heldout, heldout):
            raise BadInput("reader: these readers were trained for other examples, or for another holdout")

    def __repr__(self) -> str:
        return f"Readers(tested on {self.tested.rests_on})"


def train_readers(
    task: Examples,
    holdout: GivenHoldout,
    *,
    reader: GivenReader | None = None,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Readers:
    """Readers for several diagnoses: `diagnose(..., task=examples, reader=train_readers(examples, holdout))`.

    `diagnose` trains them itself where it is not given any, which takes longer than to draw from a small generator.

    - `reader`: your own classifier of the factors; the network that knows real images is trained all the same.
    """
    return ready(task, split(task, holdout).mask, reader, seed, Clock(on_progress))


def ready(
    task: Examples, heldout: Bool[Tensor, "combinations"], reader: GivenReader | None, seed: int, clock: Clock
) -> Readers:
    """The same for a mask over the task's grid."""
    if reader is None:
        made = tested_readers(task, heldout, seed, clock.part("readers"))
    else:
        made = tested_own(OwnReader(reader, task.factors), task, heldout)
    in_hole = heldout[task.combination]
    fresh = ~made.trained & ~in_hole
    fresh = fresh if int(fresh.sum()) > 1 else ~in_hole
    likeness = train_likeness(
        task.images[made.trained],
        task.index[made.trained],
        task.images[~in_hole],
        task.images[fresh],
        seed,
        clock.part("likeness"),
    )
    rows = made.rows
    readings = Readings(task.index[rows], made.read, likeness(task.images[rows])[0], task.combination[rows])
    tested = Tested(readings, made.rests_on, made.by_combination, made.widened)
    return Readers(made.reader, likeness, tested, heldout, task.checksum)
