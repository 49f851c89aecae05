"""Imports point up the page only; each heavy or dangerous thing stays in its room."""

import ast
import importlib
from functools import cache
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
    {"readers"},
    {"diagnosis"},
    {"runs"},
    {"store"},
    {"workers"},
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


@cache
def nodes_of(path, kind):
    """All nodes of this kind in a file."""
    return [node for node in all_nodes(path) if isinstance(node, kind)]


@cache
def all_nodes(path):
    return list(ast.walk(ast.parse(path.read_text())))


@cache
def imports_of(path):
    """Every module that a file imports, late imports and those for type checking included."""
    package = module_of(path) if path.name == "__init__.py" else module_of(path).rpartition(".")[0]
    modules = {alias.name for node in nodes_of(path, ast.Import) for alias in node.names}
    for node in nodes_of(path, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            base = ".".join([*package.split(".")[: len(package.split(".")) - node.level + 1], base]).rstrip(".")
        modules |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return modules


def rooms_imported_by(path):
    found = {room_of(name) for name in imports_of(path) if name.split(".")[0] == "composcope"}
    return {room for room in found if room in LINE}


def label(path):
    return str(path.relative_to(SOURCE))


@cache
def calls_of(path):
    """What a file calls, by name: print, torch.load, pickle.loads; with the call itself."""
    return [(ast.unparse(node.func), node) for node in nodes_of(path, ast.Call)]


def names_called(path):
    return {name for name, _ in calls_of(path)}


def offenders(wrong, paths=FILES):
    """What `wrong(path)` finds, by file, where it finds something."""
    return {label(path): problem for path in paths if (problem := wrong(path))}


def test_every_room_is_on_the_page():
    rooms = {room_of(module_of(path)) for path in FILES} - {None}
    assert rooms <= set(LINE)


def test_imports_point_up_the_page():
    def beside_or_below(path):
        room = room_of(module_of(path))
        line = LINE.get(room, -1)  # the package itself imports no room
        return {other for other in rooms_imported_by(path) if LINE[other] >= line and other != room}

    assert not offenders(beside_or_below)


def test_imports_are_really_found():
    run = SOURCE / "runs" / "run.py"
    assert {"errors", "holdouts", "diagnosis", "training"} <= rooms_imported_by(run)
    assert "torch" in imports_of(run)


def test_measures_never_see_a_module_or_a_task():
    def seen(path):
        modules = {name for name in imports_of(path) if name.startswith("torch.nn") and "functional" not in name}
        return modules | rooms_imported_by(path) - {"errors", "factors", "randomness", "measures"}

    assert not offenders(seen, [path for path in FILES if "measures" in path.parts])


def draws(path):
    return path.name.startswith("drawing")


def test_matplotlib_stays_in_drawings():
    def imported(path):
        return {name for name in imports_of(path) if name.split(".")[0] == "matplotlib"}

    assert not offenders(imported, [path for path in FILES if not draws(path)])


def test_drawings_never_train():
    def imported(path):
        return rooms_imported_by(path) & {"training", "runs", "store", "workers", "decoders", "sampling"}

    assert not offenders(imported, [path for path in FILES if draws(path)])


def test_a_study_knows_no_paper():
    def known(path):
        names = {name.split(".")[-1] for name in imports_of(path)}
        return rooms_imported_by(path) & {"papers"} | names & {"BumpTask", "Stripes", "LowRank"}

    assert not offenders(known, [path for path in FILES if "study" in path.parts])


def test_library_prints_nothing():
    def printing(path):
        return names_called(path) & {"print", "sys.stdout.write", "sys.stderr.write", "typer.echo"}

    assert not offenders(printing, [path for path in FILES if room_of(module_of(path)) not in ("cli", "terminal")])


def test_nothing_is_loaded_by_running_it():
    """torch.load only with weights_only: tensors and plain data, nothing that runs."""

    def running(path):
        modules = {name.split(".")[0] for name in imports_of(path)}
        loads = {ast.unparse(node) for name, node in calls_of(path) if name == "torch.load"}
        return (
            modules & {"pickle", "dill", "cloudpickle", "shelve", "joblib"}
            | names_called(path) & {"torch.save", "eval", "exec", "os.system"}
            | {load for load in loads if "weights_only=True" not in load}
        )

    assert not offenders(running)


def test_no_machine_is_named():
    assert not offenders(lambda path: {name for name in ("/work" + "/", "/home/") if name in path.read_text()})


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
    for called, node in calls_of(path):
        name = called.rpartition(".")[2]
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


def test_files_are_written_by_the_atomic_writer_alone():
    # the contents of files that others write
    in_memory = {"plain.py", "study/drawing.py", "study/reproduce.py", "workers/sweeps.py"}
    others = [path for path in FILES if label(path) not in WRITERS and label(path) not in in_memory]
    assert not offenders(lambda path: set(writing_calls(path)), others)


def test_the_exceptions_do_write():
    for name in WRITERS:
        assert set(writing_calls(SOURCE / name)), name


def test_no_room_has_the_name_of_a_public_function():
    """Importing a package `report` would hide a function `cs.report`."""
    rooms = {room_of(module_of(path)) for path in FILES} - {None}
    assert not rooms & set(composcope.__all__)
