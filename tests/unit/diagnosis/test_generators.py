"""The verdict by readers: eleven generators of images without a single truth."""

from collections import Counter
from dataclasses import replace

import pytest
import torch

import composcope as cs
import generators as worlds
from composcope.readers import networks
from composcope.readers.factor_readers import OwnReader
from composcope.verdict.by_readers import CANNOT_TELL

NAMES = tuple(worlds.generators(None))
ALWAYS = ("digit wrong", "superposed", "blank", "blurred")


@pytest.fixture(scope="module")
def task():
    return worlds.examples(12)


@pytest.fixture(scope="module")
def readers(task):
    """Trained once, and for fewer steps than usual."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(networks, "MAX_STEPS", 260)
        return cs.train_readers(task, worlds.holdout)


@pytest.fixture(scope="module")
def thorough():
    """All images and all steps, as a user has them."""
    task = worlds.examples(20)
    return task, cs.train_readers(task, worlds.holdout)


@pytest.fixture(scope="module")
def without_heldout():
    """The same without any real image of a held-out combination."""
    task = worlds.examples(20, with_heldout=False)
    return task, cs.train_readers(task, worlds.holdout)


def diagnosed(task, readers, generator, **options):
    return cs.diagnose(
        generator, task, worlds.holdout, worlds.conditions, reader=readers, **{"n_samples": 8, **options}
    )


def assert_right(name, verdict, task):
    _, kind, wrong = worlds.generators(task)[name]
    assert verdict.evidence == "readers"
    assert verdict.kind == kind
    assert verdict.score is None or 0 <= verdict.score <= 1
    assert all(0 <= share <= 1 for share in verdict.factors.values())
    if wrong is not None:
        assert set(verdict.failing) == wrong


@pytest.mark.parametrize("name", ALWAYS)
def test_a_generator_is_told(name, task, readers):
    verdict = diagnosed(task, readers, worlds.generators(task)[name][0]).verdict
    assert_right(name, verdict, task)
    assert verdict.reader.seen_score > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_eleven_are_told(name, thorough):
    task, readers = thorough
    verdict = diagnosed(task, readers, worlds.generators(task)[name][0], n_samples=16).verdict
    assert_right(name, verdict, task)
    if name == "half right":
        assert verdict.interval[0] < 0.5 < verdict.interval[1]
    if name == "blurred":
        assert verdict.score > 0.85


@pytest.mark.slow
def test_without_real_heldout_images_no_generator_is_flattered(without_heldout):
    task, readers = without_heldout
    assert "left out in 3 turns" in readers.tested.rests_on
    right = 0
    for name, (generator, kind, _) in worlds.generators(task).items():
        verdict = diagnosed(task, readers, generator, n_samples=16).verdict
        right += verdict.kind == kind
        assert verdict.kind != "composes" or kind == "composes", name
    assert right >= 10


@pytest.mark.slow
def test_blurred_images_are_read_because_readers_train_on_blurred_ones(thorough, monkeypatch):
    task, readers = thorough
    index = worlds.all_index()[worlds.held(worlds.all_index())].repeat_interleave(16, 0)
    images = worlds.soft(index)

    def composed(reader):
        return (reader(images) == index).all(1).float().mean().item()

    monkeypatch.setattr(networks, "augmented", lambda images, rng: images)
    plain = cs.train_readers(task, worlds.holdout)
    assert composed(readers.reader) > 0.9
    assert composed(plain.reader) < composed(readers.reader) - 0.2


def test_no_image_is_drawn_twice_and_progress_ends(task, readers):
    asked, progress = Counter(), []

    def generator(index):
        asked.update(map(tuple, index.tolist()))
        return worlds.render(index)

    diagnosis = diagnosed(task, readers, generator, n_samples=5, on_progress=lambda *done: progress.append(done))
    assert set(asked.values()) == {5}
    assert len(asked) == 12 + 60  # held out, and seen
    assert diagnosis.heldout == 12
    assert progress[-1][0] == progress[-1][1]


def test_conditions_may_be_texts_and_the_page_shows_images(task, readers, tmp_path):
    def prompts(latents):
        return [f"{row['digit']:g} {row['tint']} {row['x']:g}" for row in task.names(latents)]

    def generator(texts):
        assert isinstance(texts, list)
        parts = [text.split() for text in texts]
        rows = [
            [worlds.DIGITS.index(int(d)), list(worlds.TINTS).index(t), worlds.PLACES.index(int(x))] for d, t, x in parts
        ]
        return worlds.render(torch.tensor(rows))

    diagnosis = cs.diagnose(generator, task, worlds.holdout, prompts, reader=readers, n_samples=6)
    assert diagnosis.verdict.kind == "composes"
    text = diagnosis.summary()
    assert "reader on real images" in text
    assert "Control: of the generator's own images of seen combinations" in text
    page = diagnosis.write_page(tmp_path / "page.html").read_text()
    assert page.count("data:image/png") == 6 * 4
    cs.save_diagnosis(diagnosis, tmp_path / "saved")
    again = cs.load_diagnosis(tmp_path / "saved")
    assert again.summary() == text
    assert again.numbers()["verdict"]["reader"]["accuracy"].keys() == {"digit", "tint", "x"}
    assert "Verdict: composes" in diagnosis._repr_html_()


def test_a_generator_that_draws_the_same_again_is_drawn_once(task, readers):
    fixed = {tuple(row.tolist()): worlds.render(row[None]) for row in worlds.all_index()}
    diagnosis = diagnosed(task, readers, lambda index: torch.cat([fixed[tuple(row.tolist())] for row in index]))
    assert diagnosis.verdict.reader.samples == 1
    assert "the same image" in diagnosis.notes["n_samples"]


def test_a_factor_whose_reader_is_weak_cannot_be_told(task, readers):
    def reader(images):
        read = readers.reader(images)
        return {"digit": read[:, 0], "tint": torch.zeros(len(images), 4), "x": read[:, 2]}

    own = OwnReader(reader, task.factors)
    readings = replace(readers.tested.readings, read=readers.tested.readings.read * torch.tensor([1, 0, 1]))
    weak = replace(readers, reader=own, tested=replace(readers.tested, readings=readings))
    verdict = diagnosed(task, weak, worlds.render).verdict
    assert verdict.kind == CANNOT_TELL
    assert set(verdict.reader.cannot_tell) == {"tint"}
    assert set(verdict.factors) == {"digit", "x"}
    wrong = diagnosed(task, weak, worlds.only_held(worlds.other(0))).verdict
    assert wrong.kind == "mixes up factors"
    assert wrong.failing == ["digit"]


def only_read(make):
    """A reader that returns this."""
    return lambda images: make(len(images))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda n: {"digit": torch.zeros(n, 6), "tint": torch.zeros(n, 4)}, "'x' is missing"),
        (lambda n: {"digits": torch.zeros(n, 6)}, "no factor 'digits', did you mean"),
        (lambda n: (torch.zeros(n, 10), torch.zeros(n, 4), torch.zeros(n, 3)), "digit has 6 values"),
        (lambda n: torch.zeros(n, 6), "returns 1 value"),
    ],
)
def test_a_reader_with_other_classes_is_refused(made, message, task):
    with pytest.raises(cs.BadInput, match=message):
        cs.train_readers(task, worlds.holdout, reader=only_read(made))


@pytest.mark.parametrize(
    ("generator", "message"),
    [
        (lambda index: worlds.render(index)[:1], "for 64 conditions"),
        (lambda index: worlds.render(index)[:, :1], "the examples' need"),
        (lambda index: worlds.render(index) / 0.0, "not finite"),
    ],
)
def test_images_that_are_none_of_the_task_are_refused(generator, message, task, readers):
    with pytest.raises(cs.BadInput, match=message):
        diagnosed(task, readers, generator)


def test_readers_of_other_examples_are_refused(task, readers):
    with pytest.raises(cs.BadInput, match="other examples"):
        cs.diagnose(worlds.render, task, cs.Orthotope([{"digit": 1, "tint": "red"}]), worlds.conditions, reader=readers)
    with pytest.raises(cs.BadInput, match="nothing is held out"):
        cs.diagnose(worlds.render, task, cs.Nothing(), worlds.conditions, reader=readers)
    with pytest.raises(cs.BadInput, match="readers are for Examples only"):
        cs.diagnose(lambda codes: codes, cs.BumpTask(8), cs.Square(2, 5), cs.Bump(), reader=readers)


def test_generators_are_compared_on_one_page(task, readers, tmp_path):
    by_name = {
        "good": diagnosed(task, readers, worlds.render, n_samples=4),
        "bad": diagnosed(task, readers, worlds.only_held(worlds.other(1)), n_samples=4),
    }
    comparison = cs.compare(by_name)
    frame = comparison.frame()
    assert list(frame.index) == ["good", "bad"]
    assert frame.loc["good", "score"] > 0.9
    assert frame.loc["bad", "tint is right"] < 0.1
    page = comparison.write_page(tmp_path / "compared.html").read_text()
    assert "mixes up factors; tint is mostly wrong" in page
    other = cs.diagnose(
        cs.MLP(depth=1, width=4).build((8, 8), (1, 8, 8)), cs.BumpTask(8), cs.Square(2, 5), cs.Bump(), only="verdict"
    )
    with pytest.raises(cs.BadInput, match="'other' has another task than 'good'"):
        cs.compare({**by_name, "other": other})
