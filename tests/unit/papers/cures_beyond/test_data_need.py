"""How the data need grows with the number of factors: fair training sets, numbers from known runs, an honest figure."""

import math

import pytest

import composcope as cs
from composcope.papers.cures_beyond import STUDY
from composcope.papers.cures_beyond.data_need import (
    SIZES,
    Amount,
    data_need,
    data_need_table,
    every_amount,
    learned_what_was_shown,
    unshown_values,
)
from composcope.papers.cures_beyond.drawing import curve, draw_data_need, needed
from composcope.study.evidence import RunCache
from composcope.study.numbers import Numbers, pack_numbers, unpack_numbers

QUICK, TINY = STUDY.preset("quick"), STUDY.preset("tiny")


def test_worlds_differ_by_one_factor_each():
    tasks = [world.task for world in SIZES["quick"].worlds]
    names = [tuple(factor.name for factor in task.factors) for task in tasks]
    assert names == [("x", "y"), ("x", "y", "scale"), ("x", "y", "scale", "colour")]
    assert len({task.image_shape for task in tasks}) == 1


def test_training_sets_differ_by_what_is_shown_alone():
    plan = every_amount(QUICK)
    assert sum(map(len, plan.values())) == 84
    assert {(spec.training, spec.decoder, spec.holdout) for specs in plan.values() for spec in specs} == {
        (next(iter(plan.values()))[0].training, cs.CNN(depth=3, width=24), cs.Cells(share=0.25))
    }
    for amount, specs in plan.items():
        assert [spec.seed for spec in specs] == [10, 11, 12]
        assert specs[0].certificate.composition
        assert specs[0].sampling.bumps == amount.combinations
        assert (specs[0].sampling.stripes == 0) != amount.single
        counterpart = plan[Amount(amount.factors, amount.combinations, not amount.single)]
        assert counterpart[0].task == specs[0].task


def point(factors, single, combinations, fully, learned=True):
    names = ("x", "y", "scale", "colour")[:factors]
    of_set = {"world": ", ".join(names), "number of factors": factors, "single": single, "combinations": combinations}
    of_run = {"of": 48, "learned": learned, "unshown": 1, "CPU seconds": 2.0}
    return [
        {"run": Amount(factors, combinations, single).label, "seed": seed, **of_set, **of_run}
        | {"fully right": share, "seen right": share, "factors": dict.fromkeys(names, share)}
        for seed, share in enumerate(fully)
    ]


NEED = Numbers(
    [
        *point(2, False, 12, (0.1, 0.2), learned=False),
        *point(2, False, 48, (0.95, 0.5)),
        *point(2, True, 12, (0.9, 0.4)),
        *point(2, True, 48, (0.3, 1.0)),
    ]
)


def test_the_number_needed_is_the_smallest_that_was_enough():
    assert needed(curve(NEED, 2, False)) == [48, math.inf]
    assert needed(curve(NEED, 2, True)) == [12, 48]


def test_the_table_says_where_the_number_is_only_bounded():
    rows = data_need_table(NEED)
    assert rows[0]["combinations needed for 0.9, by seed"] == "48, >48"
    assert rows[2]["combinations needed for 0.9, by seed"] == "12, 48"
    assert (rows[0]["fully right"], rows[0]["has learned what it was shown"]) == (pytest.approx(0.15), 0)


def test_the_figure_marks_what_was_not_learned_and_what_was_not_reached():
    read = unpack_numbers(pack_numbers(NEED))
    curves, needed = draw_data_need(read).axes
    open_marks = [line for line in curves.lines if line.get_markerfacecolor() == "white"]
    assert [line.get_xdata()[0] for line in open_marks] == [12]
    bounds = [line for line in needed.lines if line.get_marker() == "^"]
    assert [line.get_ydata()[0] for line in bounds] == [48]


def test_tiny_runs_have_numbers(tmp_path):
    cache = RunCache(cs.Store(tmp_path / "runs"))
    plan = {amount: specs[:1] for amount, specs in every_amount(TINY).items()}
    for specs in plan.values():
        cs.run(specs[0], cache.store)
    evidence = cache.gather(TINY, plan)
    found = data_need(evidence)
    assert set(found.column("number of factors")) == {2, 3}
    assert all(0 <= row["fully right"] <= 1 and row["CPU seconds"] > 0 for row in found.rows)
    run = evidence.first(Amount(2, 4, False))
    assert not learned_what_was_shown(run)
    shown = run.spec.sampling.sample(run.spec.task, run.spec.holdout, cs.randomness.generator(0, "sampling"))
    assert unshown_values(run) == sum(3 - len(column.unique()) for column in shown.T)
