"""The documentation site in a browser: opened from a folder, without a server or a network."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("sphinx")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "-b", "html", ROOT / "docs", folder]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture
def visit(browser, site):
    """Open a page of the site at a width; a request to anything but the folder fails the test."""
    context = browser.new_context()
    requests = []
    context.on("request", lambda made: None if made.url.startswith("file:") else requests.append(made.url))

    def open_page(name, width=1280, query=""):
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 900})
        page.goto((site / name).as_uri() + query)
        return page

    yield open_page
    context.close()
    assert not [address for address in requests if not address.startswith("data:")]


def test_search_works_offline(visit):
    page = visit("search.html", query="?q=superposes")
    page.wait_for_selector("#search-results li", timeout=20_000)
    assert "Read a diagnosis" in page.inner_text("#search-results")


def test_formulas_are_typeset(visit):
    page = visit("measures.html")
    assert page.locator("math").count() > 15
    assert page.locator("div.math mfrac").count() > 5
    assert "\\frac" not in page.inner_text("article")


@pytest.mark.parametrize(
    "name", ["index.html", "start.html", "idea.html", "measures.html", "mistakes.html", "api/runs.html"]
)
def test_pages_fit_a_phone(visit, name):
    page = visit(name, width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_every_image_is_there(visit):
    for name in ("index.html", "idea.html", "how_it_works.html", "figures/3.html"):
        page = visit(name)
        assert page.evaluate("[...document.images].filter(image => !image.naturalWidth).map(image => image.src)") == []


def test_the_live_report_opens(visit):
    page = visit("index.html")
    page.click("a[href='report.html']")
    page.wait_for_selector("#figure-cures")
