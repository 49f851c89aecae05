"""Forecasts of specs: what they say, when they abstain, and how they are stored and shown."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import composcope as cs
from composcope.forecasts.forecast import (
    GAUSSIAN,
    LOGLINEAR,
    forecast_run,
    method_for,
    reasons_to_abstain,
    stored_forecast,
)
from composcope.forecasts.regressions import MAX_SAMPLES, training_samples

CURED = cs.Spec(cs.BumpTask(12), cs.Square(3, 8), cs.OneHot(), cs.CNN(depth=3, width=8), cs.Stripes(bumps=30))
FAILING = replace(CURED, sampling=cs.Everything())


@pytest.fixture(scope="module")
def cured():
    return cs.forecast(CURED)


def test_stripes_are_forecast_to_cure_and_bumps_alone_are_not(cured):
    assert cured.kind == "composes"
    assert cured.composes
    assert cured.score > 0.9
    assert cured.accuracy == 1
    assert cured.abstains == ()
    failing = cs.forecast(FAILING)
    assert not failing.composes
    assert failing.score < 0.3
    assert failing.accuracy < 0.8


def test_the_kernel_adds_where_the_loglinear_composes(cured):
    assert cured.predictions[GAUSSIAN].kind == "adds"
    assert cs.forecast(replace(CURED, decoder=cs.MLP())).kind == "adds"


def test_images_are_of_the_held_out_combinations(cured):
    assert cured.images.shape == (36, 1, 12, 12)
    assert torch.equal(cured.images, cured.predictions[LOGLINEAR].draw(cured.latents))
    assert CURED.holdout.contains(cured.latents).all()
    located = CURED.task.locate(cured.images)
    assert ((located - cured.latents).abs() <= 1).all()


def test_the_same_spec_gives_the_same_forecast(cured):
    again = cs.forecast(CURED)
    assert again.numbers() == cured.numbers()
    assert torch.equal(again.images, cured.images)


def test_polarity_and_training_are_not_seen(cured):
    other = replace(CURED, task=cs.BumpTask(12, polarity="bright"), training=cs.Training(steps=1))
    bright = cs.forecast(other)
    assert bright.score == cured.score
    torch.testing.assert_close(bright.images, 1 - cured.images)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"decoder": cs.CNN(batch_norm=True)}, "batch normalisation"),
        ({"decoder": cs.CNN(depth=1)}, "depth 1"),
        ({"decoder": cs.CNN(output="sigmoid")}, "sigmoid"),
        ({"decoder": cs.Transformer()}, "Transformer"),
        ({"decoder": cs.Pixelwise()}, "Pixelwise"),
        ({"decoder": cs.LowRank()}, "LowRank"),
        ({"decoder": cs.LowRank(), "penalties": (cs.Entropy(),)}, "penalty (Entropy)"),
        ({"encoding": cs.Rate(), "sampling": cs.Everything()}, "rate codes (x, y)"),
        (
            {"encoding": cs.PerFactor({"x": cs.Rate(), "y": cs.Bump()}), "sampling": cs.Everything()},
            "rate codes (x)",
        ),
    ],
)
def test_it_abstains_outside_its_domain(change, word):
    reasons = reasons_to_abstain(replace(CURED, **change), 1.0)
    assert any(word in reason for reason in reasons)


def test_it_abstains_where_the_regression_does_not_fit():
    assert "R2 0.70" in reasons_to_abstain(CURED, 0.7)[0]
    assert reasons_to_abstain(CURED, float("nan"))
    assert reasons_to_abstain(CURED, 0.8) == ()


def test_a_subclass_is_not_taken_for_its_base():
    class OwnCNN(cs.CNN):
        pass

    assert reasons_to_abstain(replace(CURED, decoder=cs.MLP()), 1.0) == ()
    assert method_for(replace(CURED, decoder=cs.MLP())) == GAUSSIAN
    assert method_for(CURED) == LOGLINEAR
    spec = replace(CURED)
    object.__setattr__(spec, "decoder", OwnCNN())
    assert reasons_to_abstain(spec, 1.0)


def test_an_abstaining_forecast_says_why_and_has_no_answer():
    made = cs.forecast(replace(FAILING, encoding=cs.Rate()))
    assert made.kind is made.score is made.composes is made.accuracy is None
    assert made.r2 < 0.8
    assert "abstains" in str(made)
    assert "rate codes" in str(made)
    assert "abstains" in repr(made)
    assert made.images.isfinite().all()


def test_nothing_held_out_is_refused():
    with pytest.raises(cs.BadInput, match="nothing to forecast"):
        cs.forecast(replace(FAILING, holdout=cs.Nothing()))


def test_three_factors_and_their_absence():
    spec = replace(CURED, task=cs.BumpTask(8, brightness=(0.5, 1.0)), holdout=cs.Square(2, 5))
    made = cs.forecast(spec)
    assert set(made.prediction.verdict.factors) == {"x", "y", "brightness"}
    assert made.images.shape[0] == 32


def test_many_distinct_samples_are_thinned_and_keep_their_weight():
    spec = replace(FAILING, task=cs.BumpTask(12, continuous=True), encoding=cs.Bump(), sampling=cs.Draws(5000))
    samples = training_samples(spec)
    assert len(samples.codes) == MAX_SAMPLES
    assert samples.counts.sum().item() == pytest.approx(5000)


def test_codes_are_scaled_to_one_per_factor():
    samples = training_samples(replace(FAILING, encoding=cs.Bump(width=2.0)))
    assert samples.codes.square().sum(1).mean().item() == pytest.approx(2, rel=0.1)


def test_text_page_and_chart(cured):
    text = str(cured)
    assert text.startswith("forecast: composes. It will compose")
    assert "polarity" in text
    assert cured._repr_html_().count("<img") == 18
    axes = cured.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Gaussian kernel", "log-linear (used)", "true"]


def test_pictures_in_a_notebook_have_the_origin_at_the_lower_left(cured, monkeypatch):
    rows = {}
    monkeypatch.setattr("composcope.forecasts.summary.images", lambda name, row: str(rows.setdefault(name, row).shape))
    cured._repr_html_()
    assert np.array_equal(rows["true"], cured.prediction.diagnosis.samples.truth.flip(-2))


def test_it_is_stored_beside_the_run(tmp_path, tiny_spec):
    store = cs.Store(tmp_path)
    run_id = cs.run(tiny_spec, store).run_id
    assert stored_forecast(store, run_id) is None
    before = store.run_folder(run_id).weights()
    made = forecast_run(store, run_id)
    assert stored_forecast(store, run_id) == made.numbers()
    assert store.frame()["forecast.r2"][0] == pytest.approx(made.r2)
    assert all(torch.equal(before[name], after) for name, after in store.run_folder(run_id).weights().items())
    store.run_folder(run_id).verify()


def test_command(composcope, tiny_toml, tmp_path):
    done = composcope("forecast", tiny_toml, "--out", tmp_path / "out")
    assert done.code == 0
    assert "forecast:" in done.out
    arrays = np.load(tmp_path / "out" / "forecast.npz")
    assert arrays["log_linear"].shape == arrays["true"].shape == (16, 1, 8, 8)
    assert (tmp_path / "out" / "forecast.png").stat().st_size > 1000
    assert '"methods"' in composcope("forecast", tiny_toml, "--json").out


def test_command_on_a_stored_run(composcope, tiny_toml, tiny_spec, tmp_path):
    store = tmp_path / "store"
    composcope("run", tiny_toml, "--store", store)
    done = composcope("forecast", tiny_spec.run_id[:6], "--store", store)
    assert done.code == 0
    assert stored_forecast(cs.Store(store), tiny_spec.run_id)
    composcope("run", tiny_toml, "--set", "seed=1", "--store", store)
    head = composcope("list", "--store", store).out.splitlines()[0].split()
    assert "forecast.kind" in head
    assert not {"forecast.method", "forecast.r2", "forecast.score"} & set(head)  # results are not settings
    assert "forecast" in composcope("show", tiny_spec.run_id, "--store", store).out
    refused = composcope("forecast", tiny_spec.run_id, "--store", store, "--set", "seed=1")
    assert refused.code == 2
    assert "--set" in refused.err
    assert composcope("forecast", "missing.toml").code == 2


def test_the_page_of_a_stored_run_has_the_stored_forecast(composcope, tiny_toml, tiny_spec, tmp_path):
    store, page = tmp_path / "store", tmp_path / "page"
    composcope("run", tiny_toml, "--store", store)
    composcope("diagnose", tiny_spec.run_id, "--store", store, "--only", "verdict", "--out", page)
    assert "Forecast before training" not in (page / "diagnosis.html").read_text()
    composcope("forecast", tiny_spec.run_id, "--store", store)
    composcope("diagnose", tiny_spec.run_id, "--store", store, "--only", "verdict", "--out", page)
    assert "Forecast before training" in (page / "diagnosis.html").read_text()
