"""Thresholds and exponents of made-up searches, figure 4c and claim 12, and the search itself at the tiny preset."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from composcope.experiments.doing import run as train
from composcope.experiments.store import Store
from composcope.papers.forced_rendering import scaling as experiment
from composcope.papers.forced_rendering.presets import TINY
from composcope.papers.forced_rendering.scaling import plan
from composcope.papers.forced_rendering.scaling.claims import doublings, exponents
from composcope.papers.forced_rendering.scaling.numbers import Scaling, exponent, over_seeds, scaling
from composcope.papers.forced_rendering.scaling.plan import Cell, Sizes, cells
from composcope.papers.forced_rendering.scaling.search import Search, needed
from composcope.study.claim import Bounds
from composcope.study.evidence import Evidence, RunCache
from composcope.study.plan import Plan
from composcope.study.preset import Preset
from composcope.training import Training

from .judging import judged
from .made import drawn, made_run

(PANEL,) = experiment.PANELS
(CLAIM,) = experiment.CLAIMS
SEEDS = tuple(range(6))
COUNTS = tuple(4 * 2**i for i in range(14))
Accuracy = Callable[[Cell, int], float | None]


@cache
def octaves(counts: int = 9) -> tuple[Preset, Plan]:
    """A preset of sizes 8, 16 and 32 with the first so many counts, and its plan."""
    preset = Preset(f"octaves {counts}", "for tests", "made up")
    with pytest.MonkeyPatch.context() as patch:
        sizes = Sizes((8, 16, 32), COUNTS[:counts], width=4, training=Training(steps=3, batch=4), seeds=SEEDS)
        patch.setitem(plan.SIZES, preset.name, sizes)
        return preset, cells(preset)


def made(accuracy: Accuracy, counts: int = 9) -> Evidence:
    """Evidence of runs that were never trained; their accuracy is given by cell and seed, None for no run."""
    preset, every_cell = octaves(counts)
    runs = {
        cell: [made_run(spec, error={"accuracy": accuracy(cell, spec.seed)}) for spec in specs]
        for cell, specs in every_cell.items()
    }
    return Evidence(
        preset, {cell: [run for run in row if run.error["accuracy"] is not None] for cell, row in runs.items()}
    )


def law(power: int, at_8: int = 8) -> Accuracy:
    """Bumps alone need at_8 (N / 8)^power images, stripes N of them."""

    def accuracy(cell: Cell, seed: int) -> float:
        enough = cell.size if cell.kind == "stripes" else at_8 * (cell.size // 8) ** power
        return 1.0 if cell.images >= enough else 0.5

    return accuracy


def search(*accuracies: float, counts: tuple[int, ...] = (4, 8, 16, 32, 64)) -> Search:
    return Search("bumps", 10, 0, counts, accuracies)


@pytest.mark.parametrize(
    ("accuracies", "threshold", "finished", "text"),
    [
        ((0.1, 0.95, 0.95), 8, True, "8"),
        ((0.1, 0.95, 0.5, 0.92, 0.93), 32, True, "32"),  # a lucky count does not end the search
        ((0.1, 0.2, 0.3, 0.4, 0.9), 64, True, "64"),  # the last count has no next one
        ((0.1, 0.95, 0.5, 0.95, 0.8), None, True, "> 64"),
        ((0.95, 0.95), 4, True, "<= 4"),
        ((0.1, 0.95), None, False, "unfinished"),
        ((), None, False, "unfinished"),
    ],
)
def test_the_threshold_is_enough_and_stays_enough(accuracies, threshold, finished, text):
    tried = search(*accuracies)
    assert (tried.threshold, tried.finished, tried.text) == (threshold, finished, text)


def test_bounds_say_what_is_known_of_a_threshold():
    assert search(0.1, 0.95, 0.95).bounds == Bounds(8, 8)
    assert search(0.95, 0.95).bounds == Bounds(0, 4)
    assert search(0.1, 0.1, 0.1, 0.1, 0.1).bounds == Bounds(128, math.inf)
    assert search(0.1).bounds == Bounds(0, math.inf)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_an_exact_power_law_has_its_exponent(power):
    sizes = [10, 15, 20, 30]
    thresholds = [Bounds(7.0 * size**power, 7.0 * size**power) for size in sizes]
    bounds = exponent(sizes, thresholds)
    assert bounds.low == pytest.approx(power)
    assert bounds.high == pytest.approx(power)


def test_a_threshold_out_of_reach_bounds_the_exponent_from_below():
    bounds = exponent([8, 16, 32], [Bounds(8, 8), Bounds(64, 64), Bounds(128, math.inf)])
    assert bounds.low == pytest.approx(2)
    assert bounds.high == math.inf


def test_a_threshold_below_the_smallest_count_bounds_the_exponent_by_its_size():
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
    evidence = made(law(3))
    found = scaling(evidence)
    assert found.exponents("bumps") == {seed: Bounds(3, 3) for seed in SEEDS}
    assert found.exponents("stripes") == {seed: Bounds(1, 1) for seed in SEEDS}
    assert [row["images needed"] for row in found.table()] == ["8", "64", "512", "8", "16", "32"]
    assert found.table()[0]["exponent"] == "3.00"
    assert doublings(evidence) == dict.fromkeys(SEEDS, 4.0)
    assert judged(CLAIM, evidence).outcome == "reproduced"


@pytest.mark.parametrize("power", [1, 5])
def test_another_power_does_not_reproduce_the_claim(power):
    assert judged(CLAIM, made(law(power), counts=14)).outcome == "not reproduced"


def test_a_threshold_out_of_reach_is_marked_and_counted_by_its_bounds():
    evidence = made(law(3), counts=7)
    row = scaling(evidence).table()[2]
    assert row["by seed"] == ", ".join(["> 256"] * 6)
    assert row["images needed"] == ">= 512"
    assert row["exponent"] == ">= 3.00"
    assert exponents("bumps")(evidence) == dict.fromkeys(SEEDS, Bounds(3.0, math.inf))
    judgement = judged(CLAIM, evidence)
    below, above, *stripes = judgement.primary
    assert (below.method, below.holds, below.count) == ("sign test", True, 6)
    assert (above.method, above.holds) == ("sign test", None)
    assert [part.holds for part in stripes] == [True, True]
    assert judgement.outcome == "undetermined"


def test_six_seeds_of_bounds_are_too_few_to_contradict_the_whole_statement():
    judgement = judged(CLAIM, made(law(5), counts=10))  # 2048, the largest count, is not enough at 32
    above = judgement.primary[1]
    assert (above.method, above.holds) == ("sign test", None)
    assert (above.p_opposite, above.p_against) == (1 / 64, 4 / 64)
    assert judgement.outcome == "undetermined"  # 1/64 times the four inequalities is above 0.025


def test_no_evidence_has_no_effect():
    evidence = made(lambda cell, seed: None)
    for part in CLAIM.parts:
        assert part.effect(evidence) == {}
    assert judged(CLAIM, evidence).outcome == "not run"


def test_a_search_does_not_look_beyond_a_missing_cell():
    evidence = made(lambda cell, seed: None if cell.images == 16 else 1.0 * (cell.images > 16))
    assert {search.text for search in scaling(evidence).of("bumps", 8)} == {"unfinished"}


def test_a_size_that_was_not_run_still_counts_as_the_largest():
    evidence = made(lambda cell, seed: None if cell.size == 32 else law(3)(cell, seed))
    assert {search.text for search in scaling(evidence).of("bumps", 32)} == {"unfinished"}
    assert doublings(evidence) == {}
    assert exponents("bumps")(evidence) == {}


def test_figure_4c_draws_thresholds_laws_and_accuracies():
    numbers = scaling(made(law(3)))
    thresholds, bumps, stripes = drawn(PANEL, numbers).axes
    means = [container.lines[0].get_ydata().tolist() for container in thresholds.containers]
    assert means == [pytest.approx([8, 64, 512]), pytest.approx([8, 16, 32])]
    labels = [container.get_label() for container in thresholds.containers]
    assert labels == ["bumps alone: exponent 3.0 [3.0, 3.0]", "stripes: exponent 1.0 [1.0, 1.0]"]
    assert [text.get_text() for text in thresholds.texts] == ["N$^3$", "N"]
    laws = [line.get_ydata() for line in thresholds.lines if line.get_linestyle() == "--"]
    assert np.allclose(laws, [[8, 512], [8, 32]])
    assert (bumps.get_title(), stripes.get_title()) == ("bumps alone", "stripes")
    for axes, kind in ((bumps, "bumps"), (stripes, "stripes")):
        *lines, enough = axes.lines
        searches = [search for size in numbers.sizes for search in numbers.of(kind, size)]
        for line, search in zip(lines, searches, strict=True):
            assert line.get_ydata().tolist() == list(search.accuracies)
            assert line.get_xdata().tolist() == list(search.counts[: len(search.accuracies)])
        assert list(enough.get_ydata()) == [0.9, 0.9]


@pytest.mark.parametrize("counts", [3, 6, 10])
def test_seeds_out_of_reach_are_arrows_at_the_cap(counts):
    evidence = made(law(3), counts)
    thresholds = drawn(PANEL, scaling(evidence)).axes[0]
    arrows = [line for line in thresholds.lines if line.get_marker() == "$\\uparrow$"]
    unreached = [search for search in scaling(evidence).searches if search.text.startswith(">")]
    assert len(arrows) == len(unreached)
    assert all(arrow.get_ydata()[0] == COUNTS[counts - 1] for arrow in arrows)


def test_the_figure_is_drawn_from_nothing():
    for numbers in (Scaling(()), scaling(made(lambda cell, seed: None))):
        assert len(drawn(PANEL, numbers).axes) == 3


def test_only_counts_that_are_certainly_needed_are_next():
    assert search().next_counts == (4, 8)
    assert search(0.1, 0.2).next_counts == (16, 32)
    assert search(0.1, 0.95).next_counts == (16,)
    assert search(0.1, 0.95, 0.2).next_counts == (32, 64)
    assert search(0.1, 0.95, 0.95).next_counts == ()


def test_the_search_goes_up_its_counts_and_ends(tmp_path):
    store, every_cell = Store(tmp_path / "runs"), cells(TINY)
    rounds = 0
    while todo := needed(every_cell, store):
        assert not any(store.has(spec.run_id) for spec in todo)
        for spec in todo:
            train(spec, store)
        rounds += 1
        assert rounds <= 4
    numbers = scaling(RunCache(store).gather(TINY, every_cell))
    assert all(search.finished for search in numbers.searches)
    assert len({tuple(row) for row in numbers.table()}) == 1
