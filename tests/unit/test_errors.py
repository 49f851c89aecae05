"""Error messages: one line per problem."""

import pytest
from pydantic import ValidationError

import composcope as cs
from composcope.errors import explain, shown


def message(data):
    with pytest.raises(ValidationError) as caught:
        cs.Training(**data)
    return explain(caught.value)


def test_message_has_field_value_and_bound():
    assert message({"batch": 0}) == "batch = 0: input should be greater than or equal to 1"


def test_each_problem_has_one_line():
    assert message({"batch": 0, "lr": -1.0}).count("\n") == 1


def test_long_values_are_cut():
    assert len(shown("x" * 1000)) == 60
