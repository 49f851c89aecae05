"""Training images that show what is held out."""

import warnings
from dataclasses import replace

import pytest
import torch

import composcope as cs
from composcope.holdouts import certify_training, find_leaks
from composcope.runs.spec import warn_of_splits

NAN = torch.nan
SIZES = cs.SpriteTask(16, shapes=("square", "disc", "heart"), scales=(2, 3, 4, 5))
LARGEST = cs.Orthotope([{"shape": "heart", "scale": "4..5"}])
SMALLEST = cs.Orthotope([{"shape": "heart", "scale": "2..3"}])


def spec(task, holdout, sampling, **parts):
    training = cs.Training(steps=2, batch=8)
    return cs.Spec(task, holdout, cs.OneHot(), cs.MLP(depth=1, width=4), sampling, training, **parts)


def test_the_maximum_over_scales_is_the_largest_one():
    certificate = spec(SIZES, LARGEST, cs.Stripes(bumps=4)).certificate
    assert certificate.leaks.count == 1
    assert certificate.leaks.of == 2
    assert not certificate.composition
    assert str(certificate) == (
        "leak, not composition: 1 of 2 held-out images are also training images: "
        "shape = heart, scale absent looks like shape = heart, scale = 5"
    )


@pytest.mark.parametrize(
    ("task", "holdout"),
    [
        (SIZES, SMALLEST),
        (replace(SIZES, absent="mean"), LARGEST),
        (replace(SIZES, polarity="bright"), SMALLEST),
        (cs.BumpTask(8), cs.Square(2, 5)),
        (cs.BumpTask(8, brightness=(0.5, 1.0), absent="max"), cs.Square(2, 5)),
    ],
    ids=str,
)
@pytest.mark.parametrize("subsets", ["single", "all but one", "all proper subsets"])
def test_no_leak_where_nothing_is_shown(task, holdout, subsets):
    certificate = spec(task, holdout, cs.Stripes(bumps=4, subsets=subsets)).certificate
    assert certificate.leaks is None
    assert certificate.composition


def test_brightness_leaks_through_its_maximum():
    task = cs.BumpTask(8, brightness=(0.5, 1.0), absent="max")
    bright = cs.Box({"x": (2, 5), "y": (2, 5), "brightness": (1.0, 1.0)})
    assert spec(task, bright, cs.Stripes()).certificate.leaks is None  # single factors do not show a place
    leaks = spec(task, bright, cs.Stripes(subsets="all but one")).certificate.leaks
    assert (leaks.count, leaks.of) == (16, 16)
    assert "x = 2, y = 2, brightness absent looks like x = 2, y = 2, brightness = 1" in str(leaks)


def test_two_combinations_that_are_drawn_alike_leak():
    task = cs.SpriteTask(16, shapes=("square", "heart"), rotations=(0, 90), scales=(5,))
    leaks = spec(task, cs.Orthotope([{"shape": "square", "rotation": 90}]), cs.Everything()).certificate.leaks
    assert str(leaks).endswith("shape = square, rotation = 0 looks like shape = square, rotation = 90")
    assert spec(task, cs.Orthotope([{"shape": "heart", "rotation": 90}]), cs.Everything()).certificate.leaks is None


def test_the_tolerance_is_relative_to_a_blank_image():
    task = cs.BumpTask(8, brightness=(0.5, 0.98, 1.0))
    heldout, trained = torch.tensor([[3.0, 3.0, 1.0]]), torch.tensor([[3.0, 3.0, 0.98]])
    assert find_leaks(task, heldout, trained) is None  # 0.02^2 of the blank image's error
    assert find_leaks(task, heldout, trained, same=0.0005).count == 1


def test_only_what_is_trained_on_counts():
    parts = cs.split(SIZES, LARGEST)
    scales = torch.tensor([[0.0, NAN], [1.0, NAN], [NAN, 5.0]])
    assert certify_training(SIZES, parts, scales).leaks is None
    assert certify_training(SIZES, parts, torch.tensor([[2.0, NAN]])).leaks.count == 1
    assert certify_training(SIZES, parts, torch.zeros(0, 2)).leaks is None


def test_parts_of_any_size_give_the_same(monkeypatch):
    task, holdout = cs.BumpTask(8, brightness=(0.5, 1.0), absent="max"), cs.Box({"x": (2, 5), "brightness": (1.0, 1.0)})
    sampling = cs.Stripes(subsets="all but one")
    expected = spec(task, holdout, sampling).certificate.leaks
    monkeypatch.setattr("composcope.holdouts.leaks.DRAWN_AT_ONCE", 3 * 64)
    assert spec(task, holdout, sampling, seed=1).certificate.leaks == expected


def test_in_large_grids_only_combinations_with_absent_factors_are_compared(monkeypatch):
    monkeypatch.setattr("composcope.holdouts.leaks.MAX_NUMBERS", 0)
    task = cs.SpriteTask(16, shapes=("square", "heart"), rotations=(0, 90), scales=(5,))
    parts = cs.split(task, cs.Orthotope([{"shape": "square", "rotation": 90}]))
    assert certify_training(task, parts, parts.seen).leaks is None
    assert certify_training(SIZES, cs.split(SIZES, LARGEST), torch.tensor([[2.0, NAN]])).leaks.count == 1


def test_a_run_warns_of_a_leak_and_records_it():
    with pytest.warns(cs.LeakedImages, match="shape = heart, scale absent looks like"):
        run = cs.run(spec(SIZES, LARGEST, cs.Stripes(bumps=4)))
    assert run.provenance["split"].startswith("leak, not composition")
    assert "leak, not composition: 1 of 2" in run.diagnosis.summary()


def test_a_sweep_warns_of_a_leak_once():
    base = spec(SIZES, LARGEST, cs.Stripes(bumps=4))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_splits([base, replace(base, seed=1), replace(base, sampling=cs.Everything())])
    assert [warning.category for warning in caught] == [cs.LeakedImages]


def test_a_run_without_leak_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cs.run(spec(SIZES, SMALLEST, cs.Stripes(bumps=4)))


def test_extrapolation_and_leak_are_two_warnings():
    task = cs.BumpTask(8, brightness=(0.5, 1.0), absent="max")
    with (
        pytest.warns(cs.NotComposition, match="brightness = 1"),
        pytest.warns(cs.LeakedImages, match="absent looks like"),
    ):
        cs.run(spec(task, cs.Interval("brightness", 1.0, 1.0), cs.Stripes(subsets="all but one")))


def test_a_spec_that_cannot_be_sampled_still_has_a_certificate():
    task = cs.BumpTask(8, continuous=True)
    hole = ~cs.Box({"x": (3, 3)})
    broken = cs.Spec(task, hole, cs.Bump(), cs.MLP(depth=1, width=4), cs.Draws(10))
    assert broken.certificate.missing["x"]
