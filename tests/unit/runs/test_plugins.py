"""Users' own components from files."""

import pytest

import composcope as cs
from composcope.runs.plugins import load_plugin

pytestmark = pytest.mark.usefixtures("no_new_kinds")

HALF = """
import composcope as cs

@cs.register("half")
class Half(cs.Holdout):
    def contains(self, latents, factors=None):
        return latents[:, 0] + latents[:, 1] < 5
"""


@pytest.fixture
def plugin(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(HALF)
    return path


def test_what_the_file_registers_can_be_named_in_a_spec(plugin, tiny_spec):
    load_plugin(plugin)
    spec = cs.Spec.from_dict({**tiny_spec.to_dict(), "holdout": {"kind": "half"}})
    assert len(cs.split(spec.task, spec.holdout).heldout) == 15


def test_the_same_file_may_be_loaded_twice(plugin):
    load_plugin(plugin)
    load_plugin(plugin)
    assert "half" in cs.Holdout.kinds


def test_two_files_of_one_name_are_both_loaded(plugin, tmp_path):
    other = tmp_path / "other" / "mine.py"
    other.parent.mkdir()
    other.write_text(HALF.replace("half", "third"))
    load_plugin(plugin)
    load_plugin(other)
    assert {"half", "third"} <= set(cs.Holdout.kinds)


@pytest.mark.parametrize("name", ["nowhere.py", "mine.txt", "."])
def test_missing_file_is_named(name, tmp_path):
    (tmp_path / "mine.txt").write_text(HALF)
    with pytest.raises(cs.BadInput, match="no such Python file"):
        load_plugin(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("1 +", "SyntaxError"), ("import nowhere_at_all", "nowhere_at_all"), ("raise SystemExit(3)", "SystemExit")],
)
def test_a_file_that_breaks_is_named_with_the_reason(text, complaint, plugin):
    plugin.write_text(text)
    with pytest.raises(cs.BadInput, match=f"mine.py.*{complaint}"):
        load_plugin(plugin)


def test_a_file_may_import_its_siblings(tmp_path):
    (tmp_path / "sibling_of_plugin.py").write_text("SIZE = 7\n")
    (tmp_path / "late_sibling.py").write_text("SIZE = 8\n")
    file = tmp_path / "with_sibling.py"
    file.write_text(
        "from sibling_of_plugin import SIZE\n\ndef later():\n    import late_sibling\n    return late_sibling.SIZE\n"
    )
    module = load_plugin(file)
    assert (module.SIZE, module.later()) == (7, 8)


def test_a_file_of_a_package_may_import_relatively(tmp_path):
    package = tmp_path / "package_of_plugin"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text("SIZE = 9\n")
    (package / "decoder.py").write_text("from .parts import SIZE\n")
    assert load_plugin(package / "decoder.py").SIZE == 9
