"""Holdouts, splits and certificates."""

import pytest
import torch
from pydantic import ValidationError

import composcope as cs

TASK = cs.BumpTask(8)


def heldout(holdout, task=TASK):
    return {tuple(map(int, row[:2])) for row in cs.split(task, holdout).heldout.tolist()}


def test_square_includes_its_edges():
    assert heldout(cs.Square(2, 5)) == {(x, y) for x in range(2, 6) for y in range(2, 6)}


@pytest.mark.parametrize(
    ("corner", "expected"),
    [
        ("upper right", {(x, y) for x in (6, 7) for y in (6, 7)}),
        ("upper left", {(x, y) for x in range(7) for y in (6, 7)}),
        ("lower right", {(x, y) for x in (6, 7) for y in range(7)}),
        ("lower left", {(x, y) for x in range(7) for y in range(7)}),
    ],
)
def test_corners(corner, expected):
    assert heldout(cs.Corner(6, corner)) == expected


def test_cross_is_the_union_of_two_bands():
    assert heldout(cs.Cross(3, 4)) == heldout(cs.Interval("x", 3, 4) | cs.Interval("y", 3, 4))


@pytest.mark.parametrize(
    ("closed", "expected"), [("both", {2, 3, 4}), ("left", {2, 3}), ("right", {3, 4}), ("neither", {3})]
)
def test_interval_ends(closed, expected):
    assert {x for x, _ in heldout(cs.Interval("x", 2, 4, closed))} == expected


def test_box_is_the_square_when_its_bounds_are_equal():
    assert heldout(cs.Box({"x": (2, 5), "y": (2, 5)})) == heldout(cs.Square(2, 5))
    assert heldout(cs.Box({"y": (2, 3), "x": (5, 6)})) == {(x, y) for x in (5, 6) for y in (2, 3)}


def test_box_of_three_factors():
    task = cs.BumpTask(8, brightness=(0.25, 0.5, 1.0))
    heldout = cs.split(task, cs.Box({"x": (2, 5), "y": (2, 5), "brightness": (0.5, 0.5)})).heldout
    assert len(heldout) == 16
    assert set(heldout[:, 2].tolist()) == {0.5}


def test_certificate_of_a_square_is_composition():
    certificate = cs.split(TASK, cs.Square(2, 5)).certificate
    assert certificate.composition
    assert not certificate.missing
    assert str(certificate).startswith("composition")


def test_certificate_of_a_cross_names_the_values_never_seen():
    certificate = cs.split(TASK, cs.Cross(3, 4)).certificate
    assert not certificate.composition
    assert certificate.missing == {"x": (3, 4), "y": (3, 4)}
    assert str(certificate) == "extrapolation, not composition: values never seen in training: x = 3, 4; y = 3, 4"


def test_certificate_of_an_interval_names_one_factor():
    assert cs.split(TASK, cs.Interval("y", 2, 3)).certificate.missing == {"y": (2, 3)}


def test_certificate_of_nothing_is_trivially_good():
    parts = cs.split(TASK, cs.Nothing())
    assert len(parts.heldout) == 0
    assert parts.certificate.composition


def test_splits_of_the_paper():
    parts = cs.split(cs.BumpTask(28), cs.Square(6, 22))
    assert (len(parts.seen), len(parts.heldout)) == (495, 289)


@pytest.mark.parametrize(
    "make",
    [
        lambda: cs.Square(5, 2),
        lambda: cs.Cross(5, 2),
        lambda: cs.Interval("x", 5, 2),
        lambda: cs.Box({"x": (5, 2)}),
    ],
)
def test_lower_bound_must_not_exceed_the_upper(make):
    with pytest.raises(ValidationError, match="lo = 5 is above hi = 2"):
        make()


@pytest.mark.parametrize(
    "holdout",
    [
        cs.Square(2, 8),
        cs.Square(-1, 5),
        cs.Corner(9),
        cs.Cross(2, 8),
        cs.Interval("x", 2, 8),
        cs.Box({"y": (2, 8)}),
        cs.Square(2, 8) | cs.Corner(5),
        ~cs.Square(2, 8),
    ],
    ids=repr,
)
def test_region_outside_the_grid_is_refused(holdout):
    with pytest.raises(ValueError, match="outside the range of factor"):
        cs.split(TASK, holdout)


@pytest.mark.parametrize("holdout", [cs.Square(0, 7), ~cs.Nothing(), cs.Interval("x", 0, 7)], ids=repr)
def test_holding_out_everything_is_refused(holdout):
    with pytest.raises(cs.BadInput, match="holds out all 64"):
        cs.split(TASK, holdout)


def test_holding_out_nothing_by_accident_is_refused():
    with pytest.raises(cs.BadInput, match="holds out none of the 64"):
        cs.split(TASK, cs.Square(2, 3) & cs.Square(5, 6))


def test_unknown_factor_is_named():
    with pytest.raises(ValueError, match=r"no factor is named 'z'; the factors are x, y"):
        cs.split(TASK, cs.Interval("z", 1, 2))


def test_empty_box_is_refused():
    with pytest.raises(ValidationError, match="name at least one factor"):
        cs.Box({})


@pytest.mark.parametrize("kind", [cs.Union, cs.Intersection])
def test_algebra_needs_parts(kind):
    with pytest.raises(ValidationError):
        kind(())


def test_two_factors_are_needed_for_a_square():
    with pytest.raises(ValueError, match="needs two factors"):
        cs.split(cs.RotationTask(angles=6), cs.Square(0, 60))


def test_names_without_factors_are_refused_when_columns_are_ambiguous():
    with pytest.raises(ValueError, match=r"contains\(latents, task.factors\)"):
        cs.Interval("x", 1, 2).contains(torch.zeros(1, 2))


@pytest.mark.parametrize("bound", [float("nan"), float("inf")])
def test_bounds_must_be_finite(bound):
    with pytest.raises(ValidationError, match="hi"):
        cs.Square(lo=2, hi=bound)


def test_the_first_combination_of_the_grid_can_be_listed():
    task = cs.BumpTask(4)
    held_out = cs.Combinations([(0, 0), (0, 3)]).contains(task.grid(), task.factors)
    assert task.grid()[held_out].tolist() == [[0, 0], [0, 3]]
