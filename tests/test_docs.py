"""Examples in the documentation work."""

import doctest
import importlib
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest

import composcope
import composcope as cs

ROOT = Path(__file__).parents[1]
MODULES = sorted(module.name for module in pkgutil.walk_packages(composcope.__path__, "composcope."))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOT_RUN = "<!-- not run -->"


def blocks_of(page, language):
    """The page's fenced code blocks in a language, except those marked as not run."""
    text = page.read_text() if page.exists() else ""
    for match in re.finditer(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if not text[: match.start()].rstrip().endswith(NOT_RUN):
            yield match.group(1)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name):
    module = importlib.import_module(name)
    results = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert results.failed == 0


def test_docstring_examples_are_found():
    finder = doctest.DocTestFinder()
    examples = sum(len(test.examples) for test in finder.find(importlib.import_module("composcope.holdouts.regions")))
    assert examples >= 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
@pytest.mark.usefixtures("no_new_kinds")
def test_python_on_the_pages_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks_of(page, "python"):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_toml_on_the_pages_parses(page):
    for block in blocks_of(page, "toml"):
        assert tomllib.loads(block)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.toml")), ids=lambda path: path.name)
def test_examples_are_specs_or_sweeps(path):
    tables = tomllib.loads(path.read_text())
    if "decoder" not in tables and "base" not in tables:  # a task for a user's own decoder
        tables["decoder"] = {"kind": "mlp"}
        specs = [cs.Spec.from_dict(tables)]
    elif "base" in tables:
        specs = cs.Sweep.from_toml(path).specs()
        assert len(specs) > 1
    else:
        specs = [cs.Spec.from_toml(path)]
    assert all(spec.run_id for spec in specs)


def test_example_sweep_has_eight_runs():
    assert len(cs.Sweep.from_toml(ROOT / "examples" / "sweep.toml").specs()) == 8


def test_files_named_on_the_pages_exist():
    for page in PAGES:
        if page.exists():
            for name in re.findall(r"examples/[\w.]+\.toml", page.read_text()):
                assert (ROOT / name).exists(), f"{page.name} names {name}"
