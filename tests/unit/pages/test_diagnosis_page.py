import base64
import zlib

import numpy as np
import pytest
import torch

import composcope as cs
from composcope.diagnosis import diagnose
from composcope.diagnosis.points import grid_split, samples_of
from composcope.pages.charts import Line, chart, strip
from composcope.pages.diagnosis_page import diagnosis_part, part_data, write_diagnosis_page
from composcope.pages.maps import (
    NOTHING,
    diagnosis_maps,
    levels,
    outline,
    packed_images,
    plane,
    upright,
)
from composcope.pages.page import environment
from pages import HOSTILE, TURNED, tiny


def unpacked(data):
    return np.frombuffer(zlib.decompress(base64.b64decode(data["data"])), data["dtype"]).reshape(data["shape"])


def diagnosed(spec, module=None):
    """A module's diagnosis; by default the spec's, untrained."""
    torch.manual_seed(0)
    drawer = module or spec.decoder.build(spec.encoding.code_sizes(spec.task.factors), spec.task.image_shape)
    return diagnose(drawer, spec.task, spec.holdout, spec.encoding)


class Perfect(torch.nn.Module):
    """Draws the truth from one-hot codes."""

    def __init__(self, task):
        super().__init__()
        self.task = task

    def forward(self, codes):
        x, y = codes.split(self.task.size, 1)
        return self.task.render(torch.stack([x.argmax(1), y.argmax(1)], 1).float())


@pytest.fixture(scope="module")
def perfect():
    spec = tiny(encoding=cs.OneHot())
    return diagnosed(spec, Perfect(spec.task))


def test_the_verdict_is_on_top(perfect, tmp_path):
    found = perfect
    page = write_diagnosis_page(found, tmp_path / "page.html", "A perfect decoder").read_text()
    assert "It composes." in page
    assert "It composes 100% of the held-out images (95% interval 100% to 100%)." in page
    assert page.index("It composes.") < page.index("What it draws") < page.index("Why") < page.index("Layer by layer")


def test_samples_are_the_truth_of_a_perfect_decoder(perfect):
    shown = perfect.samples
    assert torch.equal(shown.truth, shown.images)
    truth, drawn = unpacked(packed_images(shown))
    assert (truth == drawn).all()
    assert truth.shape == (6, 8, 8, 1)
    first = tuple(shown.latents[0].int().tolist())
    assert first == (2, 2)
    assert np.unravel_index(truth[0, :, :, 0].argmin(), (8, 8)) == (7 - first[1], first[0])


def test_every_held_out_image_of_a_perfect_decoder_is_the_composers(perfect):
    found = perfect
    classes = unpacked(diagnosis_maps(found)["classes"])
    assert (classes[2:6, 2:6] == 0).all()
    assert (classes == NOTHING).sum() == 48


def test_error_maps_are_logarithms_the_right_way_up(perfect):
    found = perfect
    wrong = found.error.map.clone()
    wrong[1, 6] = 0.5
    broken = type(found.error)(**{**found.error.__dict__, "map": wrong})
    data = diagnosis_maps(type(found)(**{**found.__dict__, "error": broken}))["error"]
    assert unpacked(data)[1, 1] == 254
    assert (unpacked(data) == 254).sum() == 1
    assert 10 ** data["high"] == pytest.approx(0.5)


def test_volumes_are_told_from_the_seen_mean():
    spec = tiny(encoding=cs.Bump())
    found = diagnosed(spec)
    data = diagnosis_maps(found)["volumes"]
    maps = data["low"] + unpacked(data) / 254 * (data["high"] - data["low"])
    for drawn, layer in zip(maps, found.layers.values(), strict=True):
        logs = layer.geometry.volume.double().clamp(min=1e-6).log10().reshape(8, 8)
        seen = logs[~found.samples.heldout.reshape(8, 8)].mean()
        expected = upright((logs - seen).clamp(data["low"], data["high"]))
        assert drawn == pytest.approx(expected.numpy(), abs=(data["high"] - data["low"]) / 254)


def test_the_kernel_is_small_and_keeps_its_blocks():
    spec = tiny(task=cs.BumpTask(12), encoding=cs.OneHot(), holdout=cs.Square(3, 8))
    found = diagnosed(spec, Perfect(spec.task))
    data = diagnosis_maps(found)["kernel"]
    kernel = unpacked(data)
    assert kernel.shape == (64, 64)
    assert (kernel.diagonal() == 254).all()
    values = torch.linspace(0, 11, 8).round()
    expected = [int(3 <= x <= 8 and 3 <= y <= 8) for x in values.tolist() for y in values.tolist()]
    assert data["heldout"] == expected


