"""Every quantity is described once, and appears everywhere."""

import html
import sys
from dataclasses import replace

import pytest
import torch

import composcope as cs
from composcope.diagnosis import diagnose, quantities, tables
from composcope.diagnosis.quantities import GROUPS, Group, Quantity, image_quantities, layer_quantities
from composcope.diagnosis.summary import summary
from composcope.pages.diagnosis_page import charts, write_diagnosis_page

TASK, HOLDOUT = cs.BumpTask(8), cs.Square(2, 5)


def network():
    torch.manual_seed(0)
    return cs.MLP(1, 16).build((8, 8), (1, 8, 8))


@pytest.fixture(scope="module")
def diagnosis():
    return diagnose(network(), TASK, HOLDOUT, cs.Bump(), untrained=network())


def at(numbers, key):
    for name in key.split("."):
        numbers = numbers[name]
    return numbers


def flat(data, prefix=""):
    if not isinstance(data, dict):
        return {prefix.rstrip("/"): data}
    return {key: value for name, part in data.items() for key, value in flat(part, f"{prefix}{name}/").items()}


def test_keys_are_distinct_and_titled_quantities_say_how_to_read_them():
    for quantity_list in (image_quantities(), layer_quantities(("x", "y"), True)):
        keys = [quantity.key for quantity in quantity_list]
        assert len(set(keys)) == len(keys)
    for group in GROUPS:
        assert {quantity.column for quantity in group.quantities if quantity.title} <= {*group.columns, ""}
    for quantity in layer_quantities(("x",), False):
        assert not quantity.chart or (quantity.title and quantity.reading and quantity.low < quantity.high)


def test_every_titled_quantity_that_applies_is_in_the_numbers_the_summary_and_the_page(diagnosis, tmp_path):
    numbers, text = diagnosis.numbers(), diagnosis.summary()
    page = write_diagnosis_page(diagnosis, tmp_path / "page.html", "title").read_text()
    page = html.unescape(page)
    shown = 0
    for quantity in image_quantities():
        if quantity.title and tables.value(quantity, diagnosis) is not None:
            title = quantity.title.replace("{parts}", "D(x) + D(y)")
            assert title in text
            assert title in page
            assert quantity.reading in page
            assert at(numbers, quantity.key) == tables.value(quantity, diagnosis)
            shown += 1
    assert shown > 20
    for quantity in layer_quantities(diagnosis.factors, True):
        section, _, rest = quantity.key.partition(".")
        for name, layer in diagnosis.layers.items():
            value = tables.value(quantity, layer)
            if isinstance(value, float | int | str):
                assert at(numbers[section][name], rest) == value
        assert quantity.title in text
        assert quantity.title in page


def test_charts_come_from_the_descriptions(diagnosis):
    by_title = {made.title: made for made in charts(diagnosis)}
    assert list(by_title) == ["Volume gap", "Factorization", "Probes", "Main effects", "Curvature"]
    assert [line.label for line in by_title["Volume gap"].lines] == ["trained", "untrained"]
    assert [line.label for line in by_title["Probes"].lines] == ["probe x", "probe y"]
    gaps = [layer.geometry.volumes.gap for layer in diagnosis.layers.values()]
    assert list(by_title["Volume gap"].lines[0].values) == gaps


def test_numbers_without_maps_are_the_same(diagnosis):
    from composcope.diagnosis.diagnosis import pack, unpack

    tree, content = pack(diagnosis)
    assert unpack(tree, None).numbers() == diagnosis.numbers() == unpack(tree, content).numbers()
    assert unpack(tree, None).error.map.is_meta


def test_an_added_measure_appears_everywhere(monkeypatch, tmp_path):
    """One description of an image's quantity and one of a layer's; nothing else is touched."""

    def mean_brightness(material):
        return material.outputs.double().mean().item()

    def largest_volume(layer):
        return layer.geometry.volume.max().item() if layer.geometry else None

    added = Group(
        "toy",
        "toy measures",
        ("",),
        (Quantity("toy.brightness", "brightness", "of what is drawn", measure=mean_brightness),),
    )
    own = Quantity("toy.largest", "largest volume", "over the points", chart="Largest volume", measure=largest_volume)
    described = quantities.layer_quantities
    monkeypatch.setattr(quantities, "GROUPS", (*GROUPS, added))
    monkeypatch.setattr(tables, "GROUPS", (*GROUPS, added))
    for module in ("diagnosis.diagnose", "diagnosis.tables", "pages.diagnosis_page"):
        monkeypatch.setattr(
            sys.modules[f"composcope.{module}"], "layer_quantities", lambda *arguments: [*described(*arguments), own]
        )
    made = diagnose(network(), TASK, HOLDOUT, cs.Bump())
    numbers = made.numbers()
    assert numbers["toy"]["brightness"] == made.more["toy.brightness"]
    assert numbers["toy"]["image"]["largest"] == made.layers["image"].geometry.volume.max().item()
    assert "brightness" in summary(made)
    assert "largest volume" in summary(made)
    page = write_diagnosis_page(made, tmp_path / "page.html", "title").read_text()
    assert all(text in page for text in ("Toy measures", "brightness", "largest volume", "Largest volume"))
    cs.save_diagnosis(made, tmp_path / "saved")
    assert cs.load_diagnosis(tmp_path / "saved").numbers() == numbers


def test_a_diagnosis_without_later_quantities_shows_what_it_has(diagnosis):
    older = replace(
        diagnosis, more={}, layers={name: replace(layer, more={}) for name, layer in diagnosis.layers.items()}
    )
    assert older.numbers()["error"] == diagnosis.numbers()["error"]
    assert older.summary().startswith("verdict: ")
