"""The report and the diagnosis page in a real browser: everything is there, opens, sorts, filters, fits and prints."""

import io
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import expect
from pypdf import PdfReader

import composcope as cs
from composcope.pages.diagnosis_page import write_diagnosis_page
from composcope.pages.page import write_page
from composcope.pages.report import report_text, write_report
from composcope.pages.runs import run_row
from composcope.runs.pipeline import run
from pages import BROKEN, HOSTILE, MISSING, SEEN, STRIPES, TURNED, UNDIAGNOSED, claims, filled, made_up, tiny


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A store with runs in every state."""
    return filled(cs.Store(tmp_path_factory.mktemp("report") / "runs"))


@pytest.fixture(scope="module")
def written(runs, tmp_path_factory):
    return write_report(made_up(runs), tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture
def report(page, written):
    page.goto(written.as_uri())
    return page


def opened(page, spec):
    """Open a run's row and wait until its maps are drawn."""
    page.locator(f'[aria-controls="run-{spec.run_id}"]').click()
    part = page.locator(f"#run-{spec.run_id}")
    expect(part).to_be_visible()
    if part.locator(".diagnosis").count():
        page.wait_for_function(
            "(id) => document.querySelector(`#${id} .scale .high`).textContent", arg=f"run-{spec.run_id}"
        )
    return part


def pixels(canvas):
    """A canvas as (rows, columns, rgba)."""
    width, height, flat = canvas.evaluate(
        """(canvas) => {
          const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
          copy.drawImage(canvas, 0, 0);
          const pixels = copy.getImageData(0, 0, canvas.width, canvas.height).data;
          return [canvas.width, canvas.height, [...pixels]];
        }"""
    )
    return np.array(flat, dtype=np.uint8).reshape(height, width, 4)


def column(page, table, number):
    return page.locator(f"{table} > tbody > tr:first-child > *:nth-child({number})").all_inner_texts()


def fits(page):
    width, room = page.evaluate("[document.scrollingElement.scrollWidth, innerWidth]")
    return width <= room


def test_the_ledger_lists_every_claim(report):
    for judgement in claims():
        row = report.locator(f"#claim-{judgement.number}")
        expect(row).to_contain_text(judgement.statement)
        expect(row.locator(".outcome").first).to_have_text(judgement.outcome)
    links = report.locator("#claim-3 tr:first-child a")
    assert links.all_inner_texts() == ["2a"]
    links.click()
    expect(report.locator("#figure-2a")).to_be_in_viewport()


def test_a_claim_opens_to_its_parts(report):
    more = report.locator("#claim-2-more")
    expect(more).to_be_hidden()
    button = report.locator("#claim-2 button.opener")
    button.focus()
    report.keyboard.press("Enter")
    expect(more).to_be_visible()
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(more).to_contain_text("the other effect: 0.200")
    assert more.locator("svg.strip").count() == 2
    button.click()
    expect(more).to_be_hidden()


