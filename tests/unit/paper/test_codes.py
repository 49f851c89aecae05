"""The numbers behind figures 1, 5, 8 and the controls, and the claims about them."""

from collections.abc import Iterator

import pytest
import torch

from composcope.diagnosis.outputs import Errors
from composcope.experiments.run import run as train
from composcope.experiments.store import Store
from composcope.factors import Factor, latent_grid
from composcope.figures.codes import PANELS
from composcope.measures.error import ByDistance, shape_correlation
from composcope.paper import codes, controls, similarity
from composcope.paper.claims import codes as claims
from composcope.paper.evidence import Evidence, Known, Run
from composcope.paper.ledger import judge
from composcope.paper.preset import TINY
from composcope.tasks.bump import BumpTask

PANEL = {panel.name: panel for panel in PANELS}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    """Every run of the group at the tiny preset, trained once."""
    store = Store(tmp_path_factory.mktemp("runs"))
    for plan in (codes.every(TINY), codes.controls(TINY)):
        for spec in (spec for specs in plan.values() for spec in specs):
            train(spec, store)
    return Known(store)


@pytest.fixture(scope="module")
def bump(known: Known) -> Run:
    return Evidence(TINY, codes.one(TINY), known).first("bump")


class Made(Evidence):
    """Evidence put together by hand."""

    def __init__(self, runs: dict[str, list[Run]]) -> None:
        self.preset, self.plan, self._runs = TINY, {}, runs


def made_run(code: str, seed: int, **answers: object) -> Run:
    """A run that was never trained; what it is asked is given."""
    made = Run(Store("nowhere"), codes.spec(TINY, code, seed))
    made.__dict__.update(answers)
    return made


def errors_placed(means: list[float], counts: list[float]) -> Errors:
    """Errors of which only the shares in place at distances 1, 2, ... are known."""
    distances = torch.arange(1.0, len(means) + 1)
    curve = ByDistance(distances, torch.tensor(means).double(), torch.tensor(counts).double())
    return Errors(torch.zeros(1), {}, *[None] * 12, by_distance={"placed": curve})


def test_spread_rows_go_through_the_hole_from_its_upper_left():
    grid = latent_grid([Factor("x", range(8)), Factor("y", range(8))])
    hole = ((grid >= 2) & (grid <= 5)).all(1)
    assert grid[codes.spread_rows(grid, hole, 2)].tolist() == [[3, 5], [5, 5], [3, 3], [5, 3]]


def test_the_setup_shows_seen_and_held_out_points():
    numbers = codes.setup(Evidence(TINY, {}, Known(Store("nowhere"))))
    assert numbers.inside.tolist() == [False] * 4 + [True] * 4
    assert numbers.heldout.sum() == 16
    at = numbers.points[numbers.shown]
    x, y = numbers.codes["one-hot"]
    assert (x.argmax().item(), y.argmax().item()) == tuple(at.tolist())
    assert [part.item() for part in numbers.codes["rate"]] == at.tolist()


def test_reach_counts_steps_that_are_drawn_right():
    assert codes.reach(errors_placed([1.0, 1.0, 0.0, 0.0], [4, 3, 2, 1])) == 2
    assert codes.reach(errors_placed([0.5, 0.25], [4, 3])) == 0.75


def test_placed_beyond_weighs_distances_by_their_points():
    found = errors_placed([1.0, 1.0, 0.5, 0.0], [9, 9, 3, 1])
    assert codes.placed_beyond(found, 2) == pytest.approx(1.5 / 4)
    assert codes.placed_beyond(found, 4) is None


def test_failure_has_the_runs_own_numbers(known, bump):
    found = codes.failure(Evidence(TINY, codes.local(TINY), known))
    row = found.table()[0]
    assert (row["code"], row["seed"]) == ("bump", 0)
    assert row["held-out MSE"] == pytest.approx(bump.error["heldout_mse"])
    assert row["held-out in place"] == pytest.approx(bump.error["accuracy"])
    assert found.codes[0].placed.shape == (len(TINY.seeds), 2)


def test_sheets_begin_with_the_code_and_end_with_the_image(known):
    found = codes.bent(Evidence(TINY, codes.both(TINY), known))
    assert [sheet.layer for sheet in found.sheets[0]][0::2] == ["code", "image"]
    flat = found.sheets[0][0]
    assert (flat.code, flat.units) == ("rate", 2)
    assert flat.explained[:2].sum().item() == pytest.approx(1)
    steps = flat.coordinates[1:, 0] - flat.coordinates[:-1, 0]
    assert torch.allclose(steps, steps[:1].expand_as(steps), atol=1e-6)  # a plane is not bent


def test_parts_alone_sum_to_what_the_diagnosis_compares(bump):
    held = bump.parts.mask.nonzero()[:, 0].tolist()
    x, y = similarity.parts_alone(bump, held)
    outputs = bump.spec.task.foreground(bump.images[held])
    found = shape_correlation(outputs, x + y)
    assert torch.allclose(found, bump.diagnosis.superposition.parts.correlations.double(), atol=1e-5)


def test_x_alone_does_not_know_y(bump):
    grid = bump.parts.latents
    rows = [row for row in range(len(grid)) if grid[row, 0] == 3]
    x, y = similarity.parts_alone(bump, rows)
    assert torch.allclose(x, x[:1].expand_as(x), atol=1e-6)
    assert not torch.allclose(y, y[:1].expand_as(y), atol=1e-6)


def test_true_images_follow_the_product_kernel(bump):
    found = similarity.true_agreement(bump)
    assert found["product smoothed"] > 0.98
    assert found["binary"] < found["binary smoothed"] < found["product smoothed"]


