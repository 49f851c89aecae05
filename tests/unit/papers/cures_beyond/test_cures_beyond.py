"""The study of cures beyond the bump: its plan is fair, its numbers are the verdict's, its figures show them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import composcope as cs
from composcope.papers.cures_beyond import STUDY, figures
from composcope.papers.cures_beyond.data_need import Amount, every_amount
from composcope.papers.cures_beyond.drawing import draw_cells, draw_factors
from composcope.papers.cures_beyond.figures import outcome_table, outcomes
from composcope.papers.cures_beyond.treatments import CONTROL, TREATMENTS
from composcope.runs.run import InMemory, Run
from composcope.study.evidence import Evidence, RunCache
from composcope.study.numbers import Numbers, pack_numbers, unpack_numbers

ROOT = Path(__file__).parents[4]
QUICK, TINY = STUDY.preset("quick"), STUDY.preset("tiny")


@pytest.mark.parametrize("preset", STUDY.presets, ids=lambda preset: preset.name)
def test_every_treatment_gets_the_same_budget_and_every_world_its_control(preset):
    cells = figures.every_cell(preset)
    budgets = {(spec.training.steps, spec.training.batch) for specs in cells.values() for spec in specs}
    assert len(budgets) == 1
    controls = {cell.world: specs for cell, specs in cells.items() if cell.treatment == CONTROL}
    assert {cell.world for cell in cells} == set(controls)
    for cell, specs in cells.items():
        control = controls[cell.world]
        assert [(spec.task, spec.holdout, spec.seed) for spec in specs] == [
            (spec.task, spec.holdout, spec.seed) for spec in control
        ]
    assert {cell.treatment for cell in cells} >= {treatment.name for treatment in TREATMENTS if not treatment.worlds}


def test_held_out_images_are_never_training_images():
    """An absent factor drawn as a maximum may be a held-out image; then the treatment would be shown the answer."""
    leaking = {cell.label for cell, specs in figures.every_cell(QUICK).items() if not specs[0].certificate.composition}
    assert not leaking


def test_judged_seeds_were_not_used_for_choosing():
    assert all(spec.seed >= 10 for specs in figures.every_cell(QUICK).values() for spec in specs)


def test_the_registration_is_up_to_date():
    """A claim that changes gets a new version, and its hash is registered before it is judged."""
    registered = json.loads((ROOT / "results" / "cures-beyond" / "registration.json").read_text())
    current = {str(claim.number): {"version": claim.version, "hash": claim.registration} for claim in STUDY.claims}
    assert registered == {"study": STUDY.name, "claims": current}


def test_a_claim_needs_only_cells_of_the_plan():
    known = figures.every_cell(QUICK)
    for claim in STUDY.claims:
        cells = claim.plan(QUICK)
        assert cells
        assert all(known[cell] == specs for cell, specs in cells.items())
        assert len(cells) < len(known)


def told(spec, fully):
    """A run whose verdict and error are known."""
    run = Run(spec, InMemory(cs.Trained({}, [], 2.0, cpu_seconds=1.0 if spec.seed == 10 else None), {}))
    shares = {"composer": fully, "blank": 1 - fully}
    kind = "composes" if fully > 0.5 else "has not learned"
    verdict = {"kind": kind, "shares": shares, "seen_shares": shares, "factors": {"x": fully, "y": 1.0}}
    run.__dict__ |= {"verdict": verdict, "measures": {"error": {"heldout_mse": 1 - fully, "blank_mse": 2.0}}}
    return run


def evidence(fully):
    """Runs of the world of two positions with these shares of fully right images, by treatment and seed."""
    cells = figures.cells(TINY, "bumps: x, y")
    return Evidence(
        QUICK,
        {
            cell: [told(replace(specs[0], seed=10 + seed), share) for seed, share in enumerate(fully(cell.treatment))]
            for cell, specs in cells.items()
        },
    )


def test_the_numbers_are_the_verdicts():
    found = outcomes(evidence(lambda treatment: [0.25, 0.75] if treatment == CONTROL else [1.0, 1.0]))
    control = [row for row in found.rows if row["treatment"] == CONTROL]
    assert [row["fully right"] for row in control] == [0.25, 0.75]
    assert [row["learned"] for row in control] == [False, True]
    assert [row["factors"] for row in control] == [{"x": 0.25, "y": 1.0}, {"x": 0.75, "y": 1.0}]
    assert [row["error"] for row in control] == [0.375, 0.125]
    row = outcome_table(found)[0]
    assert (row["treatment"], row["fully right"], row["has learned"]) == (CONTROL, 0.5, 1)
    assert row["per factor"] == "x 0.50, y 1.00"
    assert (row["seconds"], row["CPU seconds"], row["seeds with CPU seconds"]) == (2.0, 1.0, 1)
    assert unpack_numbers(pack_numbers(found)).rows == found.rows


def test_claims_hold_where_they_should_and_not_where_they_should_not():
    claim = next(claim for claim in STUDY.claims if claim.number == 5)
    gain = claim.primary[0].effect
    known = evidence(lambda treatment: [0.9, 0.8] if "coordinates" in treatment else [0.1, 0.2])
    assert gain(known) == pytest.approx({10: 0.8, 11: 0.6})


def test_runs_of_the_report_are_in_the_class_of_what_they_were_shown():
    every = {**figures.every_cell(QUICK), **every_amount(QUICK)}
    found = {key: STUDY.headline.class_of(specs[0].to_dict()).label for key, specs in every.items()}
    assert {label for key, label in found.items() if isinstance(key, Amount)} == {"trained on some of the combinations"}
    treated = [key.treatment for key, label in found.items() if label == "shown factors alone"]
    assert all("single" in name or "subsets" in name for name in treated)
    assert {key.treatment for key, label in found.items() if label == "untreated"} == {CONTROL}


def test_the_figures_show_every_cell():
    rows = [
        {"run": f"{w}; {t}", "seed": seed, "world": w, "treatment": t, "fully right": 0.1 * (1 + seed)}
        | {"learned": t != "b" or seed == 1, "factors": {"x": 0.3}}
        for w in ("one", "two")
        for t in ("a", "b")
        for seed in (0, 1)
    ]
    numbers = Numbers(rows)
    drawn = draw_cells(numbers)
    texts = [text.get_text() for text in drawn.axes[0].texts]
    assert len(texts) == 4
    assert sum("1 of 2 not learned" in text for text in texts) == 2
    assert len(draw_factors(numbers).axes) == 2


def test_tiny_runs_of_every_treatment_have_an_outcome(tmp_path):
    cache = RunCache(cs.Store(tmp_path / "runs"))
    cells = {cell: specs[:1] for cell, specs in figures.every_cell(TINY).items()}
    for specs in cells.values():
        cs.run(specs[0], cache.store)
    found = outcomes(cache.gather(TINY, cells))
    assert set(found.column("treatment")) == {treatment.name for treatment in TREATMENTS}
    assert all(0 <= share <= 1 for share in found.column("fully right"))


@pytest.mark.slow
def test_the_whole_study_runs_when_it_is_tiny(tmp_path):
    result = cs.reproduce(STUDY, preset="tiny", seeds=1, store=tmp_path / "runs", workers=1)
    assert not result.failures
    assert {panel.name: panel.missing for panel in result.panels} == {"cells": "", "factors": "", "data": ""}
    assert all(panel.png for panel in result.panels)
    assert len(result.ledger.judgements) == len(STUDY.claims)
