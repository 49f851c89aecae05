"""Any module, any task: the oracles are diagnosed as themselves, and nothing about the module is changed."""

import json
import math

import pytest
import torch
from torch import nn

import composcope as cs
from composcope import fastconv
from composcope.activations import Subject, code_tangents
from composcope.diagnosis import Diagnosis, diagnose, load_diagnosis, save_diagnosis
from composcope.diagnosis.superposition import additive_cross
from composcope.verdict import KINDS
from known_decoders import oracle_images

TASK, HOLDOUT = cs.BumpTask(10), cs.Square(3, 7)


class Lookup(nn.Module):
    """Known images for known codes."""

    def __init__(self, codes, images):
        super().__init__()
        self.register_buffer("codes", codes)
        self.register_buffer("images", images)

    def forward(self, codes):
        return self.images[(codes[:, None] - self.codes).square().sum(-1).argmin(1)]


def oracle(name, task=TASK, holdout=HOLDOUT, encoding=None):
    parts = cs.split(task, holdout)
    cross = additive_cross(task, parts.latents)
    truth = task.foreground(task.render(parts.latents))
    drawn = oracle_images(truth, parts.latents, parts.mask, task.factors, cross)[name]
    images = 1 - drawn if task.dark else drawn
    return Lookup((encoding or cs.Bump()).encode(parts.latents, task.factors), images)


@pytest.fixture(scope="module")
def trained() -> nn.Module:
    torch.manual_seed(0)
    return cs.MLP(2, 24).build((10, 10), (1, 10, 10))


@pytest.fixture(scope="module")
def found(trained) -> Diagnosis:
    return diagnose(trained, TASK, HOLDOUT, cs.Bump(), untrained=cs.MLP(2, 24).build((10, 10), (1, 10, 10)))


@pytest.mark.parametrize("polarity", ["dark", "bright"])
@pytest.mark.parametrize("name", ["composer", "superposer", "additive cross", "nearest seen", "blank"])
def test_oracles_are_diagnosed_as_themselves(name, polarity):
    task = cs.BumpTask(10, polarity=polarity)
    found = diagnose(oracle(name, task), task, HOLDOUT, cs.Bump())
    assert found.verdict.kind == KINDS[name]
    assert found.verdict.shares[name] > 0.9
    assert found.verdict.score == (1.0 if name == "composer" else pytest.approx(0.0, abs=0.05))
    assert found.error.seen_mse == pytest.approx(0.0, abs=1e-9)
    assert found.layers["image"].geometry.method == "differences"
    assert found.layers["code"].geometry.method == "exact"
    assert "image" in found.notes["geometry"]


def test_composer_and_superposer_differ_where_they_should():
    composer, superposer = (diagnose(oracle(name), TASK, HOLDOUT, cs.Bump()) for name in ("composer", "superposer"))
    assert composer.error.accuracy == 1.0
    assert composer.error.heldout_correlation == pytest.approx(1.0)
    assert superposer.superposition.means.correlation > 0.95
    assert superposer.superposition.means.correlation > superposer.superposition.means.control + 0.2
    assert composer.complexity["outputs"].maximum == 1
    assert superposer.complexity["outputs"].maximum > 1
    by_distance = superposer.error.by_distance
    assert set(by_distance) == {"mse", "blank_mse", "correlation", "ssim_error", "position_error", "placed"}
    assert by_distance["mse"].counts.sum() == superposer.heldout == 25