def test_tables_sort_by_numbers_and_words(report):
    head = report.locator("#ledger thead th").nth(0)
    assert column(report, "#ledger", 1) == ["1", "2", "3", "24"]
    head.locator("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    head.locator("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    assert column(report, "#ledger", 1) == ["24", "3", "2", "1"]
    report.locator("#ledger thead th").nth(2).locator("button").click()
    assert head.get_attribute("aria-sort") is None
    assert column(report, "#ledger", 3) == ["not reproduced", "reproduced", "reproduced", "undetermined"]


def test_the_numbers_behind_a_figure_sort(report):
    figure = report.locator("#figure-1b")
    figure.locator("summary").click()
    cells = figure.locator("tbody td:nth-child(3)")
    figure.locator("thead button").nth(2).click()
    assert cells.all_inner_texts() == ["1.00e-04", "0.020", "0.500"]
    figure.locator("thead button").nth(1).click()
    assert figure.locator("tbody td:nth-child(2)").all_inner_texts() == ["0", "1", "10"]


def test_sorting_keeps_an_opened_run_with_its_row(report):
    opened(report, SEEN)
    report.locator("#runs-table thead button").nth(1).click()
    owner = report.locator(f'tbody:has([aria-controls="run-{SEEN.run_id}"])')
    expect(owner.locator(".diagnosis")).to_be_visible()


def test_runs_can_be_filtered(report):
    rows = report.locator("#runs-table > tbody:visible")
    everything = rows.count()
    assert everything == 8
    report.get_by_label("Filter", exact=True).fill("stripes")
    expect(rows).to_have_count(1)
    expect(report.locator("#filter-count")).to_have_text("1 of 8 runs")
    report.get_by_label("Filter", exact=True).fill("bump MLP seed=5")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("missing")
    report.get_by_role("button", name="Clear").click()
    expect(rows).to_have_count(everything)
    kind = report.locator(f'tbody:has([aria-controls="run-{SEEN.run_id}"])').get_attribute("data-verdict")
    report.get_by_label("Verdict", exact=True).select_option(kind)
    assert {rows.nth(i).get_attribute("data-verdict") for i in range(rows.count())} == {kind}
    report.locator("#figure-1b a[data-filter]").click()
    expect(rows).to_have_count(2)


def test_a_run_opens_to_its_diagnosis(report, runs):
    part = opened(report, SEEN)
    expect(part).to_contain_text(f"It {run_row(runs, SEEN.run_id).kind}")
    truth = pixels(part.locator('canvas[data-draw="samples"]').first)
    assert truth.shape[0] == truth.shape[1]
    expected = runs.run_folder(SEEN.run_id).diagnosis().samples.truth[0, 0].flip(0).numpy()
    step = truth.shape[0] // 8
    assert np.abs(truth[::step, ::step, 0] / 255 - expected).max() < 0.01
    assert len(np.unique(pixels(part.locator('canvas[data-draw="error"]'))[..., :3].reshape(-1, 3), axis=0)) > 10
    outline = part.locator("svg.outline path").first
    assert outline.get_attribute("d") == "M2 2H6M2 6H6M2 2V6M6 2V6"


def test_the_layer_slider_changes_the_map(report):
    part = opened(report, SEEN)
    slider = part.get_by_role("slider")
    volume = part.locator('canvas[data-draw="volumes"]')
    last = pixels(volume)
    expect(part.locator(".layer-name")).to_contain_text("image")
    slider.focus()
    report.keyboard.press("ArrowLeft")
    expect(part.locator(".layer-name")).to_contain_text("hidden1")
    assert slider.get_attribute("aria-valuetext") == "hidden1"
    assert (pixels(volume) != last).any()
    cursor = part.locator(".by-layer .cursor").first
    at = float(cursor.get_attribute("x1"))
    report.keyboard.press("ArrowLeft")
    assert float(cursor.get_attribute("x1")) < at
    expect(part.locator(".layer-name")).to_contain_text("code")


def test_one_factor_and_runs_without_a_diagnosis_open_too(report):
    part = opened(report, TURNED)
    assert pixels(part.locator('canvas[data-draw="error"]')).shape[0] == 28
    expect(opened(report, UNDIAGNOSED)).to_contain_text(f"not diagnosed: composcope measure {UNDIAGNOSED.run_id}")
    expect(opened(report, BROKEN)).to_contain_text("its diagnosis cannot be read")
    expect(opened(report, MISSING)).to_contain_text("not run yet")


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1400, "light")])
def test_it_fits_narrow_and_wide_light_and_dark(page, written, screenshot, width, scheme):
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.goto(written.as_uri())
    page.locator("#claim-2 button.opener").click()
    opened(page, STRIPES)
    opened(page, TURNED)
    for summary in page.locator("summary:visible").all():
        summary.click()
    assert fits(page)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in ground[4:-1].split(",")) / 3
    assert (brightness < 64) == (scheme == "dark")
    screenshot(page, f"report-{width}-{scheme}")


def test_the_theme_goes_round(report):
    ground = "getComputedStyle(document.body).backgroundColor"
    grounds = []
    for _ in range(3):
        grounds.append(report.evaluate(ground))
        report.locator("#theme").click()
    assert len(set(grounds)) == 2
    assert report.evaluate(ground) == grounds[0]


