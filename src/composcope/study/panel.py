"""A figure as a value: the runs it needs, the numbers it shows, and how they are drawn; and its files."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from composcope.errors import BadInput, RunFailed
from composcope.files import write_atomically
from composcope.runs.spec import Spec
from composcope.store.store import Store
from composcope.study import drawing
from composcope.study.evidence import Evidence, RunCache
from composcope.study.numbers import Numbers, Rows, no_runs_yet, pack_numbers, unpack_numbers
from composcope.study.plan import Key, Plan, Planner, Preset, label_of, specs_of, varied


@dataclass(frozen=True)
class Search:
    """What a figure needs whose plan is searched: some of its runs decide which others are done.

    - `needed`: which of the plan's runs to do next, given what the store has. `max_runs`: how many it does at most.
    - `name`: what the runs of one search have in common, from a run's key and spec; one shard does them all.
    """

    needed: Callable[[Plan, Store], list[Spec]]
    max_runs: Callable[[Preset], int]
    name: Callable[[Key, Spec], str]


@dataclass(frozen=True)
class Panel:
    """One figure.

    - `name`: "1b"; `see`: one line on what to look at.
    - `plan`: the runs it needs; `numbers`: what it shows, from these runs; `draw`: the figure of these numbers.
    - `table`: its table; by default the rows of its numbers.
    - `no_claim`: why no claim rests on it, if none does. `first_seed`: what it shows of the first seed alone.
    - `diagnosed`: whether its runs are diagnosed as well as trained. `search`: for a plan that is searched.
    - `partial`: whether it can be made while there are no runs yet for some keys of its plan; `essential`: keys that
      must have runs even so.
    - `styles`: other ways to draw it, by name, for `composcope reproduce --redraw --style NAME`.
    """

    name: str
    title: str
    see: str
    plan: Planner
    numbers: Callable[[Evidence], Numbers]
    draw: Callable[[Numbers], Any]
    table: Callable[[Numbers], Rows] = Numbers.table
    no_claim: str = ""
    first_seed: str = ""
    diagnosed: bool = True
    search: Search | None = None
    partial: bool = False
    essential: tuple[Key, ...] = ()
    styles: Mapping[str, Callable[[Numbers], Any]] = field(default_factory=dict)

    def needed(self, plan: Plan, store: Store) -> list[Spec]:
        """The runs to do next: all of the plan, or those that its search asks for."""
        return list(specs_of(plan).values()) if self.search is None else self.search.needed(plan, store)


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
        content = pack_numbers(numbers_of(panel, evidence, settings))
    except RunFailed as damage:
        return RenderedPanel(*about, [], missing=str(damage))
    return redraw(panel, content, evidence.run_ids)


def numbers_of(panel: Panel, evidence: Evidence, settings: Sequence[str] = ()) -> Numbers:
    """What the figure shows of this evidence, with what it was made from."""
    numbers = panel.numbers(evidence)
    return replace(numbers, seeds=numbers.seeds or evidence.seeds(), about=describe(evidence, settings)).sorted()


def redraw(
    panel: Panel, content: bytes, run_ids: tuple[str, ...] = (), draw: Callable[[Numbers], Any] | None = None
) -> RenderedPanel:
    """The figure made from a file of its numbers. New figures go the same way, so that both are the same bytes.

    - `draw`: one of the panel's styles instead of its own way.
    """
    numbers = unpack_numbers(content)
    with drawing.style():
        figure = (draw or panel.draw)(numbers)
        drawing.stamp(figure, numbers.caption(panel.first_seed))
        width, height = figure.get_size_inches()
        png, pdf = drawing.as_bytes(figure, "png"), drawing.as_bytes(figure, "pdf")
    about = (panel.name, panel.title, panel.see, panel.no_claim, run_ids)
    size = (float(width), float(height))
    return RenderedPanel(*about, panel.table(numbers), png, pdf, size, content, lacking=numbers.lacking)


def describe(evidence: Evidence, settings: Sequence[str] = ()) -> str:
    """The preset, the settings changed in it, and image sizes."""
    sizes = sorted({run.spec.task.image_shape[1:] for runs in evidence.values() for run in runs})
    about = f"preset {' '.join([evidence.preset.name, *settings])}"
    return f"{about}: {', '.join(f'{height} x {width}' for height, width in sizes)}" if sizes else about


def write_figure(panel: RenderedPanel, out: Path) -> list[Path]:
    """Write a figure as PNG and PDF and its table as CSV; if there is no figure, remove an older one."""
    files = {
        out / "figures" / f"figure_{panel.name}.png": panel.png,
        out / "figures" / f"figure_{panel.name}.pdf": panel.pdf,
        out / "tables" / f"figure_{panel.name}.csv": _csv(panel.rows),
        out / "numbers" / f"figure_{panel.name}.npz": panel.numbers,
    }
    for path, content in files.items():
        if panel.missing:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)
    return [] if panel.missing else list(files)


def _csv(rows: Rows) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def redraw_figures(
    panels: Sequence[Panel],
    folder: Path,
    style: str | None = None,
    others: Sequence[Path] = (),
) -> list[RenderedPanel]:
    """Draw figures again from the numbers that `Reproduction.write` left in a folder; no store is needed.

    - `style`: only figures that have this other way to be drawn; their files get its name too.
    - `others`: folders of other machines, whose numbers are added to those in the folder.
    """
    for other in others:
        if not (other / "numbers").is_dir():
            raise BadInput(f"{str(other)!r} has no folder 'numbers': name a folder that `composcope reproduce` wrote")
    drawn = []
    for panel in panels:
        content = _joined_numbers(panel, (folder, *others))
        if content is None:
            continue
        if style is None:
            drawn.append(redraw(panel, content))
            write_figure(drawn[-1], folder)
        elif style in panel.styles:
            drawn.append(redraw(panel, content, draw=panel.styles[style]))
            path = folder / "figures" / f"figure_{panel.name}_{style}"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path.with_suffix(".png"), drawn[-1].png)
            write_atomically(path.with_suffix(".pdf"), drawn[-1].pdf)
    if not drawn:
        raise BadInput(f"{str(folder / 'numbers')!r} holds no numbers of the requested figures")
    return drawn


def _joined_numbers(panel: Panel, folders: Sequence[Path]) -> bytes | None:
    """The contents of the figure's file of numbers, with those of the other folders added; None if none has any."""
    paths = [path for folder in folders if (path := folder / "numbers" / f"figure_{panel.name}.npz").is_file()]
    if len(paths) < 2:
        return paths[0].read_bytes() if paths else None
    numbers, *more = (unpack_numbers(path.read_bytes()) for path in paths)
    for each in more:
        try:
            numbers = numbers.joined(each)
        except BadInput as error:
            raise BadInput(f"figure {panel.name}: {error}") from None
    return pack_numbers(numbers)
