"""Every picture by name, in the paper's order."""

from collections.abc import Sequence

from composcope.components import nearest
from composcope.errors import BadInput
from composcope.figures import codes, cures, depths, lowrank, rotation, scaling, stripes
from composcope.paper.panel import Panel


def _order(panel: Panel) -> tuple[bool, int, str]:
    """1a, 1b, ..., 15, then those with names of our own."""
    number = panel.name.rstrip("abcdefghijklmnopqrstuvwxyz")
    return (not number, int(number or 0), panel.name)


GROUPS = (codes, depths, lowrank, stripes, scaling, rotation, cures)
CATALOGUE = {panel.name: panel for panel in sorted((panel for group in GROUPS for panel in group.PANELS), key=_order)}


def select(names: Sequence[str]) -> list[Panel]:
    """The named pictures, "3" for all of 3a to 3d; every one if none is named."""
    chosen: dict[str, Panel] = {}
    for name in names:
        found = {
            panel.name: panel
            for panel in CATALOGUE.values()
            if panel.name == name or (name.isdecimal() and panel.name.rstrip("abcdef") == name)
        }
        if not found:
            raise BadInput(f"no figure is named {name!r}{nearest(name, CATALOGUE)}; there are: {', '.join(CATALOGUE)}")
        chosen |= found
    return [panel for panel in CATALOGUE.values() if panel.name in chosen] if names else list(CATALOGUE.values())
