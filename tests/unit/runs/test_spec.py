"""A run as a value."""

from dataclasses import replace

import pytest
from pydantic import ValidationError

import composcope as cs

PAPER = cs.Spec(
    task=cs.BumpTask(28, sigma=1.0, polarity="dark"),
    holdout=cs.Square(6, 22),
    encoding=cs.Bump(),
    decoder=cs.CNN(depth=4, width=64),
    sampling=cs.Draws(2000),
    training=cs.Training(epochs=50, batch=32, lr=1e-3),
    penalties=(),
    seed=0,
)

# Ids of stored runs. A change here makes strangers of everybody's results: only with a new RESULTS_VERSION.
FROZEN = {
    "paper": (PAPER, "0c10b1612905c9c6"),
    "seed": (replace(PAPER, seed=7), "c505ffd560ef07f7"),
    "algebra": (replace(PAPER, holdout=cs.Square(2, 5) | ~cs.Corner(3, "lower left")), "66879480426c7ea1"),
    "three factors": (
        replace(PAPER, task=cs.BumpTask(16, continuous=True, brightness=(0.25, 1.0)), holdout=cs.Box({"x": (2, 5)})),
        "f932e30a80db6f93",
    ),
    "per factor": (
        replace(PAPER, encoding=cs.PerFactor({"x": cs.Bump(2.0, absent="mean"), "y": cs.Positional()})),
        "b8325be5116713e2",
    ),
    "cure": (
        replace(
            PAPER,
            encoding=cs.OneHot(),
            decoder=cs.LowRank(rank=3),
            penalties=(cs.Entropy(0.1), cs.Variance(0.02)),
            sampling=cs.Stripes(bumps=50),
            training=cs.Training(steps=100, l1=0.5, schedule="cosine", snapshots=(10,)),
        ),
        "29f6784eb853da13",
    ),
}


@pytest.mark.parametrize("name", FROZEN)
def test_run_ids_never_change(name):
    spec, run_id = FROZEN[name]
    assert spec.run_id == run_id


def test_defaults_spelled_out_or_left_out_give_the_same_id():
    short = cs.Spec(cs.BumpTask(28), cs.Square(6, 22), cs.Bump(), cs.CNN())
    assert short == PAPER
    assert short.run_id == PAPER.run_id
    assert cs.Spec.from_dict(PAPER.to_dict()).run_id == PAPER.run_id


def test_whole_numbers_and_their_floats_are_the_same_run():
    data = PAPER.to_dict()
    data["holdout"] = {"kind": "square", "lo": 6, "hi": 22}
    data["task"] = {"kind": "bump", "size": 28, "sigma": 1}
    assert cs.Spec.from_dict(data).run_id == PAPER.run_id


def test_order_of_keys_does_not_matter():
    data = PAPER.to_dict()
    shuffled = {key: data[key] for key in reversed(data)}
    assert cs.Spec.from_dict(shuffled).run_id == PAPER.run_id
    one = replace(PAPER, holdout=cs.Box({"x": (2, 5), "y": (3, 4)}))
    other = replace(PAPER, holdout=cs.Box({"y": (3, 4), "x": (2, 5)}))
    assert one.run_id == other.run_id


@pytest.mark.parametrize(
    "change",
    [
        {"task": cs.BumpTask(28, sigma=1.5)},
        {"holdout": cs.Square(6, 21)},
        {"holdout": cs.Cross(6, 22)},
        {"encoding": cs.OneHot()},
        {"decoder": cs.CNN(depth=5)},
        {"decoder": cs.CNN(batch_norm=True)},
        {"sampling": cs.Everything()},
        {"training": cs.Training(epochs=51)},
        {"training": cs.Training(steps=50)},
        {"seed": 1},
    ],
    ids=str,
)
def test_every_change_gives_another_id(change):
    assert replace(PAPER, **change).run_id != PAPER.run_id


def test_toml_file_is_read(tiny_toml, tiny_spec):
    assert cs.Spec.from_toml(tiny_toml) == tiny_spec


def test_written_toml_is_read_again(tiny_spec, tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text(tiny_spec.to_toml())
    assert cs.Spec.from_toml(path) == tiny_spec
    assert "version = 1" in path.read_text()


def test_parts_that_do_not_fit_are_refused_before_training(tiny_spec):
    with pytest.raises(ValidationError, match="holdout: hi = 9 is outside"):
        replace(tiny_spec, holdout=cs.Square(2, 9))
    with pytest.raises(ValidationError, match="encoding: Circle encodes circular factors"):
        replace(tiny_spec, encoding=cs.Circle())
    with pytest.raises(ValidationError, match=r"penalties.0: .*MLP has none"):
        replace(tiny_spec, penalties=(cs.Entropy(),))


def test_absent_factors_are_refused_in_a_code_without_room(tiny_spec):
    with pytest.raises(
        ValidationError, match=r"encoding: Rate.*cannot represent an absent factor, and '[xy]' is absent"
    ):
        replace(tiny_spec, encoding=cs.Rate(), sampling=cs.Stripes())


def test_absent_factors_are_refused_by_a_task_that_cannot_draw_them(tiny_spec):
    task = cs.RotationTask(digits=(1, 4), angles=6)
    with pytest.raises(ValidationError, match="sampling: RotationTask cannot render"):
        replace(tiny_spec, task=task, holdout=cs.Nothing(), encoding=cs.OneHot(), sampling=cs.Stripes())


def test_real_valued_centres_are_refused_in_a_code_of_listed_values(tiny_spec):
    with pytest.raises(ValidationError, match="OneHot"):
        replace(tiny_spec, task=cs.BumpTask(8, continuous=True), encoding=cs.OneHot(), sampling=cs.Draws(10))


@pytest.mark.parametrize("version", [2, 1.5, "1", None, True, 0, -1], ids=repr)
def test_spec_of_another_version_is_refused(version, tiny_spec):
    with pytest.raises(cs.BadInput, match="version"):
        cs.Spec.from_dict({**tiny_spec.to_dict(), "version": version})


def test_version_may_be_left_out(tiny_spec):
    data = tiny_spec.to_dict()
    del data["version"]
    assert cs.Spec.from_dict(data) == tiny_spec


def test_several_problems_are_told_at_once(tiny_spec):
    data = {**tiny_spec.to_dict(), "seed": -1, "decoder": {"kind": "mlp", "depth": 0}}
    with pytest.raises(cs.BadInput) as complaint:
        cs.Spec.from_dict(data)
    assert str(complaint.value).splitlines() == [
        "decoder.depth = 0: input should be greater than or equal to 1",
        "seed = -1: input should be greater than or equal to 0",
    ]


def test_specs_can_be_keys(tiny_spec):
    assert len({tiny_spec, replace(tiny_spec), replace(tiny_spec, seed=1)}) == 2