def test_every_number_of_every_layer_and_of_the_twin(found):
    assert list(found.layers) == list(found.untrained) == ["code", "hidden1", "hidden2", "image"]
    for layer in (*found.layers.values(), *found.untrained.values()):
        assert layer.geometry.method == "exact"
        assert layer.geometry.metric.shape == (100, 2, 2)
        assert 0.5 <= layer.geometry.factorization.mean_of_ratios <= 1
        assert set(layer.probe) == {"x", "y"}
        assert sum(layer.linear_factorization.by_order) == pytest.approx(1)
        assert layer.tuning.maps.shape[1:] == (10, 10)
        assert len(layer.tuning.stripe) == math.prod(layer.shape)
        assert layer.manifold.coordinates.shape == (100, 3)
    assert found.layers["code"].probe["x"].heldout == pytest.approx(1, abs=1e-6)
    assert found.layers["code"].linear_factorization.main_effects == pytest.approx(1)
    assert found.layers["image"].geometry.factorization != found.untrained["image"].geometry.factorization
    assert found.error.map.shape == found.error.maps["ssim_error"].shape == (10, 10)
    assert found.kernels.cosine.shape == (100, 100)
    assert set(found.kernels.fits) == {"factorized", "radial"}
    assert set(found.kernels.terms) == {"x", "y", "x*y"}


def test_a_diagnosis_survives_the_disk(found, tmp_path):
    save_diagnosis(found, tmp_path / "new" / "folder")
    again = load_diagnosis(tmp_path / "new" / "folder")
    assert again.summary() == found.summary()
    assert again.numbers() == found.numbers()
    assert torch.equal(again.layers["image"].geometry.metric, found.layers["image"].geometry.metric)
    assert again.verdict.classes == found.verdict.classes
    assert again.layers["code"].linear_factorization == found.layers["code"].linear_factorization
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == ["arrays.npz", "numbers.json"]
    numbers = json.dumps(found.numbers(), allow_nan=False)
    assert json.loads(numbers) == found.numbers()
    assert set(found.numbers()) >= {"verdict", "error", "geometry", "probes", "kernels", "untrained"}


def test_damaged_and_missing_files_are_told(found, tmp_path):
    with pytest.raises(cs.BadInput, match="holds no diagnosis"):
        load_diagnosis(tmp_path)
    save_diagnosis(found, tmp_path)
    (tmp_path / "arrays.npz").write_bytes(b"something else")
    with pytest.raises(cs.BadInput, match=r"arrays\.npz"):
        load_diagnosis(tmp_path)
    (tmp_path / "numbers.json").write_text("{")
    with pytest.raises(cs.BadInput, match="JSON"):
        load_diagnosis(tmp_path)


def test_the_summary_puts_the_verdict_first():
    lines = diagnose(oracle("blank"), TASK, HOLDOUT, cs.Bump()).summary().splitlines()
    assert lines[:3] == [
        "verdict: draws nothing. It composes 0% of the held-out images (95% interval 0% to 0%).",
        "  blank 100%, composer 0%, additive cross 0%, nearest seen 0%, superposer 0%, other 0%, wrong combination 0%, "
        "additive 0%",
        "  on seen images: composer 100%",
    ]
    assert lines[3] == "  25 of 100 combinations of x (10) x y (10) held out"
    assert lines[5].split() == ["factor", "is", "right", "held-out", "within", "one", "step", "seen"]
    assert lines[6].split() == ["x", "0%", "0%", "100%"]
    assert lines[9].split() == ["error", "seen", "held-out"]
    assert lines[10].split() == ["MSE", "0.000", "0.031"]
    assert lines[11].split()[:5] == ["MSE", "of", "a", "blank", "image"]
    assert lines[11].split()[-1] == "0.031"
    assert any(line.startswith("held-out images against") for line in lines)
    assert any(line.startswith("layers (geometry: differences and exact") for line in lines)
    assert lines[-2] == "notes"
    assert all(line == line.rstrip() for line in lines)


def test_the_module_is_left_as_it_was(trained):
    trained.train()
    trained.hidden1.eval()
    weights = {name: value.clone() for name, value in trained.state_dict().items()}
    state = torch.get_rng_state()
    calls = []
    a, b = (
        diagnose(trained, TASK, HOLDOUT, cs.Bump(), on_progress=lambda done, total: calls.append((done, total)))
        for _ in range(2)
    )
    assert a.numbers() == b.numbers()
    assert torch.equal(torch.get_rng_state(), state)
    assert trained.training
    assert not trained.hidden1.training
    assert all(torch.equal(weights[name], value) for name, value in trained.state_dict().items())
    assert calls[0] == (0, calls[-1][1])
    assert calls[-1][0] == calls[-1][1]


