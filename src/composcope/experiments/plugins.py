"""Users' own components: from files named on the command line, and from installed packages."""

import importlib.util
import sys
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
