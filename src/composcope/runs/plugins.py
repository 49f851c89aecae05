"""Users' own components: from files named on the command line, and from installed packages."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from composcope.errors import BadInput

GROUP = "composcope.components"


def load_plugin(path: str | Path) -> ModuleType:
    """Run a Python file, so that what it registers can be named in specs. Only load files that you trust."""
    file = Path(path).resolve()
    if not file.is_file() or file.suffix != ".py":
        raise BadInput(f"{str(path)!r}: there is no such Python file (looked for {str(file)!r})")
    with importing_from(file):
        return _packaged(file) if (file.parent / "__init__.py").exists() else _alone(file, path)


@contextmanager
def importing_from(file: Path) -> Iterator[None]:
    """The file's folder first among those that are searched, as if Python ran the file; afterwards it is the last.

    So the file may import its siblings, at once or later. Of a file in a package it is the folder that has the package.
    """
    folder = file.parent
    while (folder / "__init__.py").exists():
        folder = folder.parent
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        if str(folder) not in sys.path:
            sys.path.append(str(folder))


def _packaged(file: Path) -> ModuleType:
    """A file of a package, imported under its name there, so that relative imports work."""
    parts, folder = [file.stem] if file.stem != "__init__" else [], file.parent
    while (folder / "__init__.py").exists():
        parts, folder = [folder.name, *parts], folder.parent
    try:
        return importlib.import_module(".".join(parts))
    except (Exception, SystemExit) as error:
        raise BadInput(f"{str(file)!r} cannot be loaded: {type(error).__name__}: {error}") from error


def _alone(file: Path, path: str | Path) -> ModuleType:
    name = f"composcope_plugin_{file.stem}"
    module_spec = importlib.util.spec_from_file_location(name, file)
    assert module_spec is not None
    assert module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[name] = module
    try:
        module_spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise BadInput(f"{str(path)!r} cannot be loaded: {type(error).__name__}: {error}") from error
    return module


def load_installed_plugins() -> None:
    """Import what installed packages declare under the entry-point group "composcope.components"."""
    for entry in entry_points(group=GROUP):
        entry.load()
