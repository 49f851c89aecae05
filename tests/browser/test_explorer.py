"""The explorer in a real browser: what is dragged is what is shown, and what is shown is what the run draws."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

import composcope as cs
from composcope.pages.explorer import write_explorer
from composcope.runs.pipeline import run
from tiny import line, tiny

HOSTILE = "</script><script>window.hacked = true</script>"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three runs of milliseconds: all seen points, stripes and a few bumps, and another hole on other images."""
    first, stripes = tiny(), tiny(sampling=cs.Stripes(bumps=9), encoding=cs.OneHot())
    corner = tiny(task=cs.BumpTask(10, polarity="bright"), holdout=cs.Corner(6))
    store = cs.Store(tmp_path_factory.mktemp("explorer") / "runs")
    for spec in (first, stripes, corner):
        run(spec, store)
    return [store[spec.run_id] for spec in (first, stripes, corner)]


@pytest.fixture(scope="module")
def written(runs, tmp_path_factory):
    """The page of these runs."""
    path = tmp_path_factory.mktemp("page") / "explore.html"
    return write_explorer(cs.Store(runs[0].artifacts.path.parent), [each.spec.run_id for each in runs], path)


@pytest.fixture
def explorer(page, written):
    return opened(page, written)


def opened(page, path):
    page.goto(path.as_uri())
    page.wait_for_selector("#explorer:not([hidden])")
    settled(page)
    return page


def settled(page):
    """Wait until what was asked for is drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def shown(page, selector):
    """A canvas' pixels as (rows, columns, rgba)."""
    width, height, flat = page.evaluate(
        """(selector) => {
          const canvas = document.querySelector(selector);
          const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
          return [canvas.width, canvas.height, [...pixels]];
        }""",
        selector,
    )
    return np.array(flat).reshape(height, width, 4)


def drawn(image):
    """What the page should show of an image: rows upwards, grey from 0 to 1, blue below, orange above."""
    values = image[0].flip(0).double().numpy()[..., None]
    below = np.array([66, 135, 245]) * np.clip(-2 * values, 0, 1)
    above = 255 + (np.array([217, 72, 1]) - 255) * np.clip(2 * (values - 1), 0, 1)
    return np.where(values < 0, below, np.where(values > 1, above, 255 * values))


def compare(page, name, image):
    found = shown(page, f'[data-image="{name}"] canvas')
    assert (found[..., 3] == 255).all()
    assert np.abs(found[..., :3] - drawn(image)).max() <= 6  # a byte holds the run's whole range


def cell(page, x, y, sizes, name="error"):
    """The middle of a cell of the plane, in the window."""
    page.locator(f'[data-map="{name}"]').scroll_into_view_if_needed()
    box = page.locator(f'[data-map="{name}"]').bounding_box()
    return box["x"] + (x + 0.5) / sizes[0] * box["width"], box["y"] + (sizes[1] - y - 0.5) / sizes[1] * box["height"]


def said(page, name):
    return page.locator(f'[data-say="{name}"]').text_content()


def test_dragging_shows_the_images_of_the_run(explorer, runs):
    one = runs[0]
    explorer.mouse.move(*cell(explorer, 0, 7, (8, 8)))
    explorer.mouse.down()
    for x, y in ((3, 4), (6, 1), (5, 5)):
        explorer.mouse.move(*cell(explorer, x, y, (8, 8)), steps=3)
        settled(explorer)
        point = 8 * x + y
        compare(explorer, "outputs", one.draw()[point])
        compare(explorer, "truth", one.truth[point])
        assert said(explorer, "where") == f"x {x}, y {y}"
        assert said(explorer, "state") == ("seen" if (x, y) == (6, 1) else "held out")
    explorer.mouse.up()
    explorer.mouse.move(*cell(explorer, 0, 0, (8, 8)))
    settled(explorer)
    assert said(explorer, "where") == "x 5, y 5"


def test_images_of_different_points_differ(explorer):
    before = shown(explorer, '[data-image="outputs"] canvas')
    explorer.mouse.click(*cell(explorer, 0, 0, (8, 8)))
    settled(explorer)
    assert np.abs(shown(explorer, '[data-image="outputs"] canvas') - before).max() > 5


def test_prediction_and_nearest_image(explorer, runs):
    explorer.mouse.click(*cell(explorer, 2, 4, (8, 8)))
    settled(explorer)
    compare(explorer, "nearest", runs[0].truth[8 * 1 + 4])
    compare(explorer, "prediction", 1 - sum(part[0] for part in runs[0].parts_alone([8 * 2 + 4])))


