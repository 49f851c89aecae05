"""Examples in the documentation work."""

import doctest
import importlib
import pkgutil
import re
import runpy
import shlex
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import torch
import typer

import composcope
import composcope as cs
from composcope.cli import app

ROOT = Path(__file__).parents[1]
MODULES = sorted(module.name for module in pkgutil.walk_packages(composcope.__path__, "composcope."))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Marks before a block: it needs what tests do not have (a network, another machine), or it takes minutes. Commands are
# parsed even so.
NOT_RUN = ("<!-- not run -->", "<!-- parsed -->")
COMMANDS = typer.main.get_command(app).commands


def blocks_of(page, language):
    """The page's fenced code blocks in a language, except those marked as not run."""
    text = page.read_text() if page.exists() else ""
    for match in re.finditer(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if not text[: match.start()].rstrip().endswith(NOT_RUN):
            yield match.group(1)


def test_docstring_examples_run():
    failed = []
    for name in MODULES:
        torch.manual_seed(0)
        if doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed:
            failed.append(name)
    assert not failed  # the report of each is in the output


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


# Commands on the pages


def commands_of(block):
    """The words of each line that calls composcope, without a comment at its end."""
    lines = [line.strip() for line in block.replace("\\\n", " ").splitlines()]
    lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")] or lines  # the others are output
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("composcope ")]


def named_commands(page):
    """Every command on a page: in fenced and indented blocks, and in backticks if it begins with a command's name."""
    text = page.read_text()
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    blocks += re.findall(r"^ {4}(composcope .*)$", text, re.MULTILINE)
    blocks += [line for line in re.findall(r"`(composcope [^`]+)`", text) if line.split()[1] in COMMANDS]
    return [words for block in blocks for words in commands_of(block)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_on_the_pages_can_be_parsed(page):
    for words in named_commands(page):
        if not words or words[0].startswith("-"):
            continue
        assert words[0] in COMMANDS, f"composcope {' '.join(words)}"
        command = COMMANDS[words[0]]
        if len(words) > 1 or not any(parameter.required for parameter in command.params):
            command.make_context(words[0], words[1:])  # raises on an option or argument that does not exist


@pytest.fixture
def newcomer(tmp_path, monkeypatch):
    """A folder as a newcomer has it, with what the pages refer to."""
    monkeypatch.setattr("composcope.study.study._registered", {})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


@pytest.mark.parametrize("page", [p for p in PAGES if any(blocks_of(p, "sh"))], ids=lambda page: page.stem)
@pytest.mark.usefixtures("no_new_kinds")
def test_commands_on_the_pages_run(page, newcomer, composcope):
    for block in blocks_of(page, "sh"):
        for words in commands_of(block):
            result = composcope(*words)
            assert result.code == 0, f"composcope {' '.join(words)}: {result.err}"


WRONG = """
from torch import nn

def too_small():
    return nn.Sequential(nn.Linear(32, 64), nn.Unflatten(1, (1, 8, 8)))

def other_code():
    return nn.Sequential(nn.Linear(30, 256), nn.Unflatten(1, (1, 16, 16)))
"""


def test_mistakes_get_the_messages_on_their_page(newcomer, composcope):
    composcope("init", "spec.toml")
    (newcomer / "newer.toml").write_text((newcomer / "spec.toml").read_text().replace("version = 1", "version = 2"))
    (newcomer / "broken.py").write_text("import composcope\nclass\n")
    (newcomer / "wrong.py").write_text(WRONG)
    (newcomer / "later").mkdir()
    (newcomer / "later" / "store.json").write_text('{"format": 99}')
    tried = 0
    for block in blocks_of(ROOT / "docs" / "mistakes.md", "console"):
        for part in block.split("$ ")[1:]:
            command, _, message = part.partition("\n")
            result = composcope(*shlex.split(command)[1:])
            expected = ".*".join(map(re.escape, message.strip().split("...")))
            assert re.search(expected, result.err.strip(), re.DOTALL), (command, result.err)
            assert (result.code == 0) == message.startswith("warning")
            tried += 1
    assert tried >= 12


# The site


def test_the_reference_has_every_public_name():
    pages = " ".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.md"))
    missing = [name for name in cs.__all__ if not re.search(rf"(composcope|cs)\.{name}\b", pages)]
    assert missing == []


def test_files_named_on_the_pages_exist():
    for page in PAGES:
        if page.exists():
            for name in re.findall(r"examples/[\w.]+\.toml", page.read_text()):
                assert (ROOT / name).exists(), f"{page.name} names {name}"


def test_the_outcomes_in_the_readme_are_those_of_the_ledgers():
    """Its table has every claim once; a row's claims share their outcomes, "seen at 16x16" as "seen"."""
    made = runpy.run_path(str(ROOT / "docs" / "claims_table.py"))
    quick, paper = ({n: claim["outcome"] for n, claim in made["ledger"](name).items()} for name in ("quick", "paper"))
    text = (ROOT / "README.md").read_text()
    section = text[text.index("## Does the paper hold?") :].split("\n## ")[0]
    found = {}
    for said, small, large in re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| [^|]+ \|$", section, re.M)[1:]:
        for number in re.findall(r"\((\d+)\b", said):
            assert int(number) not in found
            found[int(number)] = small, large
    assert found == {n: tuple(outcome.split(" at ")[0] for outcome in (quick[n], paper[n])) for n in quick}
    counts = Counter(outcome.split(" at ")[0] for outcome in paper.values())
    for outcome, count in counts.items():
        words = {"not run": "ha(ve|s) no runs yet"}.get(outcome, outcome)
        assert re.search(rf"\b{count} (are\s)?{words}", section), (outcome, count)


@pytest.mark.parametrize("name", ["quick", "quick-torch", "paper"])
def test_the_ledgers_are_what_their_evidence_gives(name, composcope, tmp_path):
    folder = ROOT / "results" / name
    assert composcope("claims", "--evidence", folder / "evidence.json", "--out", tmp_path).code == 0
    for file in ("claims.md", "claims.json"):
        again = f"composcope claims --evidence results/{name}/evidence.json --out results/{name}"
        assert (folder / file).read_text() == (tmp_path / file).read_text(), f"write it again: {again}"


def test_no_outcome_depends_on_the_kernels():
    """Undetermined is another matter: near the threshold rounding decides."""
    made = runpy.run_path(str(ROOT / "docs" / "claims_table.py"))
    ours, torchs = made["ledger"]("quick"), made["ledger"]("quick-torch")
    assert ours.keys() == torchs.keys()
    assert not [number for number in ours if {ours[number]["holds"], torchs[number]["holds"]} == {True, False}]


def test_the_table_of_claims_is_that_of_the_ledgers():
    made = runpy.run_path(str(ROOT / "docs" / "claims_table.py"))
    expected = made["table"](made["ledger"]("quick"), made["ledger"]("paper"))
    assert expected in made["PAGE"].read_text(), "write it again: python docs/claims_table.py"
