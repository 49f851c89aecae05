"""Tests over seeds against textbook values and by simulation."""

import numpy as np
import pytest
from scipy import stats

from composcope.study.statistics import LEVEL, holm, infer, interval, sign_test

RNG = np.random.default_rng(0)


def test_the_interval_is_students():
    mean, low, high = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert mean == 3.0
    assert high - mean == pytest.approx(2.776445 * np.sqrt(2.5 / 5), rel=1e-5)
    assert mean - low == pytest.approx(high - mean)
    assert interval([2.0]) == (2.0, None, None)
    assert interval([]) == (None, None, None)


def test_the_interval_covers_the_mean_95_times_in_100():
    samples = RNG.normal(size=(1000, 5)).tolist()
    covered = sum(low <= 0 <= high for _, low, high in map(interval, samples))
    assert covered / 1000 == pytest.approx(0.95, abs=0.02)


def test_one_sided_p_values_sum_to_one_and_turn_with_the_relation():
    values = [0.2, 0.5, 0.1, 0.7, 0.4]
    above, below = infer(values, ">", 0.0), infer(values, "<", 0.0)
    assert above.p == pytest.approx(stats.ttest_1samp(values, 0.0).pvalue / 2)
    assert above.p == pytest.approx(below.p_opposite)
    assert above.p + above.p_opposite == pytest.approx(1)


def test_false_calls_of_an_inequality_are_as_rare_as_stated():
    samples = RNG.normal(size=(1000, 5)).tolist()
    assert sum(infer(row, ">", 0.0).p < LEVEL for row in samples) / 1000 == pytest.approx(LEVEL, abs=0.015)


def test_equivalence_is_of_the_signed_effect():
    near = [0.1, -0.1, 0.05, -0.05, 0.0]
    assert infer(near, "within", 0.3).p < LEVEL
    assert infer(near, "within", 0.3).method == "equivalence test"
    wide = [2.0, -2.0, 1.5, -1.5, 0.0]  # mean 0, but far too noisy to say so
    assert infer(wide, "within", 0.3).p > LEVEL
    assert infer(wide, "within", 0.3).p_opposite > LEVEL
    away = [1.0, 1.1, 0.9, 1.0, 1.05]
    assert infer(away, "within", 0.3).p_opposite < LEVEL
    assert infer([-value for value in away], "within", 0.3).p_opposite < LEVEL


def test_false_calls_of_equivalence_at_the_margin_are_rare():
    samples = RNG.normal(loc=0.5, scale=0.2, size=(1000, 5)).tolist()
    assert sum(infer(row, "within", 0.5).p < LEVEL for row in samples) / 1000 <= LEVEL + 0.015


@pytest.mark.parametrize(
    ("relation", "threshold", "p"), [(">", 0.9, 0.0), ("<", 0.9, 1.0), ("within", 1.5, 0.0), ("within", 0.5, 1.0)]
)
def test_identical_values_are_compared(relation, threshold, p):
    inferred = infer([1.0] * 5, relation, threshold)
    assert (inferred.p, inferred.p_opposite, inferred.method) == (p, 1 - p, "identical values")


@pytest.mark.parametrize("relation", [">", "<", "within"])
@pytest.mark.parametrize("value", [0.3, 0.1 + 0.2])
def test_identical_values_on_the_threshold_are_on_neither_side(relation, value):
    inferred = infer([value] * 5, relation, 0.3)
    assert (inferred.p, inferred.p_opposite) == (1.0, 1.0)


def test_a_definition_needs_no_seeds():
    assert infer([2.0], ">", 1.5, exact=True).method == "definition"
    assert infer([2.0], ">", 1.5, exact=True).p == 0
    assert infer([2.0], ">", 1.5).method == "too few seeds"
    assert infer([], ">", 1.5).p == 1


def test_a_sign_test_needs_six_seeds():
    assert sign_test(5, 0)[0] == pytest.approx(1 / 32)
    assert sign_test(6, 0)[0] == pytest.approx(1 / 64)
    assert sign_test(0, 6)[1] == pytest.approx(1 / 64)
    assert sign_test(0, 0) == (1.0, 1.0)


def test_holm_against_a_worked_example():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_difference_is_tested_on_both_sides_and_false_calls_are_as_rare():
    values = [0.2, 0.5, 0.1, 0.7, 0.4]
    found = infer(values, "differs", 0.0)
    assert found.p == pytest.approx(stats.ttest_1samp(values, 0.0).pvalue)
    assert infer([-value for value in values], "differs", 0.0).p == pytest.approx(found.p)
    assert found.p_opposite == 1
    samples = RNG.normal(size=(1000, 5)).tolist()
    assert sum(infer(row, "differs", 0.0).p < LEVEL for row in samples) / 1000 == pytest.approx(LEVEL, abs=0.015)
