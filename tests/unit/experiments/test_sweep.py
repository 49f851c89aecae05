"""Many runs from one description."""

import pytest

import composcope as cs
from composcope.experiments.costs import estimate_seconds, total_steps
from composcope.experiments.sweep import with_value


@pytest.fixture
def base(tiny_spec):
    return {**tiny_spec.to_dict(), "encoding": {"kind": "bump"}}


def test_every_combination_once_with_the_first_list_slowest(base):
    specs = cs.Sweep(base, {"decoder.depth": [1, 2], "encoding.kind": ["bump", "onehot"], "seed": [0, 1, 2]}).specs()
    assert [(spec.decoder.depth, spec.encoding.kind, spec.seed) for spec in specs] == [
        (depth, kind, seed) for depth in (1, 2) for kind in ("bump", "onehot") for seed in (0, 1, 2)
    ]


def test_whole_components_can_vary(base):
    specs = cs.Sweep(base, {"decoder": [{"kind": "mlp", "depth": 2}, {"kind": "cnn", "width": 4}]}).specs()
    assert [spec.decoder for spec in specs] == [cs.MLP(depth=2), cs.CNN(width=4)]


def test_the_same_run_appears_once(base):
    assert len(cs.Sweep(base, {"seed": [0, 0, 1]}).specs()) == 2


def test_a_sweep_without_lists_is_its_base(base, tiny_spec):
    assert cs.Sweep(base, {}).specs() == [tiny_spec]


def test_a_bad_combination_is_told(base):
    with pytest.raises(cs.BadInput, match=r"decoder.depth = 0"):
        cs.Sweep(base, {"decoder.depth": [1, 0]}).specs()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[bsae]\n", r"unknown key 'bsae', did you mean 'base'\?"),
        ("[vary]\nseed = [1]\n", r"needs a table \[base\]"),
        ("base = 3\n", r"needs a table \[base\]"),
        ("[base]\n[vary]\nseed = 3\n", "vary.seed = 3: needs a list"),
        ("[base]\n[vary]\nseed = []\n", "needs a list"),
        ('[base]\n[vary]\nseed = "ab"\n', "needs a list"),
    ],
)
def test_bad_sweep_files_are_told(text, complaint, tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    with pytest.raises(cs.BadInput, match=complaint):
        cs.Sweep.from_toml(path)


def test_setting_a_value_leaves_the_original_alone():
    data = {"decoder": {"kind": "cnn"}}
    assert with_value(data, "decoder.depth", 6) == {"decoder": {"kind": "cnn", "depth": 6}}
    assert with_value(data, "training.lr", 0.1) == {"decoder": {"kind": "cnn"}, "training": {"lr": 0.1}}
    assert with_value(data, "decoder", None) == {}
    assert data == {"decoder": {"kind": "cnn"}}


def test_setting_inside_a_number_is_refused():
    with pytest.raises(cs.BadInput, match="seed is 3, which has no fields"):
        with_value({"seed": 3}, "seed.x", 1)


def test_steps_are_counted(base):
    by_epochs = cs.Spec.from_dict({**base, "training": {"epochs": 3, "batch": 20}})
    assert total_steps(by_epochs) == 9
    assert total_steps(cs.Spec.from_dict(base)) == 6


def test_estimate_grows_with_the_number_of_steps(base):
    short = cs.Sweep(base, {"training.steps": [1000]}).specs()
    long = cs.Sweep(base, {"training.steps": [1_000_000]}).specs()
    assert 0 < sum(estimate_seconds(short)) < sum(estimate_seconds(long))
