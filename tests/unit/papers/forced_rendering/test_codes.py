"""Figures 1a to 1c and 5 and their numbers, and claims 1, 20 and 21."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from composcope.diagnosis.errors import Errors
from composcope.factors import Factor, latent_grid
from composcope.measures.error import ByDistance
from composcope.papers.forced_rendering import codes, similarity
from composcope.papers.forced_rendering.base import (
    CODES,
    SIZES,
    TINY,
    all_codes,
    base_spec,
    bump_and_rate,
    spread_rows,
)
from composcope.papers.forced_rendering.codes import figures
from composcope.papers.forced_rendering.drawing import MAX_SHARE, MIN_SHARE
from composcope.study.claim import UNLEARNED, Excluded
from composcope.study.drawing import COLOURS, MARK
from composcope.study.judging import judge
from composcope.study.observations import Observation, Observations, observe

from .made import made, made_run, outlines, picture, titled, titles

PANEL = {panel.name: panel for panel in codes.PANELS}
CLAIM = {claim.number: claim for claim in codes.CLAIMS}


def errors_by_distance(means: list[float], counts: list[float]) -> Errors:
    """Errors of which only the accuracies at distances 1, 2, ... are known."""
    distances = torch.arange(1.0, len(means) + 1)
    curve = ByDistance(distances, torch.tensor(means).double(), torch.tensor(counts).double())
    return Errors(torch.zeros(1), {}, *[None] * 12, by_distance={"placed": curve})


def test_spread_rows_go_through_the_hole_from_its_upper_left():
    grid = latent_grid([Factor("x", range(8)), Factor("y", range(8))])
    hole = ((grid >= 2) & (grid <= 5)).all(1)
    assert grid[spread_rows(grid, hole, 2)].tolist() == [[3, 5], [5, 5], [3, 3], [5, 3]]


def test_the_setup_shows_seen_and_held_out_points():
    setup = figures.setup(made({}))
    assert setup.common["inside"].tolist() == [False] * 4 + [True] * 4
    assert setup.common["heldout"].sum() == 16
    at = setup.common["points"][setup.common["index"]]
    (one_hot,), (rate,) = setup.of("one-hot"), setup.of("rate")
    assert (one_hot["x"].argmax().item(), one_hot["y"].argmax().item()) == tuple(at.tolist())
    assert [rate["x"].item(), rate["y"].item()] == at.tolist()


def test_figure_1a_draws_the_hole_the_codes_and_the_true_images():
    setup = figures.setup(made({}))
    figure = picture(PANEL["1a"], setup)
    plane = titled(figure, "the plane of x and y")
    assert outlines(plane) == [(MARK.lower(), True)]
    discs = [line for line in plane.lines if line.get_marker() == "o"]
    assert [disc.get_xydata()[0].tolist() for disc in discs] == setup.common["points"].tolist()
    assert [to_hex(disc.get_color()) for disc in discs] == [COLOURS[0].lower()] * 4 + [MARK.lower()] * 4
    bars = {axes.get_ylabel(): [bar.get_height() for bar in axes.patches] for axes in figure.axes if axes.patches}
    for row in setup.rows:
        assert bars[row["code"]] == pytest.approx(row["x"].tolist())
    for letter, image in zip("abcdefgh", setup.common["images"], strict=True):
        assert np.array_equal(titled(figure, letter).images[0].get_array(), image[0])


def test_reach_counts_steps_that_are_drawn_right():
    assert figures.reach(errors_by_distance([1.0, 1.0, 0.0, 0.0], [4, 3, 2, 1])) == 2
    assert figures.reach(errors_by_distance([0.5, 0.25], [4, 3])) == 0.75


def test_accuracy_beyond_weighs_distances_by_their_points():
    error = errors_by_distance([1.0, 1.0, 0.5, 0.0], [9, 9, 3, 1])
    assert figures.accuracy_beyond(error, 2) == pytest.approx(1.5 / 4)
    assert figures.accuracy_beyond(error, 4) is None


def test_failure_has_the_runs_own_numbers(gather):
    evidence = gather(PANEL["1b"].plan)
    failure, bump = figures.failure(evidence), evidence.first("bump")
    row = failure.rows[0]
    assert (row["code"], row["seed"]) == ("bump", 0)
    assert row["held-out MSE"] == pytest.approx(bump.error["heldout_mse"])
    assert row["held-out within 1 pixel"] == pytest.approx(bump.error["accuracy"])
    assert failure.stack("within 1 pixel by distance", "bump").shape == (len(SIZES["tiny"].seeds), 2)


@pytest.mark.parametrize("name", ["1b", "1c"])
def test_figures_1b_and_1c_show_the_error_and_every_seed(name, gather):
    failure = figures.failure(gather(PANEL[name].plan))
    figure = picture(PANEL[name], failure)
    for code in failure.kinds:
        plane = titled(figure, f"{code} code")
        share = failure.first[code]["share"].clamp(MIN_SHARE, MAX_SHARE)
        assert np.allclose(plane.images[0].get_array(), share.numpy().T)
        assert outlines(plane) == [(MARK.lower(), True)]
    curves = [axes for axes in figure.axes if axes.get_ylabel() == "share within 1 pixel"]
    count = len(failure.common["distances"])
    for axes, code in zip(curves, failure.kinds, strict=True):
        *seeds, mean = [line.get_ydata() for line in axes.lines if len(line.get_xdata()) == count][:3]
        accuracies = failure.stack("within 1 pixel by distance", code)
        assert np.allclose(seeds, accuracies)
        assert np.allclose(mean, accuracies.mean(0))
    errors = [axes for axes in figure.axes if axes.get_ylabel() == "MSE"]
    for axes, code in zip(errors, failure.kinds, strict=True):
        dots = [line.get_ydata() for line in axes.lines if line.get_marker() == "o"]
        assert np.allclose(dots, [failure.column(name, code) for name in ("seen MSE", "held-out MSE")])


def test_planes_begin_with_the_code_and_end_with_the_image(gather):
    bent = figures.bent_plane(gather(bump_and_rate))
    assert [plane["layer"] for plane in bent.of("rate")][0::2] == ["code", "image"]
    flat = bent.of("rate")[0]
    assert flat["units"] == 2
    assert flat["share of component 1"] + flat["share of component 2"] == pytest.approx(1)
    steps = flat["coordinates"][1:, 0] - flat["coordinates"][:-1, 0]
    assert torch.allclose(steps, steps[:1].expand_as(steps), atol=1e-6)  # a plane is not bent
    figure = picture(PANEL["5"], bent)
    assert len(figure.axes) == len(bent.rows)
    assert titles(figure)[0] == "rate code: input\n100% of the variance shown"


@pytest.mark.parametrize("experiment", [codes, similarity], ids=["codes", "similarity"])
def test_a_figure_without_a_claim_says_why(experiment):
    shown = {name for claim in experiment.CLAIMS for name in claim.figures}
    assert shown <= {panel.name for panel in experiment.PANELS}
    assert all(bool(panel.no_claim) == (panel.name not in shown) for panel in experiment.PANELS)


def test_claims_say_nothing_without_runs_and_exclude_runs_that_learned_nothing(gather):
    for number in (1, 21):
        empty = made({key: [] for key in CLAIM[number].plan(TINY)})
        assert all(not part.values(empty) for part in CLAIM[number].parts)
    evidence = gather(all_codes)
    for part in (*CLAIM[1].parts, *CLAIM[21].parts):  # five steps of training
        values = part.values(evidence)
        assert set(values) == {0, 1}
        assert all(isinstance(value, Excluded) for value in values.values())


def test_a_bump_is_one_product_and_a_cross_two():
    observed = Observations("", TINY.name, (), tuple(observe(CLAIM[20], made({}))))
    judgement = judge(CLAIM[20], observed, TINY)
    assert judgement.holds
    assert [part.effect for part in judgement.parts] == [1, 2, 2]


@pytest.fixture
def shares(monkeypatch):
    """MSE on training images / blank MSE of made-up runs, by code and seed; 0.01 where nothing else is said."""
    found: dict[tuple[str, int], float] = {}
    names = {encoding: code for code, encoding in CODES.items()}

    def share(run):
        return found.get((names[run.spec.encoding], run.spec.seed), 0.01)

    monkeypatch.setattr("composcope.study.claim.training_share", share)
    return found


def test_runs_that_learned_nothing_are_excluded_from_claim_1(shares):
    shares["bump", 0], shares["rate", 0] = 0.17, 0.5  # 0.17 is what the authors' own networks have
    error = {"heldout_mse": 0.9, "blank_mse": 1.0}
    runs = {code: [made_run(base_spec(TINY, code, 0), error=error)] for code in CODES}
    values = [part.values(made(runs))[0] for part in CLAIM[1].primary]
    assert values == [0.9, UNLEARNED, 0.9, 0.9]


def test_claim_1_judges_every_code_near_and_far_from_the_edge(shares):
    shares["one-hot", 3] = 0.5
    accuracies = {"bump": 0.25, "rate": 0.5, "one-hot": 0.0, "positional": 0.75}
    runs = {
        code: [
            made_run(
                base_spec(TINY, code, 3),
                error={"accuracy": 0.125},
                diagnosis=SimpleNamespace(error=errors_by_distance([1.0, 1.0, value], [1, 1, 4])),
            )
        ]
        for code, value in accuracies.items()
    }
    values = {part.measure: part.values(made(runs))[3] for part in CLAIM[1].secondary}
    near, far = list(values.values())[: len(CODES)], list(values.values())[len(CODES) :]
    assert near == [0.125, 0.125, UNLEARNED, 0.125]
    assert far == [0.25, 0.5, UNLEARNED, 0.75]
    assert all(measure.startswith(f"{code} code") for measure, code in zip(values, [*CODES, *CODES], strict=True))


def reaching(reaches: dict[str, tuple[float, ...]]) -> dict:
    """Runs of these codes with these reaches by seed."""

    def run(code: str, seed: int, value: float):
        diagnosis = SimpleNamespace(error=errors_by_distance([value], [1.0]))
        return made_run(base_spec(TINY, code, seed), diagnosis=diagnosis)

    return {code: [run(code, seed, value) for seed, value in enumerate(values)] for code, values in reaches.items()}


def test_claim_21_compares_smooth_codes_with_one_hot_where_all_have_learned(shares):
    shares["rate", 1] = 0.4
    runs = reaching({"bump": (1.0, 1.0), "rate": (2.0, 9.0), "one-hot": (0.5, 0.25), "positional": (3.0, 1.0)})
    primary, *secondary = (part.values(made(runs)) for part in CLAIM[21].parts)
    assert primary == {0: 1.5, 1: UNLEARNED}
    assert secondary[0] == {0: -1.0, 1: UNLEARNED}
    assert secondary[1] == {0: 0.5, 1: 0.75}  # without the code that has not learned
    assert secondary[2] == {0: -2.0, 1: 0.0}


@pytest.mark.parametrize("sign", [1, -1])
def test_claim_21_asks_for_a_difference_in_either_direction(shares, sign):
    reaches = [1.0, 1.1, 0.9, 1.05, 0.95]
    others = {code: tuple(reaches) for code in ("bump", "rate", "positional")}
    runs = reaching({**others, "one-hot": tuple(reach + sign for reach in reaches[::-1])})
    evidence = made(runs)
    judgement = judge(CLAIM[21], Observations("", TINY.name, (), tuple(_seen(CLAIM[21], evidence))), TINY)
    assert judgement.holds
    assert judgement.primary[0].claimed == "differs from 0"
    same = made(reaching({**others, "one-hot": tuple(reaches[::-1])}))
    judgement = judge(CLAIM[21], Observations("", TINY.name, (), tuple(_seen(CLAIM[21], same))), TINY)
    assert judgement.holds is None  # equal codes do not contradict it either


def _seen(claim, evidence):
    for part in claim.parts:
        for seed, value in part.values(evidence).items():
            yield Observation(claim.number, claim.version, part.measure, seed, value, True)