def test_arrow_keys_move_the_point(explorer, runs):
    plane = explorer.locator('[data-map="error"]')
    plane.focus()
    x, y = 4, 4  # the middle of the hole, where it starts
    assert said(explorer, "where") == "x 4, y 4"
    for key, x, y in (
        ("ArrowLeft", 3, 4),
        ("ArrowUp", 3, 5),
        ("ArrowRight", 4, 5),
        ("ArrowDown", 4, 4),
        ("Shift+ArrowRight", 7, 4),
        ("Home", 0, 4),
        ("PageUp", 0, 7),
        ("End", 7, 7),
        ("PageDown", 7, 0),
        ("h", 4, 4),
    ):
        plane.press(key)
        settled(explorer)
        assert said(explorer, "where") == f"x {x}, y {y}"
    compare(explorer, "outputs", runs[0].draw()[8 * x + y])
    expect(explorer.locator('[data-say="live"]')).to_contain_text("x 4, y 4: held out. Error ")


def test_sliders_move_the_point_and_say_the_values(explorer):
    slider = explorer.locator('[data-axis="1"]')
    slider.focus()
    slider.press("End")
    settled(explorer)
    assert said(explorer, "where") == "x 4, y 7"
    assert slider.get_attribute("aria-valuetext").startswith("x 4, y 7: seen. Error ")


def test_a_finger_moves_the_point(explorer):
    explorer.touchscreen.tap(*cell(explorer, 6, 2, (8, 8)))
    settled(explorer)
    assert said(explorer, "where") == "x 6, y 2"


def test_the_switch_changes_run_task_and_hole(explorer, runs):
    explorer.get_by_label("one-hot, MLP, stripes + 9").check(force=True)
    expect(explorer.locator('[data-part="trained-key"]')).to_be_visible()
    settled(explorer)
    compare(explorer, "outputs", runs[1].draw()[8 * 4 + 4])
    assert explorer.locator('[data-map="error"] .trained').get_attribute("d").count("M") == 9
    explorer.locator(".runs input").nth(2).check(force=True)
    expect(explorer.locator('[data-image="truth"] canvas')).to_have_attribute("width", "10")
    settled(explorer)
    x, y = (int(part.split()[1]) for part in said(explorer, "where").split(", "))
    compare(explorer, "truth", runs[2].truth[10 * x + y])
    compare(explorer, "outputs", runs[2].draw()[10 * x + y])
    assert shown(explorer, '[data-map="error"] canvas').shape[:2] == (10, 10)


def test_the_error_map_is_brightest_where_the_error_is(explorer, runs):
    errors = (runs[0].draw() - runs[0].truth).square().mean((1, 2, 3)).reshape(8, 8)
    brightness = shown(explorer, '[data-map="error"] canvas')[::-1, :, 1].T  # viridis: ever more green
    pair = np.corrcoef(errors.log().flatten(), brightness.flatten())
    assert pair[0, 1] > 0.8


def test_the_layer_slider_shows_volume_and_tuning(explorer, runs):
    layers = runs[0].diagnosis.layers
    slider = explorer.locator('[data-control="layer"]')
    slider.focus()
    seen = {}
    for key in ("Home", "ArrowRight", "ArrowRight"):
        slider.press(key)
        settled(explorer)
        seen[said(explorer, "layer")] = shown(explorer, '[data-map="tuning"] canvas')
    assert list(seen) == list(layers) == ["code", "hidden1", "image"]
    assert (seen["hidden1"] != seen["image"]).any()
    tuning = layers["image"].tuning
    explorer.locator('[data-control="unit"]').press("ArrowRight")
    settled(explorer)
    assert said(explorer, "unit") == str(int(tuning.shown[1]))
    bright = shown(explorer, '[data-map="tuning"] canvas')[::-1, :, 0].T  # cividis: ever more red
    assert np.corrcoef(tuning.maps[1].flatten(), bright.flatten())[0, 1] > 0.95
    logs = layers["image"].geometry.volume.log10()
    colours = shown(explorer, '[data-map="volume"] canvas')[::-1, :, :].transpose(1, 0, 2).reshape(-1, 4)
    low, high = logs.argmin(), logs.argmax()
    assert colours[low, 0] >= colours[low, 1]  # squeezed: purple; stretched: green
    assert colours[high, 1] >= colours[high, 0]