def test_little_memory_gives_the_same_numbers(trained, found):
    small = diagnose(
        trained, TASK, HOLDOUT, cs.Bump(), untrained=cs.MLP(2, 24).build((10, 10), (1, 10, 10)), memory_mb=1
    )
    module = cs.CNN(2, 8).build((10, 10), (1, 10, 10))
    one, many = (diagnose(module, TASK, HOLDOUT, cs.OneHot(), memory_mb=mb).numbers() for mb in (500, 0.05))
    for measure in ("geometry", "linear_factorization", "tuning"):
        for layer in one[measure]:
            assert flat(many[measure][layer]) == pytest.approx(flat(one[measure][layer]), rel=1e-4, abs=1e-5)
    assert small.numbers()["geometry"] == found.numbers()["geometry"]


def flat(data):
    """Nested numbers as one mapping."""
    if not isinstance(data, dict):
        return {"": data} if isinstance(data, int | float) else {}
    return {f"{name}/{key}": value for name, part in data.items() for key, value in flat(part).items()}


def test_onehot_geometry_is_by_differences_and_says_so(trained):
    found = diagnose(trained, TASK, HOLDOUT, cs.OneHot())
    assert {layer.geometry.method for layer in found.layers.values()} == {"differences"}
    assert "OneHot" in found.notes["geometry"]
    chosen = diagnose(trained, TASK, HOLDOUT, cs.Bump(), geometry="differences", layers=["image"])
    assert chosen.layers["image"].geometry.method == "differences"
    assert list(chosen.layers) == ["image"]


def test_an_encoding_may_be_a_function(trained):
    def encode(latents):
        return cs.Bump().encode(latents, TASK.factors)

    ours = diagnose(trained, TASK, HOLDOUT, cs.Bump()).numbers()
    theirs = diagnose(trained, TASK, HOLDOUT, encode).numbers()
    assert theirs == ours
    mixing = diagnose(nn.Sequential(nn.Linear(2, 100), nn.Unflatten(1, (1, 10, 10))), TASK, HOLDOUT, mixed)
    assert mixing.superposition.parts is None
    assert "superposition.parts" in mixing.notes
    assert mixing.layers["image"].geometry.method == "exact"


def mixed(latents):
    return torch.stack([latents.sum(1), latents[:, 0] * latents[:, 1]], 1)


def test_one_factor_has_a_blend_and_no_position():
    task, gap = cs.RotationTask((4,), 36), cs.Interval("angle", 160, 200, "neither")
    module = cs.MLP(1, 8).build((2,), (1, 28, 28))
    found = diagnose(module, task, gap, cs.Circle())
    assert found.superposition.parts is found.superposition.means is None
    assert len(found.superposition.blend.mse_to_blend) == found.heldout == 3
    assert found.error.accuracy is None
    assert found.complexity is None
    assert found.layers["image"].geometry.metric.shape == (36, 1, 1)
    assert found.layers["image"].geometry.factorization.mean_of_ratios is None
    assert "blend of the gap's edges" in found.summary()


def test_nothing_held_out_has_no_verdict(trained, tmp_path):
    found = diagnose(trained, TASK, cs.Nothing(), cs.Bump())
    assert found.verdict is found.superposition is found.error.heldout_mse is None
    assert found.error.blank_mse > 0
    assert found.summary().startswith("verdict: none")
    save_diagnosis(found, tmp_path)
    assert load_diagnosis(tmp_path).summary() == found.summary()


def test_extrapolation_is_called_by_its_name(trained):
    found = diagnose(trained, TASK, cs.Cross(3, 5), cs.Bump())
    assert "extrapolation, not composition" in found.summary()
    assert "superposition.means" in found.notes