def test_one_factor_has_strips_and_a_blend(tmp_path):
    found = diagnosed(TURNED)
    assert diagnosis_maps(found)["error"]["shape"] == [1, 24]
    page = write_diagnosis_page(found, tmp_path / "page.html", "Turned", TURNED).read_text()
    assert "the blend of the gap" in page
    assert "along angle" in page


def test_many_combinations_of_three_factors_are_shown_as_the_mean_over_the_third(tmp_path, monkeypatch):
    monkeypatch.setattr("composcope.pages.maps.MAX_SLICED", 10)
    spec = tiny(task=cs.BumpTask(5, brightness=(0.5, 1.0)), holdout=cs.Square(1, 3))
    found = diagnosed(spec)
    assert diagnosis_maps(found)["error"]["shape"] == [5, 5]
    assert "mean over brightness" in write_diagnosis_page(found, tmp_path / "p.html", "t", spec).read_text()


def test_without_samples_and_without_a_hole_there_is_still_a_page(tmp_path):
    found = diagnosed(tiny(holdout=cs.Nothing()))
    page = write_diagnosis_page(found, tmp_path / "page.html", HOSTILE).read_text()
    assert "No verdict." in page
    assert HOSTILE not in page


def test_a_table_in_any_order_shows_the_class_of_each_sample(tmp_path):
    task = cs.BumpTask(6)
    order = torch.randperm(36, generator=torch.Generator().manual_seed(0))
    table = cs.TableTask(task.grid()[order], task.render(task.grid())[order], task.factors, "dark")
    found = diagnose(Perfect(task), table, cs.Square(2, 4), cs.OneHot())
    assert torch.equal(found.samples.heldout.reshape(6, 6)[2:5, 2:5], torch.ones(3, 3, dtype=torch.bool))
    labels = diagnosis_part(found)["samples"]
    assert [label["drawn"] for label in labels] == ["the true image"] * 6
    assert labels[0]["place"] == "x 2, y 2"


def test_large_images_and_channels_are_made_small():
    task = cs.BumpTask(4)
    shown = samples_of(task, grid_split(task, cs.Square(1, 2)), task.render)
    big = type(shown)(shown.heldout, shown.rows, shown.latents, torch.rand(4, 3, 100, 200), torch.rand(4, 3, 100, 200))
    assert unpacked(packed_images(big)).shape == (2, 4, 64, 64, 3)


def test_levels_have_one_for_nothing():
    values = torch.tensor([-1.0, 0.0, 0.5, 1.0, 2.0, torch.nan])
    assert levels(values, 0.0, 1.0).tolist() == [0, 0, 127, 254, 254, NOTHING]


def test_a_plane_has_x_to_the_right_and_y_upwards():
    grid = torch.arange(6.0).reshape(2, 3)  # x of 2, y of 3
    assert upright(plane(grid.flatten(), (2, 3))).tolist() == [[2, 5], [1, 4], [0, 3]]


def test_an_outline_goes_around_holes_too():
    mask = torch.ones(3, 3, dtype=torch.bool)
    mask[1, 1] = False
    assert outline(mask) == "M0 0H3M1 1H2M1 2H2M0 3H3M0 0V3M1 1V2M2 1V2M3 0V3"


def test_lines_stand_where_their_values_are():
    drawn = chart("title", [Line("a", [0.0, 0.5, 1.0]), Line("b", [None, 0.5, 0.5], control=True)], "xyz", 0.0, 1.0)
    (style, points), (other, fewer) = drawn.curves
    assert (style, other) == ("line0", "control")
    assert [y for _, y in points] == [drawn.bottom, (drawn.top + drawn.bottom) / 2, drawn.top]
    assert [x for x, _ in points] == [drawn.left, (drawn.left + drawn.right) / 2, drawn.right]
    assert len(fewer) == 2
    assert "a: x 0.000, y 0.500, z 1.000" in drawn.said
    assert chart("title", [Line("a", [None])], "x", 0.0, 1.0) is None


def test_a_strip_shades_the_claimed_side():
    above = strip([0.7, 0.9], 0.7, 0.9, 0.5, ">")
    assert above.start == above.thresholds[0] < min(above.dots)
    below = strip([0.7, 0.9], 0.7, 0.9, 0.5, "<")
    assert below.start == 0
    assert below.extent == below.thresholds[0]
    within = strip([-0.1, 0.1], -0.2, 0.2, 0.5, "within")
    assert [within.start, within.start + within.extent] == pytest.approx(within.thresholds)
    assert strip([], None, None, 0.5, ">") is None