def test_ordered_puts_seen_points_first(bump):
    held, gram = bump.parts.mask, bump.diagnosis.kernels.cosine
    seen = int((~held).sum())
    found = similarity.ordered(bump, "cosine")
    assert torch.equal(found[:seen, :seen], gram[~held][:, ~held])
    assert torch.equal(found[seen:, :seen], gram[held][:, ~held])


def test_true_volume_gap_is_the_closed_form():
    size = 9
    task = BumpTask(size)
    steps = torch.arange(size).double()[None, :] - torch.arange(size).double()[:, None]
    weight = torch.exp(-steps.square())
    square, one, odd = ((steps**power * weight).sum(1) for power in (2, 0, 1))
    metric = torch.outer(square, one) * torch.outer(one, square) - torch.outer(odd, odd).square()
    inside = torch.zeros(size, size, dtype=torch.bool)
    inside[3:6, 3:6] = True
    logs = metric.sqrt().log10()
    expected = (logs[inside].mean() - logs[~inside].mean()).item()
    assert controls.true_volume_gap(task, inside.flatten()) == pytest.approx(expected, abs=1e-5)


def test_a_region_that_is_the_hole_has_the_runs_own_numbers(bump):
    found = controls.region(bump, bump.parts.mask)
    assert found.placed == (bump.error["accuracy"], bump.error["seen_accuracy"])
    assert found.share[0] == pytest.approx(bump.error["heldout_mse"] / bump.error["blank_mse"], rel=0.02)
    gap = bump.diagnosis.layers["image"].geometry.volumes.gap
    assert found.volume_gap == pytest.approx(gap - controls.true_volume_gap(bump.spec.task, bump.parts.mask))


def test_the_image_encoders_region_is_of_codes(known):
    reader = Evidence(TINY, codes.controls(TINY), known).first("image encoder")
    found = controls.region(reader, reader.parts.mask)
    assert found.placed == (reader.error["code_accuracy"], reader.error["seen_code_accuracy"])
    assert found.volume_gap is None


def test_without_a_hole_the_region_is_where_it_would_be(known):
    evidence = Evidence(TINY, codes.holes(TINY), known)
    square, none = evidence.first("square"), evidence.first("no hole")
    assert not none.parts.mask.any()
    assert torch.equal(controls.where(none, TINY.hole), square.parts.mask)


def every_part() -> Iterator[tuple[int, object]]:
    for claim in claims.CLAIMS:
        for part in claim.parts:
            yield claim, part


def test_no_runs_give_no_effects(tmp_path):
    empty = Known(Store(tmp_path))
    for claim, part in every_part():
        found = list(part.effect(Evidence(TINY, claim.plan(TINY), empty)))
        assert len(found) == part.exact, part.measure


def test_effects_are_one_a_seed(known):
    for claim, part in every_part():
        if claim.number not in (1, 20):  # five steps teach nothing, so that claim 1 has no run to judge by
            found = part.effect(Evidence(TINY, claim.plan(TINY), known))
            assert len(found) == len(TINY.seeds), part.measure


def test_claims_name_panels_that_are_there():
    assert {name for claim in claims.CLAIMS for name in claim.figures} <= set(PANEL)
    shown = {name for claim in claims.CLAIMS for name in claim.figures}
    assert all(bool(panel.no_claim) == (panel.name not in shown) for panel in PANELS)


def test_a_bump_is_one_product_and_a_cross_two():
    verdict = judge(next(c for c in claims.CLAIMS if c.number == 20), Made({}))
    assert verdict.outcome == "reproduced"
    assert [part.effect for part in verdict.parts] == [1, 2, 2]


def test_runs_that_learnt_nothing_are_left_out_of_the_first_claim():
    first = next(claim for claim in claims.CLAIMS if claim.number == 1)
    learnt = {"error": {"seen_mse": 0.01, "heldout_mse": 0.9, "blank_mse": 1.0}}
    dull = {"error": {"seen_mse": 0.5, "heldout_mse": 0.9, "blank_mse": 1.0}}
    runs = {code: [made_run(code, 0, **(dull if code == "rate" else learnt))] for code in codes.CODES}
    values = [list(part.effect(Made(runs))) for part in first.parts[:4]]
    assert values == [[0.9], [], [0.9], [0.9]]


class Seen:
    """A diagnosis of which only the errors are known."""

    def __init__(self, *means: float) -> None:
        self.error = errors_placed(list(means), [1.0] * len(means))


def test_reach_apart_takes_the_codes_that_other_seeds_name():
    reaches = {"bump": (1.0, 1.0, 0.0), "rate": (0.0, 0.0, 1.0)}
    runs = {
        code: [made_run(code, seed, diagnosis=Seen(value, 0.0)) for seed, value in enumerate(values)]
        for code, values in reaches.items()
    }
    # Seeds 0 and 1 see one seed for and one against, a tie; seed 2 sees two for the bump code, and is against.
    assert claims.reach_apart(Made(runs))[2] == -1
    assert claims.reach_apart(Made({code: some[:1] for code, some in runs.items()})) == []


def test_seeds_are_paired():
    runs = {
        "bump": [made_run("bump", 0, error={"accuracy": 0.5}), made_run("bump", 2, error={"accuracy": 0.7})],
        "rate": [made_run("rate", 1, error={"accuracy": 0.1}), made_run("rate", 2, error={"accuracy": 0.4})],
    }
    assert claims.difference("bump", "rate", claims.accuracy)(Made(runs)) == [pytest.approx(0.3)]
