"""The verdict is calibrated: decoders whose behaviour is known are called what they are, on tasks of every form.

The thresholds were chosen on other sizes, holes and seeds (12 x 12 bumps, digits 1, 4 and 8, three shapes, ...).
"""

from collections import Counter
from functools import cache

import pytest

import composcope as cs
from known_decoders import MIXTURES, PURE, Case, coloured, foregrounds, judged, rooms, signed, sprites

CASES = {
    "bumps": Case(cs.BumpTask(10, sigma=1.3), cs.Square(3, 6), "y"),
    "digits": Case(cs.RotationTask((0, 2, 7), 10), cs.Box({"angle": (72, 180), "digit": (2, 7)}), "digit"),
    "sprites": Case(sprites(14, 4, 4), cs.Box({"shape": (0, 1), "x": (1, 2), "y": (1, 2)}), "shape"),
    "RGB": Case(coloured(14, (0.9, 0.8, 0.7)), cs.Box({"shape": (1, 2), "hue": (0, 0), "y": (1, 2)}), "shape"),
    "[-1, 1]": Case(signed(14, 4), cs.Box({"scale": (2, 3), "y": (1, 2)}), "y"),
    "rooms": Case(rooms(14), cs.Box({"hue": (2, 2), "shape": (0, 1), "scale": (2.5, 3.5)}), "shape"),
}
SEED = 1


@cache
def drawn(name):
    return foregrounds(CASES[name], SEED)


def test_the_confusion_matrix_of_decoders_that_do_one_thing():
    matrix = Counter(
        (PURE[name], judged(case, drawn(task)[name]).kind) for task, case in CASES.items() for name in PURE
    )
    right = sum(count for (truth, kind), count in matrix.items() if truth == kind)
    assert right >= 0.98 * matrix.total(), sorted(matrix.items())


@pytest.mark.parametrize("task", CASES)
@pytest.mark.parametrize("name", MIXTURES)
def test_shares_of_mixtures_are_right_to_five_points(task, name):
    case = CASES[task]
    shares = judged(case, drawn(task)[name]).shares
    heldout = int(case.split().mask.sum())
    second = round(0.3 * heldout) / heldout
    for kind, share in zip(MIXTURES[name], (1 - second, second), strict=True):
        kind = "wrong combination" if kind == "one factor wrong" else kind
        assert shares[kind] == pytest.approx(share, abs=0.05), shares


@pytest.mark.parametrize("task", CASES)
def test_the_wrong_factor_is_named_and_the_others_are_right(task):
    case = CASES[task]
    verdict = judged(case, drawn(task)["one factor wrong"])
    assert verdict.failing == [case.wrong]
    assert verdict.factors == {factor.name: float(factor.name != case.wrong) for factor in case.task.factors}
    assert verdict.seen_shares["composer"] == 1
