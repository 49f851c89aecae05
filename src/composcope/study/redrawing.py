"""Figures drawn again from the numbers beside them, with those of other machines added."""

from collections.abc import Callable, Sequence
from pathlib import Path

from composcope.errors import BadInput
from composcope.files import write_atomically
from composcope.study.joining import can_join, join_files
from composcope.study.numbers_file import pack_numbers, unpack_numbers
from composcope.study.panel import Panel, RenderedPanel, redraw
from composcope.study.reproduce import write_figure
from composcope.study.study import Study


def redraw_figures(
    study: Study,
    folder: Path,
    figures: Sequence[str] = (),
    style: str | None = None,
    others: Sequence[Path] = (),
    on_kept: Callable[[str, Path], None] = lambda figure, other: None,
) -> list[RenderedPanel]:
    """Draw figures again from the numbers that `Reproduction.write` left in a folder; no store is needed.

    - `style`: only figures that have this other way to be drawn; their files get its name too.
    - `others`: folders of other machines, whose numbers are added to those in the folder. Of figures whose numbers
      cannot be joined those in the folder are kept, which `on_kept(figure, other)` is told.
    """
    chosen = study.select(figures)
    known = sorted({name for panel in study.panels for name in panel.styles})
    if style is not None and style not in known:
        raise BadInput(f"--style {style!r}: the figures of {study.name} have {', '.join(known) or 'no other styles'}")
    for other in others:
        if not (other / "numbers").is_dir():
            raise BadInput(f"{str(other)!r} has no folder 'numbers': name a folder that `composcope reproduce` wrote")
    panels = []
    for panel in chosen:
        content = _joined_numbers(panel, folder, others, on_kept)
        if content is None:
            continue
        if style is None:
            panels.append(redraw(panel, content))
            write_figure(panels[-1], folder)
        elif style in panel.styles:
            panels.append(redraw(panel, content, draw=panel.styles[style]))
            _write_images(panels[-1], folder / "figures" / f"figure_{panel.name}_{style}")
    if not panels:
        raise BadInput(f"{str(folder / 'numbers')!r} holds no numbers of the requested figures")
    return panels


def _joined_numbers(
    panel: Panel, folder: Path, others: Sequence[Path], on_kept: Callable[[str, Path], None]
) -> bytes | None:
    """The contents of the figure's file of numbers, with those of the other folders added; None if none has any."""
    content: bytes | None = None
    for source in (folder, *others):
        path = source / "numbers" / f"figure_{panel.name}.npz"
        if not path.is_file():
            continue
        if content is None:
            content = path.read_bytes()
        elif can_join(panel):
            files = [unpack_numbers(each, panel.numbers) for each in (content, path.read_bytes())]
            content = pack_numbers(join_files(panel, *files))
        else:
            on_kept(panel.name, source)
    return content


def _write_images(panel: RenderedPanel, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path.with_suffix(".png"), panel.png)
    write_atomically(path.with_suffix(".pdf"), panel.pdf)
