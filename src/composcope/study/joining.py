"""Numbers of one figure from several machines, as one: those that each had runs for, seed by seed."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from composcope.errors import BadInput
from composcope.study.numbers_file import NumbersFile, numbers_type
from composcope.study.panel import Joinable, Panel, count_seeds

T = TypeVar("T")
K = TypeVar("K")


def can_join(panel: Panel) -> bool:
    """Whether the figure's numbers can be joined."""
    return issubclass(numbers_type(panel.numbers), Joinable)


def join_files(panel: Panel, first: NumbersFile, second: NumbersFile) -> NumbersFile:
    """The numbers of both; where both have the same kind of run and seed, those of the first."""
    about, other = first.about, second.about
    if about != other:
        raise BadInput(f"figure {panel.name}: numbers of {about!r} cannot be joined with those of {other!r}")
    numbers: Any = first.numbers.joined(second.numbers)
    lacking = tuple(label for label in first.lacking if label in second.lacking)
    return NumbersFile(numbers, about, count_seeds(numbers.seed_counts()), lacking)


def pick_by_seed(first: Sequence[int], second: Sequence[int]) -> list[tuple[int, int]]:
    """For every seed of either, ascending: which of the two has it, the first if both do, and at which position.

    >>> pick_by_seed([10, 12], [11, 12])
    [(0, 0), (1, 0), (0, 1)]
    """
    places = {seed: (1, row) for row, seed in enumerate(second)} | {seed: (0, row) for row, seed in enumerate(first)}
    return [places[seed] for seed in sorted(places)]


Picked = Mapping[K, Sequence[tuple[int, int]]]


def rows_by_key(first: Mapping[K, Sequence[int]], second: Mapping[K, Sequence[int]]) -> Picked[K]:
    """`pick_by_seed` for every key of either, from their seeds by key."""
    return {key: pick_by_seed(first.get(key, ()), second.get(key, ())) for key in {**first, **second}}


def values_of(rows: Picked[K], first: Mapping[K, Sequence[T]], second: Mapping[K, Sequence[T]]) -> dict[K, list[T]]:
    """The picked values of the two."""
    return {key: [(first, second)[of][key][row] for of, row in picked] for key, picked in rows.items()}
