"""How objects look in a notebook: HTML in which nothing of the user's can become markup, and plots on given axes."""

import re
from dataclasses import replace

import matplotlib as mpl
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes

import composcope as cs
from composcope.display import block, images, line, table
from composcope.study.claim import Claim, Part
from composcope.study.judging import judge
from composcope.study.observations import Observations

mpl.use("agg")


@pytest.fixture(scope="module")
def run():
    spec = cs.Spec(cs.BumpTask(8), cs.Square(2, 5), cs.Bump(), cs.MLP(depth=1, width=8), training=cs.Training(steps=2))
    return cs.run(spec)


@pytest.fixture(scope="module")
def diagnosis(run):
    return run.diagnose(only="verdict")


def ledger(statement="Stripes help."):
    preset = cs.Preset("small", "small", label="8x8")
    part = Part("error, with minus <without>", lambda evidence: {}, relation="<", threshold=0.0, reason="0")
    claim = Claim(number=1, statement=statement, source="us", figures=(), plan=lambda preset: {}, primary=(part,))
    judged = judge(claim, Observations("s", "small", (), ()), preset)
    return cs.Ledger("s", preset, (), (judged,))


def text_of(html):
    return re.sub(r"<[^>]+>", " ", html)


def test_texts_are_escaped():
    nasty = "<script>alert('x')</script>"
    html = block(line(nasty), table([nasty], [[nasty]]))
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 3


def test_a_name_in_a_spec_is_escaped(run):
    html = ledger("<img src=x onerror=alert(1)>")._repr_html_()
    assert "<img" not in html
    assert "&lt;img" in html


def test_a_spec(run):
    text = text_of(run.spec._repr_html_())
    assert run.spec.run_id in text
    assert "BumpTask(size=8" in text
    assert "composition" in text


def test_a_run_shows_images_and_errors(run):
    html = run._repr_html_()
    assert html.count("data:image/png") == 12
    assert f"{run.error['heldout_mse']:.4g}" in text_of(html)
    assert "16 of 64 combinations" in html


def test_a_diagnosis(diagnosis):
    text = text_of(diagnosis._repr_html_())
    assert "Verdict: has not learned" in text
    assert "16 of 64 combinations" in text
    assert re.search(r"factor is right.*\bx\b.*%.*\by\b.*%", text, re.S)


def test_a_terminal_shows_one_line(diagnosis):
    assert repr(diagnosis) == "Diagnosis('has not learned', 16 of 64 combinations held out; see summary())"
    assert repr(ledger()) == "Ledger('s', preset 'small', 1 claim: 1 not run)"


def test_a_ledger():
    text = text_of(ledger()._repr_html_())
    assert "1 claim: 1 not run" in text
    assert "Stripes help." in text


def test_colour_images_have_colours(run):
    tag = images("rgb", run.truth[:1].repeat(1, 3, 1, 1).numpy())
    assert "data:image/png" in tag


@pytest.mark.parametrize("name", ["spec", "run", "diagnosis", "ledger"])
def test_plot_draws_on_given_axes_or_on_new_ones(name, run, diagnosis):
    value = {"spec": run.spec, "run": run, "diagnosis": diagnosis, "ledger": ledger()}[name]
    made = value.plot()
    assert isinstance(made, Axes)
    _, axes = pyplot.subplots()
    assert value.plot(ax=axes) is axes
    assert axes.has_data()
    axes.figure.canvas.draw()
    pyplot.close("all")


def test_a_run_without_a_hole_shows_what_it_saw(run):
    free = cs.run(replace(run.spec, holdout=cs.Nothing()))
    assert "seen, true" in free._repr_html_()
    assert free.plot().has_data()
    pyplot.close("all")


def test_a_diagnosis_without_a_verdict_says_so(run):
    free = cs.run(replace(run.spec, holdout=cs.Nothing())).diagnose(only="verdict")
    assert "0 of 64" in free._repr_html_()
    with pytest.raises(ValueError, match="nothing is held out"):
        free.plot()
