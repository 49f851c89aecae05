"""What `composcope reproduce` can make: for each picture its runs, the picture, and the table behind it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from composcope.experiments.run import Result, load
from composcope.experiments.spec import Spec
from composcope.experiments.store import Store
from composcope.paper import cures, failure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Entry:
    """One picture: what it shows, the runs it needs, and how to make picture and table from a store that has them."""

    title: str
    specs: Callable[[], list[Spec]]
    make: Callable[[Store], "tuple[Figure, Rows]"]


def _failure(store: Store) -> "tuple[Figure, Rows]":
    from composcope.figures.failure import draw

    results = [load(store, spec.run_id) for spec in failure.specs()]
    rows = cures.table({f"{result.spec.encoding.kind} code": [result] for result in results})
    return draw([failure.numbers(result) for result in results]), rows


def _cures(size: int, seeds: Sequence[int]) -> Entry:
    runs = [cures.specs(size, seed) for seed in seeds]

    def make(store: Store) -> "tuple[Figure, Rows]":
        from composcope.figures.cures import draw

        def results(group: str, name: str) -> list[Result]:
            return [load(store, groups[group][name].run_id) for groups in runs]

        names = [(group, name) for group in runs[0] for name in runs[0][group]]
        found = {(group, name): results(group, name) for group, name in names}
        shown = {group: {name: cures.samples(found[group, name][0]) for name in runs[0][group]} for group in runs[0]}
        return draw(shown), cures.table({name: found[group, name] for group, name in names})

    return Entry(
        f"the cures, {size} x {size}, {len(seeds)} seeds",
        lambda: [spec for groups in runs for group in groups.values() for spec in group.values()],
        make,
    )


def catalogue() -> dict[str, Entry]:
    """Every picture by name; those of `DEFAULT` are made when none is named."""
    return {
        "failure": Entry("figure 1, the failure, 28 x 28", failure.specs, _failure),
        "cures": _cures(16, (0, 1, 2)),
        "cures28": _cures(28, (0,)),
    }


DEFAULT = ("failure", "cures")
