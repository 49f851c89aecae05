"""A figure as a value: the runs it needs, the numbers it shows, and how they are drawn."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, runtime_checkable

from composcope.display import counted
from composcope.errors import RunFailed
from composcope.runs.spec import Spec
from composcope.store.store import Store
from composcope.study import drawing
from composcope.study.evidence import Evidence, RunCache
from composcope.study.numbers_file import NumbersFile, no_runs_yet, pack_numbers, unpack_numbers
from composcope.study.plan import Key, Plan, label_of, specs_of, varied
from composcope.study.preset import Preset

Rows = list[dict[str, object]]
"""The numbers behind a figure: the same keys in every row."""


class Numbers(Protocol):
    """What a figure shows."""

    def table(self) -> Rows: ...


@runtime_checkable
class Joinable(Protocol):
    """Numbers that say which seeds they are of, so that those of other kinds of run and other seeds can be added."""

    def joined(self, other: Self) -> Self:
        """These numbers and those that only the other has."""
        ...

    def seed_counts(self) -> Iterable[int]:
        """How many seeds each kind of run has."""
        ...


def every_run(plan: Plan, store: Store) -> list[Spec]:
    """All runs of a plan."""
    return list(specs_of(plan).values())


@dataclass(frozen=True)
class Panel:
    """One figure.

    - `name`: "1b"; `see`: one line on what to look at.
    - `plan`: the runs it needs; `numbers`: what it shows, from these runs; `draw`: the figure of these numbers.
    - `no_claim`: why no claim rests on it, if none does. `first_seed`: what it shows of the first seed alone.
    - `needed`: which of the plan's runs to do next, given what the store has (a search asks for more as it goes on).
    - `diagnosed`: whether its runs are diagnosed as well as trained.
    - `most_runs`: for a search, how many of the plan's runs it does at most.
    - `search`: for a search, a name for the search that a run belongs to; its runs are done by one shard.
    - `partial`: whether it can be made while there are no runs yet for some keys of its plan; `essential`: keys that
      must have runs even so.
    - `styles`: other ways to draw it, by name, for `composcope reproduce --redraw --style NAME`.
    """

    name: str
    title: str
    see: str
    plan: Callable[[Preset], Plan]
    numbers: Callable[[Evidence], Any]
    draw: Callable[[Any], Any]
    no_claim: str = ""
    first_seed: str = ""
    needed: Callable[[Plan, Store], list[Spec]] = every_run
    diagnosed: bool = True
    most_runs: Callable[[Preset], int] | None = None
    search: Callable[[Key, Spec], str] | None = None
    partial: bool = False
    essential: tuple[Key, ...] = ()
    styles: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class RenderedPanel:
    """A figure as files' contents and the table behind it; or, where runs are missing, what is missing.

    - `size`: width and height in inches. `numbers`: what it shows, as the contents of a file.
    - `missing`: why there is no figure. `lacking`: kinds of run without which it was made.
    """

    name: str
    title: str
    see: str
    no_claim: str
    run_ids: tuple[str, ...]
    rows: Rows
    png: bytes = b""
    pdf: bytes = b""
    size: tuple[float, float] = (0.0, 0.0)
    numbers: bytes = b""
    missing: str = ""
    lacking: tuple[str, ...] = ()

    def _repr_png_(self) -> bytes:
        return self.png


def render(panel: Panel, preset: Preset, settings: Sequence[str], cache: RunCache) -> RenderedPanel:
    """The figure made from what the store has."""
    plan = varied(panel.plan(preset), settings)
    evidence = cache.gather(preset, plan)
    about = (panel.name, panel.title, panel.see, panel.no_claim, evidence.run_ids)
    lacking = tuple(label_of(key) for key, runs in evidence.items() if not runs)
    drawable = panel.partial and any(evidence.values()) and all(evidence[key] for key in panel.essential)
    try:
        if lacking and not drawable and panel.needed(plan, cache.store):
            return RenderedPanel(*about, [], missing=no_runs_yet(lacking))
        numbers = panel.numbers(evidence)
    except RunFailed as damage:
        return RenderedPanel(*about, [], missing=str(damage))
    counts = numbers.seed_counts() if isinstance(numbers, Joinable) else map(len, evidence.values())
    file = NumbersFile(numbers, describe(evidence, settings), count_seeds(counts), lacking if drawable else ())
    return redraw(panel, pack_numbers(file), evidence.run_ids)


def redraw(
    panel: Panel, content: bytes, run_ids: tuple[str, ...] = (), draw: Callable[[Any], Any] | None = None
) -> RenderedPanel:
    """The figure made from a file of its numbers. New figures go the same way, so that both are the same bytes.

    - `draw`: one of the panel's styles instead of its own way.
    """
    file = unpack_numbers(content, panel.numbers)
    with drawing.style():
        figure = (draw or panel.draw)(file.numbers)
        drawing.stamp(figure, file.caption(panel.first_seed))
        width, height = figure.get_size_inches()
        png, pdf = drawing.as_bytes(figure, "png"), drawing.as_bytes(figure, "pdf")
    about = (panel.name, panel.title, panel.see, panel.no_claim, run_ids)
    return RenderedPanel(
        *about, file.numbers.table(), png, pdf, (float(width), float(height)), content, lacking=file.lacking
    )


def describe(evidence: Evidence, settings: Sequence[str] = ()) -> str:
    """The preset, the settings changed in it, and image sizes."""
    sizes = sorted({run.spec.task.image_shape[1:] for runs in evidence.values() for run in runs})
    about = f"preset {' '.join([evidence.preset.name, *settings])}"
    return f"{about}: {', '.join(f'{height} x {width}' for height, width in sizes)}" if sizes else about


def count_seeds(counts: Iterable[int]) -> str:
    """How many seeds the kinds of run have; empty if there is no run.

    >>> count_seeds([5, 1, 0])
    '1 to 5 seeds'
    """
    known = [count for count in counts if count]
    if not known:
        return ""
    fewest, most = min(known), max(known)
    return counted(most, "seed") if fewest == most else f"{fewest} to {most} seeds"