def test_three_factors_and_a_categorical_one():
    task = cs.BumpTask(6, brightness=(0.5, 1.0))
    found = diagnose(cs.MLP(1, 8).build((6, 6, 2), (1, 6, 6)), task, cs.Square(2, 3), cs.Bump())
    assert found.layers["image"].geometry.metric.shape == (72, 3, 3)
    assert len(found.layers["image"].linear_factorization.by_order) == 3
    turning = cs.RotationTask((1, 4), 10)
    coded = cs.PerFactor({"angle": cs.Circle(), "digit": cs.OneHot()})
    box = cs.Box({"angle": (100, 150), "digit": (4, 4)})
    found = diagnose(cs.MLP(1, 8).build((2, 2), (1, 28, 28)), turning, box, coded)
    assert found.layers["image"].geometry.method == "exact"
    assert found.layers["image"].geometry.axes == ("angle",)


def test_a_table_of_ones_own_in_any_order_and_with_gaps():
    grid = TASK.grid()
    images = TASK.render(grid).repeat(1, 3, 1, 1)
    order = torch.randperm(len(grid), generator=torch.Generator().manual_seed(0))
    module = cs.MLP(1, 8).build((10, 10), (3, 10, 10))
    whole, mixed_up, gappy = (
        cs.TableTask(grid[rows], images[rows], TASK.factors, "dark") for rows in (torch.arange(100), order, order[:80])
    )
    assert (
        diagnose(module, mixed_up, HOLDOUT, cs.Bump()).numbers()
        == diagnose(module, whole, HOLDOUT, cs.Bump()).numbers()
    )
    found = diagnose(module, gappy, HOLDOUT, cs.Bump())
    assert found.error.map.shape == (80,)
    assert found.layers["image"].geometry.method == "exact"
    assert found.layers["image"].tuning is found.complexity is found.kernels.terms is None
    assert {"grid", "complexity", "kernels.terms", "verdict.cross"} <= set(found.notes)
    assert diagnose(module, gappy, HOLDOUT, cs.OneHot()).layers["image"].geometry is None


def test_many_points_are_sampled_for_what_compares_pairs(trained):
    found = diagnose(trained, TASK, HOLDOUT, cs.Bump(), most_points=40)
    assert len(found.kernels.rows) == len(found.layers["image"].manifold.coordinates) == 40
    assert found.layers["image"].geometry.metric.shape == (100, 2, 2)
    assert "40 of the 100" in found.notes["points"]


def test_large_images():
    task = cs.TableTask(cs.BumpTask(6).grid(), torch.rand(36, 3, 64, 64), cs.BumpTask(6).factors)
    found = diagnose(cs.CNN(2, 4).build((6, 6), (3, 64, 64)), task, cs.Square(2, 3), cs.Bump())
    assert found.layers["image"].shape == (3, 64, 64)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"module": nn.Sequential(nn.Linear(20, 81), nn.Unflatten(1, (1, 9, 9)))}, r"\(1, 10, 10\).*\(1, 9, 9\)"),
        ({"module": nn.Linear(7, 100)}, r"\(2, 20\).*7x100"),
        ({"encoding": lambda latents: latents[:5]}, r"\(100, 2\).*\(100, code\).*\(5, 2\)"),
        ({"encoding": cs.Circle()}, "circular"),
        ({"holdout": cs.Square(3, 70)}, "hi = 70"),
        ({"pick": 3}, "pick = 3"),
    ],
)
def test_what_does_not_fit_is_refused_in_numbers(trained, change, says):
    arguments = {"module": trained, "task": TASK, "holdout": HOLDOUT, "encoding": cs.Bump(), **change}
    with pytest.raises(cs.BadInput, match=says):
        diagnose(**arguments)


def test_tuples_and_broken_images_are_refused_with_advice(trained):
    class Pair(nn.Module):
        def forward(self, code):
            image = torch.full((len(code), 1, 10, 10), math.nan)
            return image, code

    with pytest.raises(cs.BadInput, match=r"tuple of 2.*pick=0"):
        diagnose(Pair(), TASK, HOLDOUT, cs.Bump())
    with pytest.raises(cs.BadInput, match="100 of the module's 100 images"):
        diagnose(Pair(), TASK, HOLDOUT, cs.Bump(), pick=0)