def test_it_prints_with_nothing_cut(page, written):
    page.goto(written.as_uri())
    opened(page, SEEN)
    printed = PdfReader(io.BytesIO(page.pdf(format="A4")))
    text = " ".join(sheet.extract_text() for sheet in printed.pages)
    text = " ".join(unicodedata.normalize("NFKC", text).split())  # without ligatures
    for said in (*(judgement.statement for judgement in claims()), "the other effect", "Note on 1."):
        assert said in text
    assert "1.00e-04" in text, "the table behind the figure is folded away"
    assert "torch" in text, "the footer is missing"
    assert MISSING.run_id not in text
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 688, "height": 900})  # A4 less its margins
    assert fits(page)
    wide = page.evaluate(
        """() => [...document.querySelectorAll("body *")]
          .filter((one) => one.checkVisibility() && !one.closest(".unseen, svg"))
          .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
          .map((one) => one.outerHTML.slice(0, 100))"""
    )
    assert wide == []


@pytest.mark.slow
def test_two_hundred_runs_are_small_and_open_fast(page, tmp_path):
    store = cs.Store(tmp_path / "runs")
    spec = tiny(task=cs.BumpTask(28), holdout=cs.Square(6, 22), decoder=cs.MLP(depth=6, width=8))
    run(spec, store)
    store[spec.run_id].measure()
    one = run_row(store, spec.run_id)
    records = [replace(one.record, run_id=f"{number:016x}") for number in range(199)]
    rows = [one, *(replace(one, record=record, composition=False) for record in records)]
    path = write_page(report_text(made_up(store), rows), tmp_path / "report.html")
    assert path.stat().st_size < 30e6
    times = []
    for _ in range(3):
        page.goto(path.as_uri())
        times.append(page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"))
    assert min(times) < 2000, f"{path.stat().st_size / 1e6:.1f} MB opened in {times} ms"


def test_hostile_names_do_nothing(page, tmp_path):
    store = cs.Store(tmp_path / "runs")
    store.save_failure(SEEN, HOSTILE, {"torch": HOSTILE})
    made = made_up(store)
    made.panels[0].rows[0]["code"] = HOSTILE
    page.on("dialog", lambda dialog: pytest.fail(f"the page ran {dialog.message}"))
    page.goto(write_report(made, tmp_path / "report.html").as_uri())
    expect(opened(page, SEEN)).to_contain_text(HOSTILE)


@pytest.mark.parametrize("width", [390, 1400])
def test_the_diagnosis_page(page, runs, tmp_path, screenshot, width):
    found = runs.run_folder(STRIPES.run_id).diagnosis()
    path = write_diagnosis_page(found, tmp_path / "page.html", "One decoder", STRIPES)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(path.as_uri())
    expect(page.locator(".headline")).to_contain_text(f"It {found.verdict.kind}")
    page.wait_for_function("() => document.querySelector('.scale .high').textContent")
    assert fits(page)
    screenshot(page, f"diagnosis-{width}")


@pytest.mark.parametrize("width", [390, 1400])
def test_the_plane_of_a_diagnosis_of_three_factors_can_be_chosen(page, tmp_path, screenshot, width):
    task = cs.BumpTask(6, brightness=(0.2, 0.5, 1.0))
    module = cs.MLP(depth=1, width=8).build((6, 6, 3), task.image_shape)
    found = cs.diagnose(module, task, cs.Square(2, 3), cs.Bump())
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(found.write_page(tmp_path / "page.html").as_uri())
    page.wait_for_selector(".choice select")

    def shape(name):
        return page.evaluate(
            f"() => (({{ width, height }}) => width / height)(document.querySelector('canvas[data-draw={name}]'))"
        )

    border = page.locator("svg.outline path").first
    assert (shape("error"), shape("volumes")) == (1, 1)
    assert page.locator(".choice .slider:visible").text_content() == "brightness 0.5"
    page.select_option(".choice select", label="x and brightness")
    assert (shape("error"), shape("volumes"), shape("tuning"), shape("classes")) == (2, 2, 2, 2)
    assert border.get_attribute("d") != ""
    page.locator(".choice input:visible").fill("0")
    assert border.get_attribute("d") == ""
    assert fits(page)
    screenshot(page, f"three-factors-{width}")