@pytest.mark.slow
def test_a_run_of_the_papers_size_takes_less_than_100_kb():
    """So that 200 of them, and the figures, stay under 30 MB."""
    spec = tiny(task=cs.BumpTask(28), holdout=cs.Square(6, 22), decoder=cs.MLP(depth=10, width=8))
    found = diagnosed(spec)
    text = environment().from_string(
        '{% from "diagnosis_part.html" import diagnosis with context %}{{ diagnosis(part, data, "one") }}'
    )
    page = text.render(part=diagnosis_part(found), data=part_data(found))
    assert len(page) < 100_000


FORECAST = cs.Spec(cs.BumpTask(8), cs.Square(2, 5), cs.OneHot(), cs.CNN(depth=2, width=4), cs.Stripes(bumps=20))


def test_a_forecast_is_shown_beside_the_outcome(tmp_path):
    forecast = cs.forecast(FORECAST)
    found = diagnosed(FORECAST, Perfect(FORECAST.task))
    part = diagnosis_part(found, forecast.numbers())
    rows = {name: values for name, *values in part["forecast"]["rows"]}
    assert rows["composed"][1] == "100%"
    assert rows["held-out images"] == [forecast.kind, "composes"]
    text = write_diagnosis_page(found, tmp_path / "a.html", "A", FORECAST, forecast).read_text()
    assert "Forecast before training" in text
    assert "forecast at x 2, y 2" in text
    images = unpacked(part_data(found, forecast.prediction.draw(found.samples.latents))["samples"])
    assert images.shape[:2] == (3, len(found.samples.rows))
    assert "Forecast before training" not in write_diagnosis_page(found, tmp_path / "b.html", "B").read_text()


def test_a_forecast_that_abstains_says_why(tmp_path):
    spec = cs.Spec(cs.BumpTask(8), cs.Square(2, 5), cs.OneHot(), cs.CNN(depth=1, width=4), cs.Everything())
    found = diagnosed(spec)
    text = write_diagnosis_page(found, tmp_path / "a.html", "A", spec, cs.forecast(spec)).read_text()
    assert "the forecast abstained: the CNN has depth 1" in text
    assert "Forecast and outcome" not in text


def test_three_factors_have_a_curve_by_order_blocks_and_a_rank():
    task = cs.BumpTask(6, brightness=(0.5, 1.0))
    module = cs.MLP(depth=1, width=8).build((6, 6, 2), task.image_shape)
    found = diagnose(module, task, cs.Square(2, 3), cs.Bump())
    part = diagnosis_part(found)
    assert part["orders"] is not None
    assert found.kernels.pf_by_order[-1] == pytest.approx(1)
    numbers = found.numbers()
    assert len(numbers["kernels"]["pf_by_order"]) == 3
    assert numbers["kernels"]["cp_errors"][0] == pytest.approx(found.kernels.rank.errors[0])
    assert numbers["linear_factorization"]["code"]["blocks"] == "x | y | brightness"
    assert numbers["curvature"]["image"]["x"] > 0
    titles = [row.title for row in part["kernels"].rows]
    assert "products of single-factor kernels" in titles


def test_two_factors_have_none_of_these():
    found = diagnosed(tiny())
    assert diagnosis_part(found)["orders"] is None
    assert found.kernels.rank is None
    assert "mixes" not in diagnosis_part(found)["layers"].columns


def test_maps_of_three_factors_are_kept_over_the_whole_grid(monkeypatch):
    task = cs.BumpTask(6, brightness=(0.5, 1.0))
    module = cs.MLP(depth=1, width=8).build((6, 6, 2), task.image_shape)
    found = diagnose(module, task, cs.Square(2, 3), cs.Bump())
    data = part_data(found)
    assert data["grid"]["factors"][2] == {"name": "brightness", "values": ["0.5", "1"]}
    assert unpacked(data["grid"]["heldout"]).sum() == 8
    assert unpacked(data["error"]).shape == (6, 6, 2)
    assert unpacked(data["classes"]).shape == (6, 6, 2)
    assert unpacked(data["volumes"]).shape == (len(found.layers), 6, 6, 2)
    assert diagnosis_part(found)["sliced"]
    logs = found.error.map.double().log10().clamp(min=data["error"]["low"])
    step = (data["error"]["high"] - data["error"]["low"]) / 254
    assert data["error"]["low"] + step * unpacked(data["error"]) == pytest.approx(logs.numpy(), abs=step)
    monkeypatch.setattr("composcope.pages.maps.MAX_SLICED", 10)
    assert unpacked(part_data(found)["error"]).shape == (6, 6)
    assert "grid" not in part_data(found)