def test_the_strangers_example():
    import importlib.util
    from pathlib import Path

    path = Path(__file__).parents[2] / "examples" / "own_decoder.py"
    spec = importlib.util.spec_from_file_location("own_decoder", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    task, hole = cs.BumpTask(16, polarity="bright"), cs.Square(4, 11)
    module = example.make_decoder()
    found = diagnose(module, task, hole, cs.Bump(), pick=0)
    assert list(found.layers) == ["code", "project", "up1", "up2", "mix", "log_variance", "image"]
    assert module.training
    found = diagnose(example.make_sequential(), task, hole, cs.Bump())
    assert list(found.layers) == ["code", "0", "2", "image"]


class Halving(nn.Module):
    """Halves its codes, in place or not."""

    def __init__(self, in_place):
        super().__init__()
        torch.manual_seed(0)
        self.draw = nn.Sequential(nn.Linear(20, 100), nn.Unflatten(1, (1, 10, 10)))
        self.in_place = in_place

    def forward(self, codes):
        codes = codes.mul_(0.5) if self.in_place else codes * 0.5
        return self.draw(codes)


def test_a_module_that_writes_into_its_codes_is_measured_alike():
    kept, written = (diagnose(Halving(in_place), TASK, HOLDOUT, cs.Bump()) for in_place in (False, True))
    assert torch.equal(kept.error.map, written.error.map)
    assert kept.superposition.parts.correlation == written.superposition.parts.correlation


class Detached(nn.Module):
    """Gated by a part of the signal that no derivative sees."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(20, 32), nn.Sequential(nn.Linear(32, 100), nn.Unflatten(1, (1, 10, 10)))

    def forward(self, codes):
        hidden = self.first(codes)
        return self.last(hidden * torch.sigmoid(4 * hidden.detach()))


def test_a_derivative_that_misses_a_part_of_the_signal_is_not_called_exact():
    found = diagnose(Detached(), TASK, HOLDOUT, cs.Bump())
    assert found.layers["image"].geometry.method == "differences"
    assert "disagrees" in found.notes["geometry"]


def test_a_factor_that_only_scales_is_noted():
    task = cs.BumpTask(8, brightness=(0.5, 1.0))
    module = cs.MLP(depth=1, width=8).build((8, 8, 2), (1, 8, 8))
    found = diagnose(module, task, cs.Box({"x": (2, 5), "brightness": (0.5, 0.5)}), cs.Bump())
    assert "brightness" in found.notes["verdict.scale"]


def test_kernels_are_fitted_round_a_circle():
    task = cs.RotationTask(angles=24)
    module = cs.MLP(depth=1, width=8).build((2,), task.image_shape)
    found = diagnose(module, task, cs.Interval("angle", 160, 200), cs.Circle())
    assert set(found.kernels.fits) == {"factorized", "radial"}


def test_curves_by_distance_are_among_the_numbers():
    found = diagnose(oracle("blank"), TASK, HOLDOUT, cs.Bump())
    curve = found.numbers()["by_distance"]["mse"]
    assert len(curve["distances"]) == len(curve["means"]) == len(curve["counts"]) > 1


def test_a_network_that_hardly_changes_its_image_has_exact_geometry():
    """Untrained: differences of its images are mostly rounding, which must not count as disagreement."""
    module = cs.CNN(depth=4, width=64).build((28, 28), (1, 28, 28))
    task, encoding = cs.BumpTask(28), cs.Bump()
    codes = encoding.encode(task.grid(), task.factors)
    tangents = code_tangents(encoding, task.grid(), task.factors, (0, 1))
    assert Subject(module, codes).differentiates(codes, tangents) is None


def test_kernels_draw_the_images_of_a_diagnosis():
    module = cs.CNN(depth=3, width=16).build((16, 16), (1, 16, 16))
    before = fastconv.used()
    diagnose(module, cs.BumpTask(16), cs.Square(4, 11), cs.Bump(), only="verdict")
    used = fastconv.used() - before
    assert used["winograd"] or not fastconv.status().available
    before = fastconv.used()
    with fastconv.using("torch"):
        diagnose(module, cs.BumpTask(16), cs.Square(4, 11), cs.Bump(), only="verdict")
    assert not (fastconv.used() - before)["winograd"]
