"""Complaints in one line each."""

import pytest
from pydantic import ValidationError

import composcope as cs
from composcope.errors import explain, shown


def complaint(data):
    with pytest.raises(ValidationError) as caught:
        cs.Training(**data)
    return explain(caught.value)


def test_field_value_and_bound_are_told():
    assert complaint({"batch": 0}) == "batch = 0: input should be greater than or equal to 1"


def test_every_problem_has_a_line():
    assert complaint({"batch": 0, "lr": -1.0}).count("\n") == 1


def test_long_values_are_cut():
    assert len(shown("x" * 1000)) == 60
