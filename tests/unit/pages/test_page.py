import base64
import json
import re
import zlib

import numpy as np
import pytest
from jinja2 import UndefinedError

from composcope.errors import BadInput
from composcope.pages.page import FOLDER, embed, environment, packed, render, script, style, write_page

HOSTILE = "</script><script>alert(1)</script><!-- & ]]> \u2028\u2029 é \\"
EMPTY = {"tasks": [], "runs": [], "problems": []}


def unpacked(data):
    return np.frombuffer(zlib.decompress(base64.b64decode(data["data"])), data["dtype"]).reshape(data["shape"])


def test_embedded_text_cannot_end_its_script_and_comes_back_as_it_was():
    text = str(embed("data", {HOSTILE: [HOSTILE, 1.5, None]}))
    opening, body, rest = re.fullmatch(r"(<script [^>]*>)(.*)(</script>)", text, re.DOTALL).groups()
    assert 'id="data"' in opening
    assert not set("<>&\u2028\u2029") & set(body)
    assert rest == "</script>"
    assert json.loads(body) == {HOSTILE: [HOSTILE, 1.5, None]}


def test_a_name_cannot_leave_its_attribute():
    assert '"><b' not in str(embed('x"><b', 1))


def test_numbers_that_json_lacks_are_refused():
    with pytest.raises(ValueError, match="JSON compliant"):
        embed("data", float("nan"))


@pytest.mark.parametrize("kind", ["u1", "i1", "<u2", "<i4", "<f4", ">f8"])
def test_arrays_come_back_as_they_were(kind):
    array = np.arange(24).astype(kind).reshape(2, 3, 4)[:, ::2].swapaxes(0, 2)
    assert not array.flags["C_CONTIGUOUS"]
    data = json.loads(json.dumps(packed(array)))
    assert np.array_equal(unpacked(data), array)
    assert data["shape"] == [4, 2, 2]


def test_arrays_keep_what_is_no_number():
    assert np.isnan(unpacked(packed(np.array([1, np.nan], np.float32)))[1])


def test_a_type_that_no_browser_has_is_refused():
    with pytest.raises(ValueError, match="cannot hold arrays of type int64"):
        packed(np.arange(3))


def test_text_in_a_page_is_escaped():
    problem = {"run": "<b>run</b>", "reason": HOSTILE}
    text = render("explorer.html", explorer={**EMPTY, "problems": [problem]}, version="1")
    assert "&lt;b&gt;run&lt;/b&gt;" in text
    assert "alert(1)</script>" not in text


def test_a_name_that_a_template_lacks_is_an_error():
    with pytest.raises(UndefinedError, match="version"):
        render("explorer.html", explorer=EMPTY)


def test_a_page_asks_for_nothing():
    text = render("explorer.html", explorer=EMPTY, version="1")
    assert "default-src 'none'" in text
    assert not re.findall(r"(?:https?:|url\(|@import|<link|<img|<iframe)", text)
    assert {found for found in re.findall(r'(?:src|href)="([^"]*)"', text) if not found.startswith("#")} == set()


@pytest.mark.parametrize("path", sorted((FOLDER / "static").iterdir()), ids=lambda path: path.name)
def test_what_is_inlined_does_not_end_early(path):
    inlined = str(style(path.name) if path.suffix == ".css" else script(path.name))
    assert len(re.findall("</(?:script|style)", inlined)) == 1
    assert "<!--" not in inlined


@pytest.mark.parametrize("name", environment().list_templates())
def test_every_template_is_well_formed(name):
    environment().get_template(name)


def test_a_page_is_written_whole_with_its_folder(tmp_path):
    path = tmp_path / "new" / "page.html"
    assert write_page("one é\n", path) == path
    write_page("two\n", path)
    assert path.read_bytes() == b"two\n"
    assert list(path.parent.iterdir()) == [path]


def test_a_page_that_cannot_be_written_says_why(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"page '.*page.html' cannot be written: File exists"):
        write_page("", tmp_path / "file" / "page.html")
    (tmp_path / "folder").mkdir()
    with pytest.raises(BadInput, match="cannot be written: Is a directory"):
        write_page("", tmp_path / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
