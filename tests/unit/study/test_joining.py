"""Numbers of figures joined by seed, and what a figure says of the runs it lacks."""

import json

import numpy as np
import pytest

from composcope.papers.forced_rendering.study import STUDY
from composcope.plain import pack_arrays
from composcope.study.joining import can_join, pick_by_seed
from composcope.study.numbers_file import TREE, no_runs_yet, unpack_numbers

JOINABLE = {panel.name: panel for panel in STUDY.panels if can_join(panel)}


def test_the_figures_that_need_most_time_can_be_joined():
    partial = {name for name, panel in JOINABLE.items() if panel.partial}
    assert partial == {"1d", "2a", "2b", "2c", "2d", "2e", "2f", "10", "11", "12", "13", "14"}
    assert set(JOINABLE) - partial == {"3b", "3d", "4c", "6"}


def test_numbers_of_the_first_format_are_read():
    """It had one line of text instead of its parts."""
    values = {"both": [0.5]}
    numbers = {"seeds": {"both": [10]}, "seen": values, "heldout": values, "accuracy": values, "blank": 0.1}
    tree = {"format": 1, "caption": "preset paper: 32 x 32; 1 seed", "numbers": numbers}
    content = pack_arrays({TREE: np.frombuffer(json.dumps(tree).encode(), dtype=np.uint8)})
    file = unpack_numbers(content, JOINABLE["3d"].numbers)
    assert (file.about, file.seeds, file.lacking) == ("preset paper: 32 x 32", "1 seed", ())
    assert file.caption() == tree["caption"]
    assert file.numbers.seeds == {"both": [10]}


@pytest.mark.parametrize(
    ("lacking", "text"),
    [
        ((), ""),
        (("a",), "no runs yet: a"),
        (("a", "b", "c", "d"), "no runs yet: a; b; c; d"),
        (("a", "b", "c", "d", "e"), "no runs yet: a; b; c and 2 more"),
    ],
)
def test_what_is_missing_is_named(lacking, text):
    assert no_runs_yet(lacking) == text


def test_the_union_of_seeds_is_sorted():
    assert pick_by_seed([3, 1], [2, 1]) == [(0, 1), (1, 0), (0, 0)]
    assert pick_by_seed([], [2, 1]) == [(1, 1), (1, 0)]
