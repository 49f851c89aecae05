"""Pages opened in a real browser: any error in the console, and any request but for the page itself, fails the test."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ARTEFACTS = Path(__file__).parent / "artefacts"
QUIET = ["background-networking", "component-update", "sync", "quic", "gpu"]
ARGUMENTS = ["--no-sandbox", "--no-first-run", *(f"--disable-{what}" for what in QUIET)]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on this machine: the pages were not tried in a browser (`apt install chromium`)")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page 1400 pixels wide, watched; `page.goto(path.as_uri())` opens a file."""
    context = browser.new_context(viewport={"width": 1400, "height": 900}, has_touch=True)
    opened = context.new_page()
    opened.set_default_timeout(20_000)
    complaints: list[str] = []
    requests: list[str] = []
    opened.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on(
        "request",
        lambda made: None if made.is_navigation_request() and made.url[:5] == "file:" else requests.append(made.url),
    )
    yield opened
    context.close()
    assert not complaints, f"the page complained: {complaints}"
    assert not requests, f"the page asked for more than itself: {requests}"


@pytest.fixture
def screenshot() -> Callable[[Page, str], None]:
    """`screenshot(page, name)`: the whole page as a PNG, to be looked at, if there is a folder `artefacts`."""

    def take(page: Page, name: str) -> None:
        if ARTEFACTS.is_dir():
            page.screenshot(path=ARTEFACTS / f"{name}.png", full_page=True)

    return take
