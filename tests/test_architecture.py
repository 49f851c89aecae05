"""Imports point up the page only; each heavy or dangerous thing stays in its room."""

import ast
import importlib
from pathlib import Path

import pytest
import torch
from jaxtyping import TypeCheckError

import composcope

SOURCE = Path(composcope.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# The page of the design, from top to bottom. A room may import those of earlier lines, and itself.
PAGE = [
    {"errors", "randomness", "factors", "files", "plain", "words", "display", "user_cache"},
    {"components"},
    {"tasks", "fastconv", "terminal"},
    {"holdouts", "encodings", "decoders", "measures"},
    {"verdict"},
    {"sampling", "penalties", "activations"},
    {"training"},
    {"diagnosis"},
    {"runs", "store", "workers"},
    {"forecasts"},
    {"study"},
    {"papers", "pages", "monitor"},
    {"cli"},
]
LINE = {room: line for line, rooms in enumerate(PAGE) for room in rooms}


def room_of(module):
    """`composcope.tasks.bump` -> tasks; the package itself, which only names its rooms, is none."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else None


def module_of(path):
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path):
    """Every module that a file imports, late imports and those for type checking included."""
    package = module_of(path) if path.name == "__init__.py" else module_of(path).rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*package.split(".")[: len(package.split(".")) - node.level + 1], base]).rstrip(".")
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def rooms_imported_by(path):
    found = {room_of(name) for name in imports_of(path) if name.split(".")[0] == "composcope"}
    return {room for room in found if room in LINE}


def label(path):
    return str(path.relative_to(SOURCE))


def names_called(path):
    """Names of what a file calls: print, torch.load, pickle.loads."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def test_every_room_is_on_the_page():
    rooms = {room_of(module_of(path)) for path in FILES} - {None}
    assert rooms <= set(LINE)


@pytest.mark.parametrize("path", FILES, ids=label)
def test_imports_point_up_the_page(path):
    room = room_of(module_of(path))
    if room is None:
        assert not rooms_imported_by(path)
        return
    beside_or_below = {other for other in rooms_imported_by(path) if LINE[other] >= LINE[room] and other != room}
    assert not beside_or_below


def test_imports_are_really_found():
    run = SOURCE / "runs" / "run.py"
    assert {"errors", "holdouts", "diagnosis", "training"} <= rooms_imported_by(run)
    assert "torch" in set(imports_of(run))


@pytest.mark.parametrize("path", [path for path in FILES if "measures" in path.parts], ids=label)
def test_measures_never_see_a_module_or_a_task(path):
    assert rooms_imported_by(path) <= {"errors", "factors", "randomness", "measures"}
    assert not {name for name in imports_of(path) if name.startswith("torch.nn") and "functional" not in name}


def draws(path):
    return path.name.startswith("drawing")


@pytest.mark.parametrize("path", [path for path in FILES if not draws(path)], ids=label)
def test_matplotlib_stays_in_drawings(path):
    assert not {name for name in imports_of(path) if name.split(".")[0] == "matplotlib"}


@pytest.mark.parametrize("path", [path for path in FILES if draws(path)], ids=label)
def test_drawings_never_train(path):
    assert not rooms_imported_by(path) & {"training", "runs", "store", "workers", "decoders", "sampling"}


@pytest.mark.parametrize("path", [path for path in FILES if "study" in path.parts], ids=label)
def test_a_study_knows_no_paper(path):
    assert "papers" not in rooms_imported_by(path)
    assert not {"BumpTask", "Stripes", "LowRank"} & {name.split(".")[-1] for name in imports_of(path)}


@pytest.mark.parametrize("path", FILES, ids=label)
def test_library_prints_nothing(path):
    if room_of(module_of(path)) not in ("cli", "terminal"):
        assert not {"print", "sys.stdout.write", "sys.stderr.write", "typer.echo"} & set(names_called(path))


@pytest.mark.parametrize("path", FILES, ids=label)
def test_nothing_is_loaded_by_running_it(path):
    modules = {name.split(".")[0] for name in imports_of(path)}
    assert not modules & {"pickle", "dill", "cloudpickle", "shelve", "joblib"}
    assert not {"torch.save", "eval", "exec", "os.system"} & set(names_called(path))
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load":
            assert "weights_only=True" in ast.unparse(node)  # tensors and plain data, nothing that runs


@pytest.mark.parametrize("path", FILES, ids=label)
def test_no_machine_is_named(path):
    text = path.read_text()
    assert "/work" + "/" not in text
    assert "/home/" not in text


def test_public_names_resolve():
    assert composcope.__all__
    for name in composcope.__all__:
        assert getattr(composcope, name) is not None


def test_public_names_are_those_of_the_stub():
    stub = ast.parse((SOURCE / "__init__.pyi").read_text())
    imported = {alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    listed = next(
        ast.literal_eval(node.value)
        for node in stub.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    assert set(listed) == imported | {"__version__"}
    assert listed == sorted(listed, key=lambda name: (not name.isupper(), not name[0].isupper(), name))


def test_a_public_class_is_importable_from_its_room():
    for name in composcope.__all__:
        value = getattr(composcope, name)
        if isinstance(value, type):
            assert hasattr(importlib.import_module(value.__module__), name)


def test_shapes_are_checked_while_the_tests_run():
    with pytest.raises(TypeCheckError):
        composcope.BumpTask(8).render(torch.zeros(3))


WRITERS = {
    "files.py": "the one that does",
    "tasks/table.py": "the user's own table, where the user says",
    "fastconv/build.py": "the compiler writes",
}
"""Files that may write files by themselves, and why; everything else goes through `files.write_atomically`."""


def writing_calls(path):
    """Calls that open a file for writing or write one by name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        modes = [
            argument.value
            for argument in [*node.args, *(word.value for word in node.keywords)]
            if isinstance(argument, ast.Constant)
        ]
        if name in (
            "write_text",
            "write_bytes",
            "savez",
            "savez_compressed",
            "save_file",
            "to_csv",
            "to_json",
            "savefig",
        ) or (
            name in ("open", "fdopen", "NamedTemporaryFile")
            and any(isinstance(mode, str) and set(mode) & set("wax+") and len(mode) <= 3 for mode in modes)
        ):
            yield name


@pytest.mark.parametrize("path", FILES, ids=label)
def test_files_are_written_by_the_atomic_writer_alone(path):
    in_memory = {
        "plain.py",
        "study/drawing.py",
        "study/reproduce.py",
        "store/summary.py",
    }  # the contents of files that others write
    if label(path) not in WRITERS and label(path) not in in_memory:
        assert not set(writing_calls(path))


def test_the_exceptions_do_write():
    for name in WRITERS:
        assert set(writing_calls(SOURCE / name)), name


def test_no_room_has_the_name_of_a_public_function():
    """Importing a package `report` would hide a function `cs.report`."""
    rooms = {room_of(module_of(path)) for path in FILES} - {None}
    assert not rooms & set(composcope.__all__)
