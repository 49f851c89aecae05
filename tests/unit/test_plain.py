"""Dataclasses to plain data and back."""

import json
import math
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from composcope.plain import from_plain, pack_arrays, to_plain, unpack_arrays


@dataclass(frozen=True)
class Inner:
    values: Tensor
    total: float = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "total", self.values.sum().item())


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner | None
    terms: dict[tuple[str, ...], float]
    by_name: dict[str, Inner]
    shape: tuple[int, ...]
    pair: tuple[str, float]
    rows: list[dict[str, float | None]]
    missing: float | None
    nan: float
    added: dict[str, float] = field(default_factory=dict)
    flag: bool = True


def example():
    inner = Inner(torch.tensor([1.5, math.nan, 2.5]).nan_to_num(0.25))
    return Outer(
        "a name",
        inner,
        {("x",): 0.5, ("x", "y"): 0.25},
        {"one": Inner(torch.arange(4, dtype=torch.float64))},
        (2, 3),
        ("word", 1.0),
        [{"a": 1.0, "b": None}],
        None,
        math.nan,
    )


def through_json(value, **options):
    arrays = {}
    tree = json.loads(json.dumps(to_plain(value, arrays, **options), allow_nan=False))
    return tree, unpack_arrays(pack_arrays(arrays))


def test_a_value_survives_json_and_arrays():
    value = example()
    tree, arrays = through_json(value)
    again = from_plain(Outer, tree, arrays)
    assert torch.equal(again.inner.values, value.inner.values)
    assert again.by_name["one"].values.dtype == torch.float64
    assert math.isnan(again.nan)
    for name in ("name", "terms", "shape", "pair", "rows", "missing", "added", "flag"):
        assert getattr(again, name) == getattr(value, name), name
    assert again.inner.total == value.inner.total


def test_without_arrays_tensors_have_a_shape_and_derived_fields_their_values():
    tree, _ = through_json(example())
    again = from_plain(Outer, tree, {})
    assert again.inner.values.is_meta
    assert again.inner.values.shape == (3,)
    assert again.inner.total == 4.25
    with pytest.raises((RuntimeError, NotImplementedError)):
        again.inner.values.sum().item()


def test_inline_tensors_are_in_the_tree():
    value = Inner(torch.tensor([0.1, 0.2], dtype=torch.float32))
    tree, arrays = through_json({"kept": value, "apart": value}, inline=("/kept",))
    assert list(arrays) == ["/apart/values"]
    again = from_plain(dict[str, Inner], tree, {})
    assert torch.equal(again["kept"].values, value.values)
    assert again["apart"].values.is_meta


def test_a_field_that_was_added_later_takes_its_default():
    tree, arrays = through_json(example())
    del tree["added"], tree["flag"], tree["inner"]["total"]
    again = from_plain(Outer, tree, arrays)
    assert (again.added, again.flag) == ({}, True)
    assert again.inner.total == 4.25


def test_the_same_arrays_give_the_same_bytes():
    _, arrays = through_json(example())
    assert pack_arrays(arrays) == pack_arrays(dict(arrays))


@pytest.mark.parametrize("content", [b"", b"something else", b"PK\x03\x04"])
def test_what_is_not_a_file_of_arrays_is_refused(content):
    with pytest.raises(ValueError, match=r"not a file of arrays|pickle"):
        unpack_arrays(content)
