"""The figure of controls and its numbers, and claims 19 and 24."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from composcope.diagnosis.layers import true_geometry
from composcope.holdouts import Nothing
from composcope.papers.forced_rendering import controls
from composcope.papers.forced_rendering.base import SIZES, TINY, base_spec, bump_alone
from composcope.papers.forced_rendering.controls import figures
from composcope.runs.run import Run
from composcope.study.claim import Excluded
from composcope.study.drawing import MARK

from .made import made, made_run, outlines, picture, titled

CLAIM = {claim.number: claim for claim in controls.CLAIMS}
HOLE = SIZES["tiny"].hole


@pytest.fixture(scope="module")
def bump(gather) -> Run:
    return gather(bump_alone).first("bump")


def test_a_region_that_is_the_hole_has_the_runs_own_numbers(bump):
    region = figures.region(bump, bump.split.mask)
    assert region.accuracy == (bump.error["accuracy"], bump.error["seen_accuracy"])
    assert region.share[0] == pytest.approx(bump.error["heldout_mse"] / bump.error["blank_mse"], rel=0.02)
    gap = bump.diagnosis.layers["image"].geometry.volumes.gap
    true = true_geometry(bump.spec.task, bump.split.latents, bump.split.mask).volumes.gap
    assert region.volume_gap == pytest.approx(gap - true)


def test_the_image_encoders_region_is_of_codes(gather):
    encoder = gather(figures.all_controls).first("image encoder")
    region = figures.region(encoder, encoder.split.mask)
    assert region.accuracy == (encoder.error["code_accuracy"], encoder.error["seen_code_accuracy"])
    assert region.volume_gap is None


def test_without_a_hole_the_region_is_where_it_would_be(gather):
    evidence = gather(CLAIM[24].plan)
    square, none = evidence.first("square"), evidence.first("no hole")
    assert not none.split.mask.any()
    assert torch.equal(figures.compared_region(none, HOLE), square.split.mask)


def test_the_figure_outlines_a_hole_that_does_not_exist_as_dotted_white(gather):
    figure = picture(controls.PANELS[0], figures.controls(gather(figures.all_controls)))
    for title in ("hole in the middle", "hole in a corner", "images to codes"):
        assert outlines(titled(figure, title)) == [(MARK.lower(), True)]
    assert outlines(titled(figure, "no hole")) == [("#ffffff", False)]


def test_the_figure_shows_every_seed(gather):
    shown = figures.controls(gather(figures.all_controls))
    figure = picture(controls.PANELS[0], shown)
    by_label = {axes.get_ylabel(): axes for axes in figure.axes if axes.get_xlim()[0] == -0.6}
    dots = {
        label: [line.get_ydata().tolist() for line in axes.lines if line.get_marker() == "o"]
        for label, axes in by_label.items()
    }
    sides = ("outside", "in the region")

    def columns(name: str) -> list:
        return [shown.column(f"{name}, {side}", kind) for kind in shown.kinds for side in sides]

    assert dots["MSE / blank MSE"] == columns("MSE / blank")
    assert dots["share within 1 pixel"] == columns("within 1 pixel")
    gaps = [shown.column("log10 volume, region minus rest", kind) for kind in shown.kinds[:3]]
    assert dots["volume gap (log10)"] == gaps
    share = shown.first["image encoder"]["share"].clamp(1e-3, 3)
    assert np.allclose(titled(figure, "images to codes").images[0].get_array(), share.numpy().T)


def test_effects_are_one_per_seed_and_none_without_runs(gather):
    for claim in controls.CLAIMS:
        evidence, empty = gather(claim.plan), made({key: [] for key in claim.plan(TINY)})
        for part in claim.parts:
            assert tuple(part.values(evidence)) == SIZES["tiny"].seeds, part.measure
            assert part.values(empty) == {}, part.measure


def perfect_run(holdout, seed: int, volume_inside: float) -> Run:
    """A run whose images are true everywhere, but whose volume in the middle is this many times the true one."""
    spec = base_spec(TINY, "bump", seed, holdout)
    task = spec.task
    inside = HOLE.contains(task.grid(), task.factors)
    geometry = true_geometry(task, task.grid(), inside)
    volume = torch.where(inside, geometry.volume * volume_inside, geometry.volume)
    layers = {"image": SimpleNamespace(geometry=SimpleNamespace(volume=volume))}
    blurred = task.render(task.grid()) * 0.9
    answers = {"draw": lambda self, latents=None: blurred, "reader": None, "draws": True}
    return made_run(spec, diagnosis=SimpleNamespace(layers=layers), **answers)


def test_claim_24_compares_the_middle_with_the_rest_and_a_hole_with_none(monkeypatch):
    monkeypatch.setattr("composcope.study.claim.training_share", lambda run: 0.01)
    runs = {"square": [perfect_run(None, 1, 0.1)], "no hole": [perfect_run(Nothing(), 1, 2.0)]}
    ratio, without, accuracy, due = (part.values(made(runs)) for part in CLAIM[24].parts)
    none = runs["no hole"][0]
    shares = none.point_errors.share
    inside = figures.compared_region(none, HOLE)
    assert ratio == {1: pytest.approx((shares[inside].mean() / shares[~inside].mean()).log10().item())}
    assert accuracy == {1: 1.0}
    assert without == {1: pytest.approx(np.log10(2))}
    assert due == {1: pytest.approx(1 + np.log10(2))}
    assert [part.relation for part in CLAIM[24].primary] == ["within", "within"]
    monkeypatch.setattr("composcope.study.claim.training_share", lambda run: 0.5 if run is runs["square"][0] else 0.01)
    excluded = [isinstance(part.values(made(runs))[1], Excluded) for part in CLAIM[24].parts]
    assert excluded == [False, False, False, True]  # only the last compares with the run with a hole
