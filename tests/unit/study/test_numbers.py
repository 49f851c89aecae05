"""What figures show, as a value: joined by seed, saved and read again, and what a figure says of the runs it lacks."""

import json
import math

import numpy as np
import pytest
import torch

from composcope.errors import BadInput
from composcope.plain import pack_arrays, unpack_arrays
from composcope.study.numbers import FORMAT, TREE, Numbers, no_runs_yet, pack_numbers, unpack_numbers


def numbers(*seeds, kinds=("bump", "rate"), about="preset paper: 28 x 28"):
    """One row per kind and seed, an image of the first seed, and what is common to all."""
    rows = [
        {"code": kind, "seed": seed, "MSE": seed / 10, "curve": torch.ones(2) * seed}
        for kind in kinds
        for seed in seeds
    ]
    first = {kind: {"image": torch.full((1, 2, 2), float(seeds[0]))} for kind in kinds}
    by_kind = {kind: tuple(seeds) if kind in kinds else () for kind in ("bump", "rate")}
    return Numbers(rows, first, {"truth": torch.eye(2) * seeds[0]}, by_kind, about)


def same(one, other):
    return pack_numbers(one) == pack_numbers(other)


def test_numbers_survive_their_file():
    value = Numbers(
        [
            {
                "code": "bump",
                "seed": 0,
                "nothing": None,
                "not a number": math.nan,
                "layers": ["code", "image"],
                "learned": True,
            }
        ],
        {"bump": {"units": {"conv1": [{"map": torch.ones(2, 3).bool(), "stripe": 0.1}]}, "empty": torch.zeros(0, 4)}},
        {"counts": torch.arange(3), "fine": torch.tensor([math.pi]).double()},
        {"bump": (0,), "rate": ()},
        "preset tiny: 8 x 8",
    )
    read = unpack_numbers(pack_numbers(value))
    assert math.isnan(read.rows[0].pop("not a number"))
    assert read.rows[0] == {name: cell for name, cell in value.rows[0].items() if name != "not a number"}
    assert torch.equal(read.first["bump"]["units"]["conv1"][0]["map"], torch.ones(2, 3).bool())
    assert read.first["bump"]["empty"].shape == (0, 4)
    assert read.common["counts"].tolist() == [0, 1, 2]
    assert read.common["fine"].dtype == torch.float32  # no figure shows more digits
    assert (read.seeds, read.about) == (value.seeds, value.about)


def test_files_of_another_format_and_other_files_are_refused():
    arrays = unpack_arrays(pack_numbers(numbers(0)))
    tree = json.loads(arrays[TREE].tobytes())
    for text, message in (
        (json.dumps({**tree, "format": FORMAT - 1}), f"numbers of format {FORMAT - 1}; this composcope reads {FORMAT}"),
        (json.dumps({**tree, "rows": 3}), "not the numbers of a figure"),
        (json.dumps({"format": FORMAT}), "not the numbers of a figure"),
        ("nonsense", "not the numbers of a figure"),
    ):
        content = pack_arrays({**arrays, TREE: np.frombuffer(text.encode(), dtype=np.uint8)})
        with pytest.raises(BadInput, match=message):
            unpack_numbers(content)
    with pytest.raises(BadInput, match="not the numbers of a figure"):
        unpack_numbers(b"something else")
    short = {**arrays, "float32": arrays["float32"][:-1]}
    with pytest.raises(BadInput, match="not the numbers of a figure"):
        unpack_numbers(pack_arrays(short))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_seeds_of_two_machines_are_joined_and_the_first_seed_is_shown(order):
    machines = numbers(10, 12), numbers(11, 13)
    one, other = (machines[index] for index in order)
    joined = one.joined(other)
    assert same(
        joined, Numbers(numbers(10, 11, 12, 13).rows, machines[0].first, machines[0].common, joined.seeds, joined.about)
    )
    assert joined.seeds == dict.fromkeys(("bump", "rate"), (10, 11, 12, 13))
    assert joined.caption("images") == "preset paper: 28 x 28; 4 seeds, images of the first"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_kinds_of_run_of_two_machines_are_in_the_order_of_the_plan(order):
    machines = numbers(0, 1, kinds=("bump",)), numbers(0, 1, kinds=("rate",))
    assert [machine.lacking for machine in machines] == [("rate",), ("bump",)]
    one, other = (machines[index] for index in order)
    assert same(one.joined(other), numbers(0, 1))


def test_where_both_have_a_seed_the_first_counts():
    mine = numbers(0, 1)
    theirs = Numbers([{**row, "MSE": 9.0} for row in mine.rows], mine.first, mine.common, mine.seeds, mine.about)
    assert same(mine.joined(theirs), mine)
    assert same(theirs.joined(mine), theirs)


def test_numbers_of_other_presets_are_not_joined():
    with pytest.raises(
        BadInput, match="numbers of 'preset paper: 28 x 28' cannot be joined with those of 'preset quick'"
    ):
        numbers(0).joined(numbers(1, about="preset quick"))


def test_a_table_is_the_rows_without_tensors():
    assert numbers(3).table() == [{"code": kind, "seed": 3, "MSE": 0.3} for kind in ("bump", "rate")]


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
