"""Readers that are ready to be used, and their test on real images that they were not trained on."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from composcope.readers.factor_readers import FactorReaders, OwnReader, Reading, train_each
from composcope.readers.networks import OnStep
from composcope.tasks.examples import Examples

TEST = 3  # one of so many images is kept for the test
MIN_TESTED = 10  # images of a value by which a reader is tested
# Times that seen combinations are left out where no real image of a held-out one exists, and by how much intervals are
# then widened: what holds for those left out need not hold for those held out. A convention, and not a theorem.
TURNS, WIDENED = 3, 1.5
TRIES = 60  # places for the hole that are tried at each turn


@dataclass(frozen=True)
class ReadersTested:
    """A reader and what it read in real images.

    - `rows`: the examples that it was tested on; `read`: what it read there. `trained`: those it was trained on.
    - `by_combination`, `widened`, `rests_on`: see `verdict.by_readers.Tested`.
    """

    reader: Reading
    rows: Int[Tensor, "n"]
    read: Int[Tensor, "n factors"]
    trained: Bool[Tensor, "examples"]
    rests_on: str
    by_combination: bool
    widened: float


def tested_readers(task: Examples, heldout: Bool[Tensor, "combinations"], seed: int, on_step: OnStep) -> ReadersTested:
    """Our own readers. The hole restricts the decoder, not the reader: they learn from all real images there are."""
    rng = torch.Generator().manual_seed(seed)
    trained = ~every_third(task.combination, rng)
    held = heldout[task.combination]
    if not held.any():
        return _left_out_in_turn(task, heldout, trained, seed, rng, on_step)
    readers = train_each(task.images[trained], task.index[trained], task.factors, seed, on_step)
    rows, where = _test_rows(task, held, ~trained)
    return ReadersTested(
        readers,
        rows,
        readers(task.images[rows]),
        trained,
        f"{len(rows)} real images {where} that the readers were not trained on",
        False,
        1.0,
    )


def tested_own(reader: OwnReader, task: Examples, heldout: Bool[Tensor, "combinations"]) -> ReadersTested:
    """The user's reader, which may have been trained on any of the images; we cannot know."""
    trained = ~every_third(task.combination, torch.Generator().manual_seed(0))
    held = heldout[task.combination]
    rows, where = _test_rows(task, held, torch.ones_like(held))
    known = bool(held.any())
    text = f"{len(rows)} real images {where}; whether the given reader was trained on them is not known"
    if not known:
        text += f". No real image is of a held-out combination: intervals are {WIDENED:g} times as wide"
    return ReadersTested(reader, rows, reader(task.images[rows]), trained, text, not known, 1.0 if known else WIDENED)


def every_third(combination: Int[Tensor, "n"], rng: torch.Generator) -> Bool[Tensor, "n"]:
    """One of `TEST` images, drawn at random, from all combinations alike."""
    order = torch.randperm(len(combination), generator=rng)
    order = order[combination[order].argsort(stable=True)]
    chosen = torch.zeros(len(combination), dtype=torch.bool)
    chosen[order[TEST - 1 :: TEST]] = True
    return chosen


def _test_rows(task: Examples, held: Bool[Tensor, "n"], usable: Bool[Tensor, "n"]) -> tuple[Tensor, str]:
    """Images of held-out combinations if every value that these have occurs often enough, otherwise all there are."""
    among = held & usable
    enough = bool(among.any())
    for axis, factor in enumerate(task.factors):
        needed = task.index[held, axis].bincount(minlength=factor.size) > 0
        counts = task.index[among, axis].bincount(minlength=factor.size)
        enough = enough and bool((counts[needed] >= MIN_TESTED).all()) and bool(needed.all())
    if enough:
        return among.nonzero()[:, 0], "of held-out combinations"
    where = "of held-out and seen combinations" if bool(among.any()) else "of seen combinations"
    return usable.nonzero()[:, 0], where


def _left_out_in_turn(
    task: Examples,
    heldout: Bool[Tensor, "combinations"],
    trained: Bool[Tensor, "examples"],
    seed: int,
    rng: torch.Generator,
    on_step: OnStep,
) -> ReadersTested:
    """Readers trained on all that was seen, tested through others for which the hole is moved to seen combinations."""
    part = _Parts(on_step, 1 + TURNS)
    readers = train_each(task.images[trained], task.index[trained], task.factors, seed, part.next())
    rows, read = [], []
    tested = torch.zeros(len(heldout), dtype=torch.bool)
    for turn in range(TURNS):
        moved = moved_hole(task, heldout, tested, rng)
        tested |= moved
        left = moved[task.combination]
        rest = ~left & trained
        other: FactorReaders = train_each(
            task.images[rest], task.index[rest], task.factors, seed + turn + 1, part.next()
        )
        rows.append(left.nonzero()[:, 0])
        read.append(other(task.images[left]))
    count = int(tested[task.combination].sum())
    return ReadersTested(
        readers,
        torch.cat(rows),
        torch.cat(read),
        trained,
        f"{count} real images of {int(tested.sum())} seen combinations, left out in {TURNS} turns as if they were held "
        f"out, since no real image is of a held-out one; intervals are {WIDENED:g} times as wide for that",
        True,
        WIDENED,
    )


def moved_hole(
    task: Examples, heldout: Bool[Tensor, "combinations"], tested: Bool[Tensor, "combinations"], rng: torch.Generator
) -> Bool[Tensor, "combinations"]:
    """Seen combinations in the shape of the hole, elsewhere: each factor's values are shuffled.

    Of some tries the one that tests most values that were not tested yet, and then most combinations; after it every
    value must still be seen together with others.
    """
    seen = task.present & ~heldout
    grid = torch.stack([f.index(task.grid()[:, axis]) for axis, f in enumerate(task.factors)], 1)
    values = torch.cat([torch.nn.functional.one_hot(grid[:, a], f.size) for a, f in enumerate(task.factors)], 1).bool()
    best, most = torch.zeros_like(heldout), (-1, -1)
    for attempt in range(2 * TRIES):
        if attempt < TRIES:
            hole = heldout.reshape(task.sizes)
            for axis, size in enumerate(task.sizes):
                hole = hole.index_select(axis, torch.randperm(size, generator=rng))
            moved = hole.flatten() & seen
        elif most[0] >= 0:
            break
        else:  # no place has the shape of the hole: any few combinations
            moved = seen & (torch.rand(len(seen), generator=rng) < 0.2)
        if not moved.any() or not values[seen & ~moved].any(0).all():
            continue
        new = int((values[moved].any(0) & ~values[tested].any(0)).sum())
        score = (new, int((moved & ~tested).sum()))
        if score > most:
            best, most = moved, score
    return best


class _Parts:
    """Counts the steps of several trainings as one."""

    def __init__(self, report: OnStep, count: int) -> None:
        self.report, self.count, self.past, self.last, self.begun = report, count, 0, 0, 0

    def next(self) -> Callable[[int, int], None]:
        self.past, self.begun = self.past + self.last, self.begun + 1
        self.last = 0

        def step(done: int, expected: int) -> None:
            self.last = done
            self.report(self.past + done, self.past + expected * (1 + self.count - self.begun))

        return step
