"""Thresholds and exponents of made-up searches, and the search itself at the tiny preset."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from composcope.experiments.run import run as train
from composcope.experiments.store import Store
from composcope.figures.scaling import PANELS
from composcope.paper.claims.scaling import CLAIMS, doublings, exponents, told
from composcope.paper.evidence import Evidence, Known, Plan, Run
from composcope.paper.ledger import judge
from composcope.paper.preset import TINY, Preset
from composcope.paper.scaling import Bounds, Scaling, Search, cells, exponent, needed, over_seeds, scaling

OCTAVES = replace(
    TINY,
    scaling_sizes=(8, 16, 32),
    scaling_counts=(4, 8, 16, 32, 64, 128, 256, 512, 1024),
    scaling_seeds=(0, 1, 2),
)


@cache
def every_cell(preset: Preset) -> Plan:
    return cells(preset)


class Made(Evidence):
    """Evidence of runs that were never trained: their accuracy is what `accuracy(kind, size, count, seed)` says."""

    def __init__(self, preset: Preset, accuracy: Callable[[str, int, int, int], float | None]) -> None:
        plan = every_cell(preset)
        self.preset, self.plan = preset, plan
        self._runs: dict[str, list[Run]] = {name: [] for name in plan}
        for name, specs in self.plan.items():
            kind, size, count = name.replace("size ", "").replace(" images", "").split(", ")
            for spec in specs:
                value = accuracy(kind, int(size), int(count), spec.seed)
                if value is not None:
                    made = Run(Store("nowhere"), spec)
                    made.__dict__["error"] = {"accuracy": value}
                    self._runs[name].append(made)


def law(power: int, at_8: int = 8) -> Callable[[str, int, int, int], float]:
    """Bumps alone need at_8 (N / 8)^power images, stripes N of them."""

    def accuracy(kind: str, size: int, count: int, seed: int) -> float:
        least = size if kind == "stripes" else at_8 * (size // 8) ** power
        return 1.0 if count >= least else 0.5

    return accuracy


def search(*accuracies: float, counts: tuple[int, ...] = (4, 8, 16, 32, 64)) -> Search:
    return Search("bumps", 10, 0, counts, accuracies)


@pytest.mark.parametrize(
    ("accuracies", "threshold", "finished", "text"),
    [
        ((0.1, 0.95, 0.95), 8, True, "8"),
        ((0.1, 0.95, 0.5, 0.92, 0.93), 32, True, "32"),  # a lucky count does not end the search
        ((0.1, 0.2, 0.3, 0.4, 0.9), 64, True, "64"),  # the last has no next
        ((0.1, 0.95, 0.5, 0.95, 0.8), None, True, "> 64"),
        ((0.95, 0.95), 4, True, "<= 4"),
        ((0.1, 0.95), None, False, "unfinished"),
        ((), None, False, "unfinished"),
    ],
)
def test_the_threshold_is_enough_and_stays_enough(accuracies, threshold, finished, text):
    found = search(*accuracies)
    assert (found.threshold, found.finished, found.text) == (threshold, finished, text)


def test_bounds_say_what_is_known_of_a_threshold():
    assert search(0.1, 0.95, 0.95).bounds == Bounds(8, 8)
    assert search(0.95, 0.95).bounds == Bounds(0, 4)
    assert search(0.1, 0.1, 0.1, 0.1, 0.1).bounds == Bounds(128, math.inf)
    assert search(0.1).bounds == Bounds(0, math.inf)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_an_exact_power_law_has_its_exponent(power):
    sizes = [10, 15, 20, 30]
    thresholds = [Bounds(7.0 * size**power, 7.0 * size**power) for size in sizes]
    found = exponent(sizes, thresholds)
    assert found.low == pytest.approx(power)
    assert found.high == pytest.approx(power)


def test_a_threshold_out_of_reach_bounds_the_exponent_from_below():
    found = exponent([8, 16, 32], [Bounds(8, 8), Bounds(64, 64), Bounds(128, math.inf)])
    assert found.low == pytest.approx(2)
    assert found.high == math.inf


def test_a_threshold_below_the_least_count_bounds_it_by_where_it_lies():
    small, large = Bounds(0, 8), Bounds(0, 64)
    assert exponent([8, 16], [small, Bounds(64, 64)]) == Bounds(3, math.inf)
    assert exponent([8, 16], [Bounds(8, 8), large]) == Bounds(-math.inf, 3)


def test_one_size_or_none_has_no_exponent():
    assert exponent([8], [Bounds(8, 8)]) == Bounds(-math.inf, math.inf)
    assert exponent([], []) == Bounds(-math.inf, math.inf)


def test_a_mean_over_seeds_with_a_bound_among_them_is_a_bound():
    exact, at_least, at_most = Bounds(2, 2), Bounds(4, math.inf), Bounds(-math.inf, 1)
    assert over_seeds([exact, exact]).sign == ""
    assert (over_seeds([exact, at_least]).sign, over_seeds([exact, at_least]).mean) == (">=", 3)
    assert (over_seeds([exact, at_most]).sign, over_seeds([exact, at_most]).mean) == ("<=", 1.5)
    assert over_seeds([at_least, at_most]).sign == "?"
    assert over_seeds([]).sign == "?"


def test_a_cube_and_a_line_are_found_exactly_and_reproduce_the_claim():
    evidence = Made(OCTAVES, law(3))
    found = scaling(evidence)
    assert found.exponents("bumps") == {seed: Bounds(3, 3) for seed in (0, 1, 2)}
    assert found.exponents("stripes") == {seed: Bounds(1, 1) for seed in (0, 1, 2)}
    assert [row["images needed"] for row in found.table()] == ["8", "64", "512", "8", "16", "32"]
    assert found.table()[0]["exponent"] == "3.00"
    assert doublings(1)(evidence) == [4.0, 4.0, 4.0]
    assert judge(CLAIMS[0], evidence).outcome == "reproduced"


@pytest.mark.parametrize("power", [1, 5])
def test_another_power_does_not_reproduce_the_claim(power):
    preset = replace(OCTAVES, scaling_counts=tuple(4 * 2**i for i in range(14)))
    assert judge(CLAIMS[0], Made(preset, law(power))).outcome == "not reproduced"


def test_a_threshold_out_of_reach_is_told_as_such_and_counts_only_where_it_settles_the_matter():
    preset = replace(OCTAVES, scaling_counts=(4, 8, 16, 32, 64, 128, 256))
    evidence = Made(preset, law(3))
    row = scaling(evidence).table()[2]
    assert row["of each seed"] == "> 256, > 256, > 256"
    assert row["images needed"] == ">= 512"
    assert row["exponent"] == ">= 3.00"
    assert exponents("bumps", 2)(evidence) == [3.0, 3.0, 3.0]
    assert exponents("bumps", 4)(evidence) == []
    assert judge(CLAIMS[0], evidence).outcome == "undetermined"


def test_a_number_or_bound_tells_its_side_or_nothing():
    assert told(Bounds(3, 3), 2) == 3
    assert told(Bounds(1, 1), 2) == 1
    assert told(Bounds(3, math.inf), 2) == 3
    assert told(Bounds(-math.inf, 1.5), 2) == 1.5
    assert math.isnan(told(Bounds(1, math.inf), 2))


def test_no_evidence_has_no_effect():
    evidence = Made(OCTAVES, lambda *cell: None)
    for part in CLAIMS[0].parts:
        assert list(part.effect(evidence)) == []
    assert judge(CLAIMS[0], evidence).outcome == "undetermined"


def test_a_search_does_not_look_beyond_a_missing_cell():
    evidence = Made(OCTAVES, lambda kind, size, count, seed: None if count == 16 else 1.0 * (count > 16))
    assert {search.text for search in scaling(evidence).of("bumps", 8)} == {"unfinished"}


@pytest.mark.parametrize("cap", [8, 64, 1024])
def test_the_picture_is_drawn_whatever_was_reached(cap):
    preset = replace(OCTAVES, scaling_counts=(*tuple(c for c in OCTAVES.scaling_counts if c <= cap), 2 * cap))
    assert PANELS[0].draw(scaling(Made(preset, law(3)))).axes


def test_the_picture_is_drawn_from_nothing():
    assert PANELS[0].draw(Scaling(())).axes
    assert PANELS[0].draw(scaling(Made(OCTAVES, lambda *cell: None))).axes


def test_only_counts_that_are_sure_to_be_needed_are_next():
    assert search().next == slice(0, 2)
    assert search(0.1, 0.2).next == slice(2, 4)
    assert search(0.1, 0.95).next == slice(2, 3)
    assert search(0.1, 0.95, 0.2).next == slice(3, 5)
    assert search(0.1, 0.95, 0.95).next == slice(3, 3)


def test_the_search_goes_up_its_counts_and_ends(tmp_path):
    store, plan = Store(tmp_path / "runs"), cells(TINY)
    rounds = 0
    while todo := needed(plan, store):
        assert not any(store.has(spec.run_id) for spec in todo)
        for spec in todo:
            train(spec, store)
        rounds += 1
        assert rounds <= 4
    found = scaling(Evidence(TINY, plan, Known(store)))
    assert all(search.finished for search in found.searches)
    assert len({tuple(row) for row in found.table()}) == 1
