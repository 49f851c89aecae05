"""The paper's cures, each at the smallest setting where it is robust, against the run that lacks only the cure."""

from dataclasses import replace

import pytest

import composcope as cs

STRIPES = cs.Spec(
    task=cs.BumpTask(16, polarity="bright"),
    holdout=cs.Square(4, 11),
    encoding=cs.OneHot(),
    decoder=cs.CNN(depth=2, width=16),
    sampling=cs.Stripes(bumps=50),
    training=cs.Training(steps=800, batch=16),
)

LOWRANK = cs.Spec(
    task=cs.BumpTask(16, sigma=1.5, polarity="bright"),
    holdout=cs.Corner(6),
    encoding=cs.OneHot(),
    decoder=cs.LowRank(),
    sampling=cs.Everything(),
    training=cs.Training(steps=4000, weight_decay=1e-4),
    penalties=(cs.Entropy(0.1), cs.Variance(0.01)),
)

PIXELWISE = cs.Spec(
    task=cs.BumpTask(12, polarity="bright"),
    holdout=cs.Corner(6),
    encoding=cs.OneHot(),
    decoder=cs.Pixelwise(depth=2, width=64),
    sampling=cs.Everything(),
    training=cs.Training(steps=1500, weight_decay=1e-4),
)


def error(spec):
    return cs.run(spec).measures["error"]


def test_stripes_place_what_bumps_alone_do_not():
    cured, failing = error(STRIPES), error(replace(STRIPES, sampling=cs.Stripes(stripes=0, bumps=50)))
    assert cured["accuracy"] >= 0.9
    assert cured["heldout_mse"] < cured["blank_mse"]
    assert failing["accuracy"] < 0.4


@pytest.mark.slow
def test_low_rank_places_with_penalties_what_it_does_not_without():
    cured, failing = error(LOWRANK), error(replace(LOWRANK, penalties=()))
    assert cured["accuracy"] >= 0.9
    assert cured["heldout_mse"] < cured["blank_mse"]
    assert failing["accuracy"] < 0.4


@pytest.mark.slow
def test_pixels_that_never_meet_place_what_a_cnn_does_not():
    cured, failing = error(PIXELWISE), error(replace(PIXELWISE, decoder=cs.CNN(depth=2, width=16)))
    assert cured["accuracy"] >= 0.9
    assert cured["heldout_mse"] < cured["blank_mse"]
    assert failing["accuracy"] < 0.4
