"""The package: what it declares, what importing it costs, and that the built wheel works by itself."""

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import composcope as cs

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
HEAVY = {"torch", "numpy", "pandas", "matplotlib", "scipy", "sklearn", "skimage", "PIL"}


def modules_after(code):
    """The modules that a new process has loaded after running the code."""
    code = f"import atexit, sys; atexit.register(lambda: print('modules:', *sys.modules))\n{code}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(result.stdout.splitlines()[-1].split())


# Loading torch alone takes more than a second; what is left is far below 0.2 s, whatever else the machine does.


def test_importing_the_package_loads_nothing_heavy():
    loaded = modules_after("import composcope")
    assert "composcope" in loaded
    assert not loaded & (HEAVY | {"pydantic", "typer", "rich"})


@pytest.mark.parametrize("arguments", [["--help"], [], ["diagnose", "--help"]], ids=str)
def test_help_loads_nothing_heavy(arguments):
    loaded = modules_after(f"from composcope.cli import main; main({arguments})")
    assert "typer" in loaded
    assert not loaded & HEAVY


def test_the_extra_all_names_every_extra_for_users():
    extras = PROJECT["optional-dependencies"]
    named = set(re.findall(r"composcope\[([\w,-]+)\]", " ".join(extras["all"])))
    assert set(",".join(named).split(",")) == set(extras) - {"all", "dev", "docs"}


def test_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE).group(1) == cs.__version__
    assert f"## {cs.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_workflow_tests_the_declared_versions():
    declared = [text.rpartition(" ")[2] for text in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", text)]
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert "make test\n" in workflow
    assert re.findall(r'"(3\.\d+)"', workflow.partition("python: [")[2].partition("]")[0]) == declared


# The wheel, in an environment of its own

SMOKE = """
import pathlib, sys
import composcope as cs

assert pathlib.Path(cs.__file__).is_relative_to(sys.prefix), cs.__file__
task = cs.RotationTask()
images = task.render(task.grid()[:2])
assert images.isfinite().all() and images.std() > 0, "the digits are missing"
from composcope import fastconv
print("kernels", fastconv.status().available, fastconv.status().reason)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, made from the sdist, so that both are tried."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        check=True,
        capture_output=True,
    )
    assert len(list(folder.glob("*.tar.gz"))) == 1
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """A function that runs a program of a new virtual environment, outside the repository.

    The dependencies are those of this environment, since tests do not use the network; composcope is the wheel's.
    """
    folder = tmp_path_factory.mktemp("elsewhere")
    venv.create(folder / "venv", with_pip=False)
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "venv" / "lib" / version / "site-packages"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(programs / "python"),
            "install",
            "--no-deps",
            "--no-index",
            wheel,
        ],
        check=True,
        capture_output=True,
    )
    # A path in a .pth file comes after the environment's own packages, and the .pth files in it are not read.
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    variables |= {"COMPOSCOPE_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}

    def run(*arguments):
        command = [str(programs / arguments[0]), *arguments[1:]]
        result = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=600)
        assert result.returncode == 0, result.stderr
        return result.stdout

    run.folder = folder
    return run


@pytest.mark.slow
def test_the_wheel_has_everything(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = ROOT / "src"
    wanted = {
        str(path.relative_to(sources))
        for path in (sources / "composcope").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted <= names
    assert "composcope/py.typed" in names
    assert any(name.endswith("LICENSE") for name in names)


@pytest.mark.slow
def test_the_wheel_works_in_its_own_environment(environment):
    printed = environment("python", "-c", SMOKE)
    if "no C++ compiler" not in printed:
        assert "kernels True" in printed
    assert environment("composcope", "--version") == f"composcope {cs.__version__}\n"
    environment("composcope", "init", "spec.toml")
    run = environment("composcope", "run", "spec.toml", "--set", "training.steps=4")
    assert "trained in" in run
    assert "forced-rendering" in environment("composcope", "studies")
    environment("composcope", "report", "--out", "report.html")
    assert "<html" in (environment.folder / "report.html").read_text()
