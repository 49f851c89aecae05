"""The described quantities of a diagnosis, read out: as plain numbers, and as tables of text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from composcope.diagnosis.diagnosis import Diagnosis
from composcope.diagnosis.layers import LayerDiagnosis
from composcope.diagnosis.quantities import GROUPS, Group, Quantity, image_quantities, layer_quantities
from composcope.display import cell
from composcope.plain import to_plain

SECTIONS = ("verdict", "error", "by_distance", "superposition", "kernels", "complexity", "blocks")
LAYER_SECTIONS = ("geometry", "probes", "tuning", "linear_factorization")
ABSENT = object()


@dataclass(frozen=True)
class Row:
    """A line of a table: what was measured, how to read it, and its values as text."""

    title: str
    reading: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Lines under a title and columns; only those with a value."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def value(quantity: Quantity, subject: Any) -> Any:
    """The quantity's value in a diagnosis or layer; None where it does not apply."""
    return _found(quantity, subject)[1]


def _found(quantity: Quantity, subject: Any) -> tuple[str, Any]:
    """The value and the key that it belongs under: that of the first field on the way that is None, if one is.

    The key is empty where there is no value at all: the whole section, or the entry of a mapping, is missing.
    """
    if quantity.measure is not None:
        return quantity.key, subject.more.get(quantity.key)
    if quantity.get is not None:
        return quantity.key, quantity.get(subject)
    names, node = quantity.key.split("."), subject
    for depth, name in enumerate(names, start=1):
        node = node.get(name, ABSENT) if isinstance(node, Mapping) else getattr(node, name)
        if node is ABSENT or (node is None and depth == 1):
            return "", None
        if node is None:
            return ".".join(names[:depth]), None
    return quantity.key, node


def numbers(diagnosis: Diagnosis) -> dict[str, Any]:
    """Every quantity by its key, nested: plain data, ready for JSON. A section that does not apply is empty."""
    tree: dict[str, Any] = {section: {} for section in SECTIONS}
    for quantity in image_quantities():
        key, content = _found(quantity, diagnosis)
        if content is not None or (key and quantity.measure is None and quantity.get is None):
            _put(tree, key.split("."), content)
    for section, by_layer in _layer_numbers(diagnosis, diagnosis.layers).items():
        tree.setdefault(section, {}).update(by_layer)
    tree["untrained"] = _layer_numbers(diagnosis, diagnosis.untrained) if diagnosis.untrained else {}
    plain: dict[str, Any] = to_plain(tree, {})
    return plain


def _layer_numbers(diagnosis: Diagnosis, layers: Mapping[str, LayerDiagnosis]) -> dict[str, Any]:
    """The layers' numbers, by section and then by layer; None where a section has no values for a layer."""
    tree: dict[str, Any] = {section: {} for section in LAYER_SECTIONS}
    quantities = layer_quantities(diagnosis.factors, diagnosis.heldout > 0)
    for name, layer in layers.items():
        for section in LAYER_SECTIONS:
            tree[section][name] = None
        by_section: dict[str, dict[str, Any]] = {}
        for quantity in quantities:
            section, _, key = quantity.key.partition(".")
            by_section.setdefault(section, {})[key] = value(quantity, layer)
        for section, values in by_section.items():
            if any(content is not None for content in values.values()):
                tree.setdefault(section, {})[name] = {}
                for key, content in values.items():
                    _put(tree[section][name], key.split("."), content)
    return tree


def _put(tree: dict[str, Any], names: list[str], content: Any) -> None:
    for name in names[:-1]:
        tree = tree.setdefault(name, {})
    last = names[-1]
    if isinstance(tree.get(last), dict) and isinstance(content, Mapping):
        tree[last] |= content
    else:
        tree[last] = content


def tables(diagnosis: Diagnosis) -> list[Table]:
    """The groups of quantities of the images, as text; groups and lines without a value are left out."""
    groups = [_table(group, diagnosis) for group in GROUPS]
    return [table for table in groups if table.rows]


def _table(group: Group, diagnosis: Diagnosis) -> Table:
    parts = " + ".join(f"D({name})" for name in diagnosis.factors)
    rows = []
    titled = [quantity for quantity in group.quantities if quantity.title]
    for title in dict.fromkeys(quantity.title for quantity in titled):
        own = {quantity.column: quantity for quantity in titled if quantity.title == title}
        # Without held-out points some quantities are over the seen ones instead; they have no second column.
        hidden = () if diagnosis.heldout else ("held-out",)
        values = {column: value(quantity, diagnosis) for column, quantity in own.items() if column not in hidden}
        if any(content is not None for content in values.values()):
            reading = next(iter(own.values())).reading
            texts = tuple(cell(values.get(column)) for column in group.columns)
            rows.append(Row(title.replace("{parts}", parts), reading, texts))
    return Table(group.name, group.title, group.columns, tuple(rows))


def layer_table(diagnosis: Diagnosis) -> Table:
    """The layers' titled quantities: one line per layer, one column per quantity; the reading is the layer's kind."""
    twin = diagnosis.untrained or {}
    quantities = [quantity for quantity in layer_quantities(diagnosis.factors, diagnosis.heldout > 0) if quantity.title]
    columns = ["kind", "shape"]
    for quantity in quantities:
        columns += [quantity.title, "untrained"] if quantity.compare and twin else [quantity.title]
    rows = []
    for name, layer in diagnosis.layers.items():
        texts = [layer.kind or "-", shape_text(layer)]
        for quantity in quantities:
            texts.append(cell(value(quantity, layer)))
            if quantity.compare and twin:
                texts.append(cell(value(quantity, twin[name])) if name in twin else "-")
        rows.append(Row(name, "", tuple(texts)))
    return Table("layers", "layer", tuple(columns), tuple(rows))


def shape_text(layer: LayerDiagnosis) -> str:
    return " x ".join(map(str, layer.shape)) or "1"
