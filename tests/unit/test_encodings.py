"""Encodings against their closed forms."""

import math

import pytest
import torch
from pydantic import ValidationError

import composcope as cs

X = cs.Factor("x", range(6))
ANGLE = cs.Factor("angle", range(0, 360, 60), "circular", 360)
DIGIT = cs.Factor("digit", (1, 4, 7), "categorical")


def code(encoding, factor, *values):
    return encoding.encode(torch.tensor(values)[:, None], [factor])


def test_onehot_is_the_identity_on_the_grid():
    assert torch.equal(code(cs.OneHot(), X, *X.values), torch.eye(6))


def test_onehot_refuses_unlisted_values():
    with pytest.raises(ValueError, match=r"x = 2.5 is not one of 0..5"):
        code(cs.OneHot(), X, 2.5)


def test_bump_code_is_the_closed_form():
    expected = [math.exp(-((2.25 - i) ** 2) / (2 * 1.5**2)) for i in range(6)]
    assert code(cs.Bump(1.5), X, 2.25)[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_bump_width_is_in_grid_steps():
    wide = cs.Factor("x", range(0, 60, 10))
    torch.testing.assert_close(code(cs.Bump(), wide, 20.0), code(cs.Bump(), X, 2.0))


def test_bump_wraps_on_a_circle():
    codes = code(cs.Bump(), ANGLE, *ANGLE.values)
    for row in range(6):
        torch.testing.assert_close(codes[row], codes[0].roll(row))


def test_positional_code_is_the_closed_form():
    rates = [100.0 ** (-i / 2) for i in range(2)]
    expected = [math.sin(3 * rate) for rate in rates] + [math.cos(3 * rate) for rate in rates]
    assert code(cs.Positional(pairs=2, base=100.0), X, 3.0)[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_positional_code_is_periodic_on_a_circle():
    torch.testing.assert_close(
        code(cs.Positional(), ANGLE, 10.0), code(cs.Positional(), ANGLE, 370.0), atol=1e-4, rtol=0
    )


@pytest.mark.parametrize(("scale", "expected"), [("raw", [0, 2, 5]), ("unit", [0, 0.4, 1]), ("centred", [-1, -0.2, 1])])
def test_rate_scales(scale, expected):
    assert code(cs.Rate(scale), X, 0.0, 2.0, 5.0).flatten().tolist() == pytest.approx(expected)


def test_thermometer_fills_up():
    assert code(cs.Thermometer(), X, 0.0, 2.0, 2.5, 5.0).tolist() == [
        [0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 0.5, 0, 0],
        [1, 1, 1, 1, 1],
    ]


def test_circle_is_cos_and_sin():
    torch.testing.assert_close(
        code(cs.Circle(), ANGLE, 0.0, 90.0, 180.0), torch.tensor([[1.0, 0], [0, 1], [-1, 0]]), atol=1e-6, rtol=0
    )


def test_per_factor_gives_each_factor_its_own_code():
    encoding = cs.PerFactor({"angle": cs.Circle(), "digit": cs.OneHot()})
    factors = (ANGLE, DIGIT)
    assert encoding.code_sizes(factors) == (2, 3)
    codes = encoding.encode(torch.tensor([[90.0, 7.0]]), factors)
    torch.testing.assert_close(codes, torch.tensor([[0.0, 1, 0, 0, 1]]), atol=1e-6, rtol=0)


def test_per_factor_is_differentiable_if_all_are():
    assert cs.PerFactor({"x": cs.Bump(), "y": cs.Rate()}).differentiable
    assert not cs.PerFactor({"x": cs.Bump(), "y": cs.OneHot()}).differentiable


def test_per_factor_names_the_factor_it_lacks():
    with pytest.raises(ValueError, match=r"no encoding for 'digit', only for angle"):
        cs.PerFactor({"angle": cs.Circle()}).encode(torch.zeros(1, 2), (ANGLE, DIGIT))


def test_absent_factor_is_zeros_or_the_mean_code():
    missing = torch.tensor([[torch.nan]])
    assert not cs.Bump().encode(missing, [X]).any()
    mean = code(cs.Bump(), X, *X.values).mean(0, keepdim=True)
    torch.testing.assert_close(cs.Bump(absent="mean").encode(missing, [X]), mean)


def test_absence_does_not_affect_other_rows_and_factors():
    factors = (X, cs.Factor("y", range(4)))
    latents = torch.tensor([[2.0, 3.0], [torch.nan, 3.0], [2.0, torch.nan]])
    codes = cs.OneHot().encode(latents, factors)
    assert codes.tolist() == [
        [0, 0, 1, 0, 0, 0, 0, 0, 0, 1],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        [0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
    ]


def test_code_has_the_dtype_of_the_latents():
    assert cs.Bump().encode(torch.tensor([[1.0]], dtype=torch.float64), [X]).dtype == torch.float64


def test_wrong_number_of_factors_is_reported():
    with pytest.raises(ValueError, match=r"encodes 1 factors; latents have shape \(3, 2\)"):
        cs.Bump().encode(torch.zeros(3, 2), [X])


@pytest.mark.parametrize("width", [0.0, -1.0, float("nan")])
def test_width_is_positive(width):
    with pytest.raises(ValidationError, match="width"):
        cs.Bump(width=width)
