"""Thresholds and exponents of made-up searches, figure 4c and claim 12, and the search itself at the tiny preset."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from composcope.papers.forced_rendering import scaling as experiment
from composcope.papers.forced_rendering.base import PAPER, TINY
from composcope.papers.forced_rendering.scaling import figures
from composcope.papers.forced_rendering.scaling.claims import doublings, exponents
from composcope.papers.forced_rendering.scaling.drawing import KINDS
from composcope.papers.forced_rendering.scaling.figures import Sizes, cells, needed, scaling, scaling_table
from composcope.papers.forced_rendering.scaling.search import (
    Cell,
    CountSearch,
    Scaling,
    continued,
    exponent,
    over_seeds,
)
from composcope.runs.pipeline import run as train
from composcope.runs.run import Run
from composcope.store.store import Store
from composcope.study.claim import Bounds
from composcope.study.evidence import Evidence, RunCache
from composcope.study.numbers import Numbers
from composcope.study.plan import Plan, Preset, of_preset
from composcope.study.statistics import interval
from composcope.training import Training

from .judging import judged
from .made import made_run, picture

(PANEL,) = experiment.PANELS
(CLAIM,) = experiment.CLAIMS
SEEDS = tuple(range(6))
COUNTS = tuple(4 * 2**i for i in range(14))
Accuracy = Callable[[Cell, int], float | None]


@cache
def octaves(
    counts: int = 9, bisections: int = 2, sizes: tuple[int, ...] = (8, 16, 32), seeds: tuple[int, ...] = SEEDS
) -> tuple[Preset, Plan]:
    """A preset of these sizes with the first so many counts, and its plan."""
    preset = Preset(f"octaves {counts} {bisections} {sizes} {seeds}", "for tests", "made up")
    with pytest.MonkeyPatch.context() as patch:
        training = Training(steps=3, batch=4)
        patch.setitem(
            figures.SIZES,
            preset.name,
            Sizes(sizes, COUNTS[:counts], bisections, width=4, training=training, seeds=seeds),
        )
        return preset, cells(preset)


def made(accuracy: Accuracy, **sizes) -> Evidence:
    """Evidence of runs that were never trained; their accuracy is given by cell and seed, None for no run."""
    preset, every_cell = octaves(**sizes)
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
        enough = cell.size if cell.kind == "stripes" else at_8 * (cell.size / 8) ** power
        return 1.0 if cell.images >= enough else 0.5

    return accuracy


def search(*accuracies: float, counts: tuple[int, ...] = (4, 8, 16, 32, 64), **bisected) -> CountSearch:
    return CountSearch("bumps", 10, 0, counts, accuracies, **bisected)


def searched(enough: Callable[[int], bool], bisections: int = 2) -> CountSearch:
    """The search with doubling counts 4 to 256 and every other count run, where these counts are enough."""
    counts = tuple(4 * 2**i for i in range(7))
    return continued(
        CountSearch("bumps", 10, 0, counts, (), bisections), {count: float(enough(count)) for count in range(1, 257)}
    )


@pytest.mark.parametrize(
    ("accuracies", "threshold", "finished", "text"),
    [
        ((0.1, 0.95, 0.95), 8, True, "4-8"),
        ((0.1, 0.95, 0.5, 0.92, 0.93), 32, True, "16-32"),  # a lucky count does not end the search
        ((0.1, 0.2, 0.3, 0.4, 0.9), 64, True, "32-64"),  # the last count has no next one
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
    assert search(0.1, 0.95, 0.95).bounds == Bounds(4, 8)
    assert search(0.1, 0.95, 0.5, 0.92, 0.93).bounds == Bounds(16, 32)
    assert search(0.95, 0.95).bounds == Bounds(0, 4)
    assert search(0.1, 0.1, 0.1, 0.1, 0.1).bounds == Bounds(64, math.inf)
    assert search(0.1).bounds == Bounds(0, math.inf)


@pytest.mark.parametrize("threshold", [33, 38, 39, 45, 46, 54, 55, 64])
def test_two_bisections_enclose_a_known_threshold_to_a_quarter_of_a_doubling(threshold):
    bounds = searched(lambda count: count >= threshold).bounds
    assert bounds.low < threshold <= bounds.high
    assert bounds.high / bounds.low == pytest.approx(2**0.25, rel=0.01)


def test_bisections_try_geometric_midpoints_one_at_a_time():
    found = searched(lambda count: count >= 45)
    assert found.bisected == ((45, 1.0), (38, 0.0))
    assert (found.threshold, found.bounds, found.text) == (45, Bounds(38, 45), "38-45")
    assert [count for count, _ in found.tried] == [4, 8, 16, 32, 38, 45, 64, 128]
    assert searched(lambda count: count >= 45, bisections=0).bounds == Bounds(32, 64)
    assert searched(lambda count: count >= 45, bisections=1).bounds == Bounds(32, 45)
    # Counts are integers, so that bisections end early where no count is left in between.
    assert searched(lambda count: count >= 7, bisections=9).bisected == ((6, 0.0), (7, 1.0))


def test_a_search_is_finished_when_its_bisections_are():
    doubled = search(0.1, 0.95, 0.95, bisections=2)
    assert (doubled.next_counts, doubled.finished, doubled.text) == ((6,), False, "unfinished")
    assert doubled.bounds == Bounds(0, math.inf)
    halved = doubled.after(0.2)
    assert (halved.bisected, halved.next_counts, halved.finished) == (((6, 0.2),), (7,), False)
    found = halved.after(0.9)
    assert (found.next_counts, found.finished, found.bounds) == ((), True, Bounds(6, 7))


def test_a_search_without_an_interval_has_nothing_to_bisect():
    assert searched(lambda count: True).bounds == Bounds(0, 4)
    assert searched(lambda count: False).bounds == Bounds(256, math.inf)


def test_accuracies_that_are_not_monotone_are_bisected_by_what_was_asked_for():
    # 16 is lucky; 38 would be as well, but is not asked for since 45 is not enough.
    assert searched(lambda count: count in (16, 38, 54) or count >= 64).bounds == Bounds(45, 54)
    assert searched(lambda count: count in (16, 45) or count >= 64).bounds == Bounds(38, 45)


def test_runs_that_a_search_has_not_asked_for_are_ignored():
    search = CountSearch("bumps", 10, 0, (32, 64, 128, 256), (), bisections=2)
    known = {32: None, 38: 1.0, 45: 0.0, 54: 1.0, 64: 1.0, 128: 1.0, 256: 1.0}
    assert continued(search, known) == search
    assert continued(search, known | {32: 0.0}).tried == [(32, 0.0), (45, 0.0), (54, 1.0), (64, 1.0), (128, 1.0)]


@pytest.mark.parametrize("preset", [PAPER.with_seeds(1), TINY])
def test_the_plan_has_every_count_that_a_search_may_ask_for(preset):
    columns: dict[tuple[str, int], list[Cell]] = {}
    for cell in cells(preset):
        columns.setdefault((cell.kind, cell.size), []).append(cell)
    asked = set()
    for (kind, size), column in columns.items():
        planned = [cell.images for cell in column]
        assert planned == sorted(set(planned))
        doubling = tuple(cell.images for cell in column if not cell.bisection)
        start = CountSearch(kind, size, 0, doubling, (), of_preset(figures.SIZES, preset).bisections)
        for threshold in [*planned, math.inf]:
            found = continued(start, {count: float(count >= threshold) for count in planned})
            assert found.threshold == (None if math.isinf(threshold) else threshold)
            asked |= {(kind, size, count) for count, _ in found.tried}
    assert asked == {(cell.kind, cell.size, cell.images) for cell in cells(preset)}


def test_the_searches_of_two_machines_go_as_far_as_their_runs_together():
    """Of one search each machine may have runs that the other lacks."""
    whole = scaling(made(law(3)))
    half, other = (
        scaling(made(lambda cell, seed, odd=odd: law(3)(cell, seed) if cell.images % 3 != odd else None))
        for odd in (1, 2)
    )
    assert {search.text for search in Scaling.read(half).searches} != {s.text for s in Scaling.read(whole).searches}
    assert Scaling.read(half.joined(other)) == Scaling.read(other.joined(half))
    everything = {(row["search"], row["seed"], row["images"]) for row in half.joined(other).rows}
    assert everything == {(row["search"], row["seed"], row["images"]) for row in (*half.rows, *other.rows)}
    complete = scaling(made(lambda cell, seed: law(3)(cell, seed) if cell.images != 8 else None))
    missing = scaling(made(lambda cell, seed: law(3)(cell, seed) if cell.images == 8 else None))
    assert Scaling.read(complete.joined(missing)) == Scaling.read(whole)


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
    known, at_least, at_most = Bounds(2, 3), Bounds(4, math.inf), Bounds(-math.inf, 1)
    assert over_seeds([known, known]).sign == ""
    assert (over_seeds([known, at_least]).sign, over_seeds([known, at_least]).mean) == (">=", 3)
    assert (over_seeds([known, at_most]).sign, over_seeds([known, at_most]).mean) == ("<=", 2)
    assert over_seeds([at_least, at_most]).sign == "?"
    assert over_seeds([]).sign == "?"


def test_the_interval_of_a_mean_covers_the_counts_and_the_seeds():
    summary = over_seeds([Bounds(1, 2), Bounds(2, 4), Bounds(3, 3.5)])
    assert summary.mean == pytest.approx((1.5 + 3 + 3.25) / 3)
    assert (summary.low, summary.high) == (interval([1, 2, 3])[1], interval([2, 4, 3.5])[2])
    same = over_seeds([Bounds(1, 2)] * 6)
    assert (same.mean, same.low, same.high) == (1.5, 1, 2)
    alone = over_seeds([Bounds(1, 2)])
    assert (alone.mean, alone.low, alone.high) == (1.5, 1, 2)


def assert_bounds(effects: dict[int, Bounds], low: float, high: float) -> None:
    """Every seed has these bounds."""
    assert tuple(effects) == SEEDS
    for bounds in effects.values():
        assert (bounds.low, bounds.high) == pytest.approx((low, high))


def test_a_cube_and_a_line_are_found_and_reproduce_the_claim():
    evidence = made(law(3))
    numbers = scaling(evidence)
    found, table = Scaling.read(numbers), scaling_table(numbers)
    assert [row["by seed"].split(", ")[0] for row in table] == [
        *("7-8", "54-64", "431-512"),
        *("7-8", "13-16", "27-32"),
    ]
    # With sizes 8, 16 and 32 the exponent is half the doublings from the first threshold to the last.
    assert_bounds(found.exponents("bumps"), math.log2(431 / 8) / 2, math.log2(512 / 7) / 2)
    assert_bounds(found.exponents("stripes"), math.log2(27 / 8) / 2, math.log2(32 / 7) / 2)
    assert_bounds(doublings(evidence), math.log2(431 / 32), math.log2(512 / 27))
    middles = [math.sqrt(low * high) for low, high in [(7, 8), (54, 64), (431, 512), (7, 8), (13, 16), (27, 32)]]
    assert [row["images needed"] for row in table] == [f"{middle:.0f}" for middle in middles]
    assert (table[1]["low"], table[1]["high"]) == ("54", "64")
    assert table[0]["exponent"] == "2.99"
    judgement = judged(CLAIM, evidence)
    assert {part.method for part in judgement.parts if part.count} == {"sign test"}
    assert judgement.outcome == "reproduced"


@pytest.mark.parametrize(("bisections", "holds"), [(0, None), (2, True)])
def test_sizes_that_span_a_factor_of_two_need_bisections(bisections, holds):
    below, above, beyond, stripes = judged(CLAIM, made(law(3), bisections=bisections, sizes=(8, 16))).primary
    assert (below.holds, above.holds, stripes.holds) == (holds, holds, True if holds else stripes.holds)
    assert beyond.count == 0  # no size beyond 20


def test_the_end_of_the_cube_law_contradicts_the_claim():
    def accuracy(cell: Cell, seed: int) -> float:
        return 0.5 if cell.kind == "bumps" and cell.size == 32 else law(3)(cell, seed)

    judgement = judged(CLAIM, made(accuracy, counts=12, seeds=tuple(range(8))))
    assert [part.holds for part in judgement.primary] == [True, True, False, True]
    assert judgement.outcome == "not reproduced"


@pytest.mark.parametrize("power", [1, 5])
def test_another_power_does_not_reproduce_the_claim(power):
    evidence = made(law(power), counts=14, seeds=tuple(range(8)))  # six are too few to contradict it, see below
    assert judged(CLAIM, evidence).outcome == "not reproduced"


def test_a_threshold_out_of_reach_is_marked_and_counted_by_its_bounds():
    evidence = made(law(3), counts=7)
    row = scaling_table(scaling(evidence))[2]
    assert row["by seed"] == ", ".join(["> 256"] * 6)
    assert row["images needed"] == ">= 256"
    (bounds,) = set(exponents("bumps")(evidence).values())
    assert 2 < bounds.low < 3
    assert bounds.high == math.inf
    assert row["exponent"] == f">= {bounds.low:.2f}"
    judgement = judged(CLAIM, evidence)
    below, above, beyond, stripes = judgement.primary
    assert [part.holds for part in (below, above, stripes)] == [True] * 3
    assert (beyond.method, beyond.holds, beyond.count) == ("sign test", None, 6)
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
        assert not part.effect or part.values(evidence) == {}
    assert judged(CLAIM, evidence).outcome == "not run"


def test_a_search_does_not_look_beyond_a_missing_cell():
    evidence = made(lambda cell, seed: None if cell.images == 16 else 1.0 * (cell.images > 16))
    assert {search.text for search in Scaling.read(scaling(evidence)).of("bumps", 8)} == {"unfinished"}


def test_a_size_that_was_not_run_still_counts_as_the_largest():
    evidence = made(lambda cell, seed: None if cell.size == 32 else law(3)(cell, seed))
    assert {search.text for search in Scaling.read(scaling(evidence)).of("bumps", 32)} == {"unfinished"}
    assert doublings(evidence) == {}
    assert exponents("bumps")(evidence) == {}


def test_figure_4c_draws_thresholds_laws_and_accuracies():
    numbers = scaling(made(law(3)))
    found = Scaling.read(numbers)
    thresholds, bumps, stripes = picture(PANEL, numbers).axes
    means = [container.lines[0].get_ydata().tolist() for container in thresholds.containers]
    middles = np.sqrt([[7 * 8, 54 * 64, 431 * 512], [7 * 8, 13 * 16, 27 * 32]])
    assert np.allclose(means, middles)
    labels = [container.get_label() for container in thresholds.containers]
    assert labels == ["bumps alone: exponent 3.0 [2.9, 3.1]", "stripes: exponent 1.0 [0.9, 1.1]"]
    assert [text.get_text() for text in thresholds.texts] == ["N$^3$", "N"]
    laws = [line.get_ydata() for line in thresholds.lines if line.get_linestyle() == "--"]
    assert np.allclose(laws, [[start, start * 4**power] for start, power in zip(middles[:, 0], (3, 1), strict=True)])
    assert (bumps.get_title(), stripes.get_title()) == ("bumps alone", "stripes")
    for axes, kind in ((bumps, "bumps"), (stripes, "stripes")):
        *lines, enough = axes.lines
        searches = [search for size in found.sizes for search in found.of(kind, size)]
        for line, search in zip(lines, searches, strict=True):
            assert list(zip(*line.get_data(), strict=True)) == search.tried
        assert list(enough.get_ydata()) == [0.9, 0.9]


def test_every_seed_is_a_vertical_line_from_its_lower_bound_to_its_threshold():
    numbers = scaling(made(law(3)))
    thresholds = picture(PANEL, numbers).axes[0]
    vertical = [line for line in thresholds.lines if len(set(line.get_xdata())) == 1 and len(line.get_xdata()) == 2]
    ends = [tuple(line.get_ydata()) for line in vertical]
    searches = [search for kind in KINDS for search in Scaling.read(numbers).of(kind)]
    assert ends == [(search.bounds.low, search.bounds.high) for search in searches]
    assert len({line.get_xdata()[0] for line in vertical}) == len(searches)  # none hides another


@pytest.mark.parametrize("counts", [3, 6, 10])
def test_seeds_out_of_reach_are_arrows_at_the_cap(counts):
    evidence = made(law(3), counts=counts)
    thresholds = picture(PANEL, scaling(evidence)).axes[0]
    arrows = [line for line in thresholds.lines if line.get_marker() == "$\\uparrow$"]
    unreached = [search for search in Scaling.read(scaling(evidence)).searches if search.text.startswith(">")]
    assert len(arrows) == len(unreached)
    assert all(arrow.get_ydata()[0] == COUNTS[counts - 1] for arrow in arrows)


def test_the_figure_is_drawn_from_nothing():
    for numbers in (Numbers([], common={"searches": {}}), scaling(made(lambda cell, seed: None))):
        assert len(picture(PANEL, numbers).axes) == 3


def test_only_counts_that_are_certainly_needed_are_next():
    assert search().next_counts == (4, 8)
    assert search(0.1, 0.2).next_counts == (16, 32)
    assert search(0.1, 0.95).next_counts == (16,)
    assert search(0.1, 0.95, 0.2).next_counts == (32, 64)
    assert search(0.1, 0.95, 0.95).next_counts == ()


def asked(
    every_cell: Plan, accuracy: Accuracy, store: Store, patch: pytest.MonkeyPatch
) -> tuple[list[set[Cell]], Evidence]:
    """The cells that the search asks for, round by round, and the evidence at its end; nothing is trained."""
    cell_of = {spec.run_id: cell for cell, specs in every_cell.items() for spec in specs}
    done: dict[str, Run] = {}

    class MadeRuns(RunCache):
        def runs(self, specs):
            return [done[spec.run_id] for spec in specs if spec.run_id in done]

    patch.setattr(figures, "RunCache", MadeRuns)
    rounds = []
    while todo := needed(every_cell, store):
        assert not any(spec.run_id in done for spec in todo)
        rounds.append({cell_of[spec.run_id] for spec in todo})
        for spec in todo:
            done[spec.run_id] = made_run(spec, error={"accuracy": accuracy(cell_of[spec.run_id], spec.seed)})
    return rounds, MadeRuns(store).gather(TINY, every_cell)


def test_the_search_goes_up_its_counts_then_bisects_and_ends(tmp_path, monkeypatch):
    store = Store(tmp_path / "runs")
    rounds, evidence = asked(cells(TINY), lambda cell, seed: float(cell.images >= 7), store, monkeypatch)
    images = [sorted(cell.images for cell in cells if (cell.kind, cell.size) == ("stripes", 8)) for cells in rounds]
    assert images == [[2, 4], [8, 16], [6]]
    numbers = scaling(evidence)
    texts = {(s.kind, s.size): s.text for s in Scaling.read(numbers).searches}
    expected = {("bumps", 8): "6-8", ("bumps", 10): "<= 8", ("stripes", 8): "6-8", ("stripes", 10): "5-7"}
    assert texts == expected
    assert len({tuple(row) for row in scaling_table(numbers)}) == 1


def test_the_search_of_trained_runs_ends(tmp_path):
    store, every_cell = Store(tmp_path / "runs"), cells(TINY)
    rounds = 0
    while todo := needed(every_cell, store):
        assert not any(store.has(spec.run_id) for spec in todo)
        for spec in todo:
            train(spec, store)
        rounds += 1
        assert rounds <= 5
    numbers = scaling(RunCache(store).gather(TINY, every_cell))
    assert all(search.finished for search in Scaling.read(numbers).searches)
