"""Many runs from one description."""

from dataclasses import replace

import pytest

import composcope as cs
from composcope.runs.sweep import with_value
from composcope.workers.costs import PAIRS_SECONDS, estimated_costs, workload


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
        ("most = 0\n[base]\n", "most = 0: needs a whole number"),
        ("[base]\n[zip]\nseed = 3\n", "zip.seed = 3: needs a list"),
        ("zip = 3\n[base]\n", r"zip = 3: write tables \[\[zip\]\]"),
        ("skip = [1]\n[base]\n", r"write tables \[\[skip\]\]"),
        ("base = [1]\n", r"needs a table \[base\]"),
        ("base = []\n", r"needs a table \[base\]"),
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
    assert by_epochs.total_steps == 9
    assert cs.Spec.from_dict(base).total_steps == 6


def test_estimate_grows_with_the_number_of_steps(base):
    short = cs.Sweep(base, {"training.steps": [1000]}).specs()
    long = cs.Sweep(base, {"training.steps": [1_000_000]}).specs()
    assert 0 < sum(estimated_costs(short).values()) < sum(estimated_costs(long).values())


def test_a_step_is_timed_with_as_many_images_as_it_has(base, monkeypatch):
    def seconds_per_step(spec, steps):
        return float(min(spec.training.batch, spec.sampling.count(spec.task, spec.holdout)))

    monkeypatch.setattr("composcope.workers.costs._seconds_per_step", seconds_per_step)
    settings = {"sampling": [{"kind": "draws", "n": n} for n in (4, 16, 100)], "seed": [0, 1]}
    specs = cs.Sweep({**base, "training": {"steps": 10, "batch": 16}}, settings).specs()
    assert list(estimated_costs(specs).values()) == [40.0, 40.0, 160.0, 160.0, 160.0, 160.0]


def test_a_diagnosis_costs_steps_or_what_its_pairs_of_points_cost(base, tmp_path):
    small, store = cs.Spec.from_dict(base), cs.Store(tmp_path)
    large = replace(small, task=cs.BumpTask(28), holdout=cs.Square(6, 22))
    for spec, step, expected in ((small, 0.1, 30.0), (large, 0.1, 30.0), (large, 1e-4, PAIRS_SECONDS * 784**3)):
        costs = {spec.run_id: step * spec.total_steps}
        whole, training = (workload([spec], store, diagnosed, costs) for diagnosed in ([spec.run_id], []))
        assert whole - training == pytest.approx(expected)


def test_zipped_lists_go_together_and_cross_with_the_others(base):
    sweep = cs.Sweep(base, {"seed": [0, 1]}, zip=[{"decoder.depth": [1, 2], "decoder.width": [8, 4]}])
    assert sweep.count == 4
    assert [(spec.seed, spec.decoder.depth, spec.decoder.width) for spec in sweep.specs()] == [
        (0, 1, 8),
        (0, 2, 4),
        (1, 1, 8),
        (1, 2, 4),
    ]
    with pytest.raises(cs.BadInput, match=r"decoder.depth has 2, seed has 3"):
        cs.Sweep(base, {}, zip=[{"decoder.depth": [1, 2], "seed": [0, 1, 2]}]).specs()


def test_several_bases(base):
    other = {**base, "encoding": {"kind": "onehot"}}
    specs = cs.Sweep([base, other], {"seed": [0, 1]}).specs()
    assert [(spec.encoding.kind, spec.seed) for spec in specs] == [
        ("bump", 0),
        ("bump", 1),
        ("onehot", 0),
        ("onehot", 1),
    ]


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ({"decoder.depth": 2}, {(1, 0), (1, 1), (1, 2)}),
        ({"decoder.depth": 2, "seed": 1}, {(1, 0), (1, 1), (1, 2), (2, 0), (2, 2)}),
        ({"seed": [0, 2]}, {(1, 1), (2, 1)}),
        ({"decoder.depth": {"min": 2}, "seed": {"max": 1}}, {(1, 0), (1, 1), (1, 2), (2, 2)}),
        ({"encoding.kind": "bump", "seed": {"min": 1, "max": 1}}, {(1, 0), (1, 2), (2, 0), (2, 2)}),
        ({"encoding.kind": {"min": 0}}, {(depth, seed) for depth in (1, 2) for seed in (0, 1, 2)}),
    ],
    ids=str,
)
def test_conditions_leave_combinations_out(condition, left, base):
    specs = cs.Sweep(base, {"decoder.depth": [1, 2], "seed": [0, 1, 2]}, skip=[condition]).specs()
    assert {(spec.decoder.depth, spec.seed) for spec in specs} == left


def test_what_is_left_out_need_not_be_valid(base):
    assert len(cs.Sweep(base, {"decoder.depth": [0, 1]}, skip=[{"decoder.depth": 0}]).specs()) == 1


def test_a_condition_on_a_name_that_nothing_sets_is_told(base):
    with pytest.raises(cs.BadInput, match=r"no base and no list, did you mean 'decoder.depth'"):
        cs.Sweep(base, {"decoder.depth": [1]}, skip=[{"decoder.dpeth": 1}]).specs()


def test_only_some_combinations_are_built(base):
    sweep = cs.Sweep(base, {"decoder.depth": [0, 1, 2], "seed": [0, 1]})
    assert [spec.seed for spec in sweep.specs(["decoder.depth=2"])] == [0, 1]
    with pytest.raises(cs.BadInput, match="no base and no list"):
        sweep.specs(["decoder.dpth=2"])


def test_too_many_combinations_are_told_before_any_is_built(base):
    lists = {f"training.{name}": list(range(1000)) for name in ("lr", "steps", "l1")}
    with pytest.raises(cs.BadInput, match=r"1,000,000,000 combinations, more than 100,000: .*most = 1000000000"):
        cs.Sweep(base, lists).specs()
    assert len(cs.Sweep(base, {"seed": [0, 1]}, most=2).specs()) == 2
    with pytest.raises(cs.BadInput, match="3 combinations, more than 2"):
        cs.Sweep(base, {"seed": [0, 1, 2]}, most=2).specs()


def test_a_file_with_everything(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text("""
most = 20
[[base]]
task = {kind = "bump", size = 8}
holdout = {kind = "square", lo = 2, hi = 5}
encoding = {kind = "bump"}
decoder = {kind = "mlp"}
[[base]]
task = {kind = "bump", size = 8}
holdout = {kind = "square", lo = 2, hi = 5}
encoding = {kind = "onehot"}
decoder = {kind = "mlp"}
[vary]
seed = [0, 1]
[[zip]]
"decoder.depth" = [1, 2]
"decoder.width" = [8, 4]
[[skip]]
"encoding.kind" = "onehot"
"decoder.depth" = {min = 2}
""")
    sweep = cs.Sweep.from_toml(path)
    assert sweep.count == 8
    assert len(sweep.specs()) == 6
    assert sweep.varied == ["seed", "decoder.depth", "decoder.width"]


def test_a_check_that_failed_is_made_again_and_one_that_passed_is_not(base, monkeypatch):
    asked = []
    check = cs.MLP.check
    monkeypatch.setattr(cs.MLP, "check", lambda self, *parts: (asked.append(self.width), check(self, *parts))[1])
    cs.Sweep(base, {"seed": [0, 1, 2], "decoder.width": [77, 78]}).specs()
    assert sorted(asked) == [77, 78]