def test_a_frame_is_short(page, written):
    page.add_init_script(
        """const plain = window.requestAnimationFrame.bind(window);
        window.frames_taken = [];
        window.requestAnimationFrame = (draw) => plain((now) => {
          const start = performance.now();
          draw(now);
          window.frames_taken.push(performance.now() - start);
        });"""
    )
    explorer = opened(page, written)
    explorer.locator('[data-map="error"]').focus()
    for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown") * 5:
        explorer.keyboard.press(key)
        settled(explorer)
    taken = explorer.evaluate("window.frames_taken")
    assert len(taken) >= 20
    assert np.median(taken) < 16


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1400, "light")])
def test_it_fits_the_screen(explorer, screenshot, width, scheme):
    explorer.set_viewport_size({"width": width, "height": 844})
    explorer.emulate_media(color_scheme=scheme)
    settled(explorer)
    assert explorer.evaluate("document.documentElement.scrollWidth") <= width
    cut = explorer.evaluate(
        """() => [...document.querySelectorAll("main *")].filter((one) => {
          const box = one.getBoundingClientRect();
          return box.width > 1 && !one.closest(".unseen") && (box.left < -1 || box.right > innerWidth + 1);
        }).map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert cut == []
    ground = explorer.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 200) == (scheme == "dark")
    screenshot(explorer, f"explorer-{width}-{scheme}")


def test_the_theme_button_goes_round(explorer):
    grounds = []
    for _ in range(3):
        explorer.locator("#theme").click()
        grounds.append(explorer.evaluate("getComputedStyle(document.body).backgroundColor"))
    light, dark, auto = grounds
    assert light == auto != dark


def test_it_prints(explorer, tmp_path):
    pdf = explorer.pdf(path=tmp_path / "explorer.pdf", format="A4", print_background=True)
    assert pdf.startswith(b"%PDF")


@pytest.mark.filterwarnings("ignore::composcope.runs.spec.NotComposition")
def test_one_factor_is_a_line(page, store, tmp_path):
    spec = line()
    run(spec, store)
    explorer = opened(page, write_explorer(store, [spec.run_id], tmp_path / "line.html"))
    assert said(explorer, "where") == "angle 180"
    explorer.locator('[data-map="error"]').press("ArrowRight")
    settled(explorer)
    assert said(explorer, "where") == "angle 200"
    compare(explorer, "outputs", store[spec.run_id].draw()[10])
    assert explorer.locator('[data-axis="1"]').is_hidden()


def test_hostile_text_is_only_text(page, store, tiny_spec, tmp_path):
    axes = (cs.Factor(HOSTILE, range(4)), cs.Factor("<img src=x onerror='window.hacked = true'>", range(4)))
    plain = cs.BumpTask(4)
    table = cs.TableTask(plain.grid(), plain.render(plain.grid()), axes, "dark").save(tmp_path / "table.npz")
    spec = replace(tiny_spec, task=table, holdout=cs.Square(1, 2))
    run(spec, store)
    path = write_explorer(store, [spec.run_id, HOSTILE], tmp_path / "hostile.html")
    explorer = opened(page, path)
    assert explorer.evaluate("window.hacked") is None
    assert said(explorer, "where").startswith(HOSTILE)
    assert HOSTILE in explorer.locator(".note").text_content()
    assert explorer.locator("main img").count() == 0


def test_a_page_without_runs_says_so(page, store, tmp_path):
    page.goto(write_explorer(store, ["0123"], tmp_path / "empty.html").as_uri())
    assert page.locator("#explorer").is_hidden()
    assert "There is no run to explore." in page.locator("main").text_content()


def test_pixels_beyond_the_truths_range_are_coloured():
    values = torch.tensor([[[-0.5, 0.0], [1.0, 1.5]]])
    assert drawn(values)[::-1].tolist() == [[[66, 135, 245], [0, 0, 0]], [[255, 255, 255], [217, 72, 1]]]


def test_any_two_of_three_factors_span_the_plane(page, tmp_path):
    store = cs.Store(tmp_path / "runs")
    three = run(tiny(task=cs.BumpTask(6, brightness=(0.2, 0.5, 1.0)), holdout=cs.Square(2, 3)), store)
    opened(page, write_explorer(store, [three.run_id], tmp_path / "page.html"))
    assert shown(page, '[data-map="error"] canvas').shape[:2] == (6, 6)
    page.select_option(".choice select", label="y and brightness")
    settled(page)
    assert shown(page, '[data-map="error"] canvas').shape[:2] == (3, 6)
    assert said(page, "x-name") == "y"
    page.mouse.click(*cell(page, 4, 2, (6, 3)))
    page.locator(".choice input:visible").fill("1")
    settled(page)
    assert said(page, "where") == "x 1, y 4, brightness 1"
    compare(page, "outputs", three.draw()[1 * 18 + 4 * 3 + 2])
    assert said(page, "state") == "seen"
    assert page.locator('[data-map="error"] .hole').get_attribute("d") == ""
    page.locator(".choice input:visible").fill("3")
    settled(page)
    assert page.locator('[data-map="error"] .hole').get_attribute("d") != ""
