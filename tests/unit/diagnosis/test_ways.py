"""Decoders, codes and held-out combinations in the forms in which people have them."""

import numpy as np
import pytest
import torch
from torch import nn

import composcope as cs
from composcope.diagnosis.points import neighbouring_rows, points_of
from composcope.holdouts import split
from known_decoders import Case, Lookup, foregrounds, sprites

TASK, HOLDOUT = cs.BumpTask(8), cs.Square(2, 5)


class Arguments(nn.Module):
    """One argument per factor."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.out = nn.Linear(8, 16), nn.Linear(8, 16), nn.Linear(16, 64)

    def forward(self, x, y):
        return self.out((self.first(x) + self.second(y)).relu()).view(-1, 1, 8, 8)

    def decode(self, code):
        return self(code[:, :8], code[:, 8:])


class Dict(Arguments):
    def forward(self, parts):
        return super().forward(parts["x"], parts["y"])


class Slots(nn.Module):
    def __init__(self):
        super().__init__()
        self.slot, self.out = nn.Linear(8, 16), nn.Linear(16, 64)

    def forward(self, slots):
        return self.out(self.slot(slots).relu().sum(1)).view(-1, 1, 8, 8)


class Embedded(nn.Module):
    """Takes whole numbers."""

    def __init__(self):
        super().__init__()
        self.x, self.y, self.out = nn.Embedding(8, 16), nn.Embedding(8, 16), nn.Linear(16, 64)

    def forward(self, x, y):
        return self.out((self.x(x) + self.y(y)).relu()).view(-1, 1, 8, 8)


def codes_of(latents):
    return [cs.Bump().encode_factor(values, f) for values, f in zip(latents.unbind(1), TASK.factors, strict=True)]


def images_of(module, latents):
    x, y = codes_of(latents)
    if isinstance(module, Dict):
        return module({"x": x, "y": y})
    if isinstance(module, Slots):
        return module(torch.stack([x, y], 1))
    return module(x, y)


def mse_of(module):
    parts = split(TASK, HOLDOUT)
    return (images_of(module, parts.heldout) - TASK.render(parts.heldout)).square().mean().item()


@pytest.mark.parametrize(
    ("module", "inputs", "encoding"),
    [
        (Arguments(), "factors", cs.Bump()),
        (Arguments(), "keywords", cs.Bump()),
        (Dict(), "dict", cs.Bump()),
        (Slots(), "slots", cs.Bump()),
        (Arguments(), "code", lambda latents: tuple(codes_of(latents))),
        (Dict(), "code", lambda latents: dict(zip("xy", codes_of(latents), strict=True))),
        (Arguments(), "keywords", lambda latents: dict(zip("xy", codes_of(latents), strict=True))),
        (Slots(), "code", lambda latents: torch.stack(codes_of(latents), 1)),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_module_gets_what_it_takes(module, inputs, encoding):
    found = cs.diagnose(module, TASK, HOLDOUT, encoding, inputs=inputs)
    assert found.error.heldout_mse == pytest.approx(mse_of(module), rel=1e-5)
    assert set(found.layers) == {"code", "image", *(("first", "second") if hasattr(module, "first") else ("slot",))}
    assert found.layers["image"].geometry.method == "exact"


def test_whole_numbers_stay_whole():
    found = cs.diagnose(Embedded(), TASK, HOLDOUT, lambda latents: (latents[:, 0].long(), latents[:, 1].long()))
    assert list(found.layers) == ["code", "x", "y", "image"]
    assert "step function" in found.notes["geometry"]


def test_a_method_shows_the_layers_of_its_module():
    module = Arguments().train()
    for device in (None, "cpu"):
        found = cs.diagnose(module.decode, TASK, HOLDOUT, cs.Bump(), device=device)
        assert list(found.layers) == ["code", "first", "second", "image"]
        assert found.error.heldout_mse == pytest.approx(mse_of(module), rel=1e-5)
    assert module.training


def test_a_function_and_a_script_show_images_only_and_say_so():
    module = Arguments()
    plain = cs.diagnose(lambda code: module.decode(code), TASK, HOLDOUT, cs.Bump())
    script = torch.jit.trace(nn.Sequential(nn.Linear(16, 64), nn.Unflatten(1, (1, 8, 8))), torch.zeros(2, 16))
    scripted = cs.diagnose(script, TASK, HOLDOUT, cs.Bump())
    for found, word in ((plain, "function"), (scripted, "ScriptModule")):
        assert list(found.layers) == ["code", "image"]
        assert word in found.notes["layers"]
    assert plain.error.heldout_mse == pytest.approx(mse_of(module), rel=1e-5)


def test_what_is_called_in_a_loop_counts_once():
    class Sampler(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = nn.Sequential(nn.Linear(16 + 64, 32), nn.ReLU(), nn.Linear(32, 64))

        def forward(self, code):
            image = torch.zeros(len(code), 64)
            for _ in range(30):
                image = image + 0.1 * self.step(torch.cat([code, image], 1))
            return image.view(-1, 1, 8, 8)

    module = Sampler()
    found = cs.diagnose(module, TASK, HOLDOUT, cs.Bump())
    assert list(found.layers) == ["code", "step.0", "step.2", "image"]
    assert "step.0 30 times" in found.notes["layers.calls"]
    # The last call, not the first: its input is the image so far.
    code, image = torch.cat(codes_of(TASK.grid()), 1), torch.zeros(64, 64)
    with torch.no_grad():
        for _ in range(30):
            hidden = module.step[:2](torch.cat([code, image], 1))
            image = image + 0.1 * module.step[2](hidden)
    shown = found.layers["step.0"].tuning
    assert torch.allclose(shown.maps[0].flatten(), hidden[:, shown.shown[0]], atol=1e-5)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cs.diagnose(nn.Linear(20, 64), TASK, HOLDOUT, cs.Bump()), "columns 0-7 for x, 8-15 for y"),
        (lambda: cs.diagnose(Arguments, TASK, HOLDOUT, cs.Bump()), r"pass an instance, Arguments\("),
        (lambda: cs.diagnose(Dict(), TASK, HOLDOUT, cs.Bump(), inputs="factors"), "given as arguments x"),
        (
            lambda: cs.diagnose(Slots(), TASK, HOLDOUT, cs.PerFactor({"x": cs.Bump(), "y": cs.Rate()}), inputs="slots"),
            "they have x 8, y 1",
        ),
        (lambda: cs.diagnose(Slots(), TASK, HOLDOUT, lambda latents: (latents[:3], latents)), "64 rows each"),
    ],
)
def test_what_does_not_fit_is_told(make, words):
    with pytest.raises(cs.BadInput, match=words):
        make()


def test_a_mask_rows_and_a_function_hold_out_the_same():
    mask = HOLDOUT.contains(TASK.grid())
    given = [
        mask,
        mask.numpy(),
        mask.tolist(),
        mask.reshape(8, 8),
        mask.nonzero()[:, 0].tolist(),
        mask.numpy().nonzero()[0],
        lambda latents: HOLDOUT.contains(latents),
        lambda y, x: 2 <= x <= 5 and 2 <= y <= 5,
    ]
    for form in given:
        holdout = cs.as_holdout(form, TASK)
        assert torch.equal(split(TASK, form).mask, mask)
        assert cs.Holdout.from_dict(holdout.to_dict()) == holdout
    found = cs.diagnose(Arguments().decode, TASK, mask.numpy(), cs.Bump(), only="verdict")
    assert found.heldout == 16


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([64], "no row 64"),
        ([0.5], "row numbers"),
        (np.ones(5, bool), r"shape \(64,\) or \(8, 8\)"),
        ("x > 3", "a Holdout, a mask"),
        (lambda x, z: True, "names of factors"),
        (lambda latents: latents, "64 booleans"),
        ([], "row numbers|none of the combinations"),
    ],
)
def test_a_holdout_that_cannot_be_read_is_told(given, words):
    with pytest.raises(cs.BadInput, match=words):
        cs.as_holdout(given, TASK)


def test_columns_names_and_repeats_make_a_table():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"shape": ["disc", "bar", "disc", "bar"] * 2, "x": [1, 1, 2, 2] * 2})
    images = torch.rand(8, 6, 6)
    with pytest.raises(ValueError, match="repeats='mean'"):
        cs.TableTask.from_columns(frame, images)
    task = cs.TableTask.from_columns(frame, images, repeats="mean")
    assert task.factors[0].names == ("bar", "disc")
    assert torch.allclose(task.render(torch.tensor([[1.0, 2.0]]))[0, 0], (images[2] + images[6]) / 2)
    with pytest.raises(ValueError, match="'ring' is not one of"):
        cs.TableTask.from_columns({"shape": ["ring"]}, images[:1], [cs.Factor("shape", ("disc", "bar"))])
    angle = cs.Factor("angle", (0, 90), "circular", 360)
    turned = cs.TableTask.from_columns({"angle": [0, 90]}, images[:2], [angle])
    assert turned.factors == (angle,)


def test_names_are_used_in_words_and_on_the_page(tmp_path):
    plain = sprites()
    factors = [cs.Factor("shape", ("square", "disc", "wedge")), *plain.factors[1:]]
    task = cs.TableTask(plain.latents, plain.images, factors)
    assert cs.TableTask.load(task.save(tmp_path / "table.npz").file).factors[0].names == ("square", "disc", "wedge")
    case = Case(task, cs.Box({"shape": (1, 1), "x": (1, 3), "y": (1, 3)}), "shape")
    found = cs.diagnose(Lookup(case, foregrounds(case, 0)["one factor wrong"]), task, case.holdout, cs.OneHot())
    assert "shape: disc is shown as square in 9 of 9 images" in found.summary()
    page = found.write_page(tmp_path / "page.html").read_text()
    assert "shape disc, x 1, y 1" in page
    assert "mixes up factors" in page


def test_a_page_needs_no_encoding_object(tmp_path):
    found = cs.diagnose(Arguments(), TASK, HOLDOUT, lambda latents: tuple(codes_of(latents)))
    page = found.write_page(tmp_path / "page.html", title="Mine")
    assert "<title>Mine" in page.read_text()
    cs.save_diagnosis(found, tmp_path / "saved")
    assert torch.equal(cs.load_diagnosis(tmp_path / "saved").samples.images, found.samples.images)


def test_a_large_grid_is_sampled_with_its_neighbours():
    case = Case(sprites(), cs.Box({"shape": (1, 1), "x": (1, 3), "y": (1, 3)}), "shape")
    module = Lookup(case, foregrounds(case, 0)["composer"])
    found = cs.diagnose(module, case.task, case.holdout, cs.OneHot(), memory_mb=0.06)
    assert "52 of the 75 combinations" in found.notes["combinations"]
    assert (found.points, found.heldout) == (75, 9)
    assert found.verdict.kind == "composes"
    assert found.error.by_distance == {}
    assert found.layers["code"].geometry is not None or "geometry" in found.notes


def test_neighbours_differ_in_one_factor():
    index = torch.cartesian_prod(torch.arange(3), torch.arange(4), torch.arange(2))
    rows = neighbouring_rows(index, torch.tensor([5]))
    expected = ((index != index[5]).sum(1) <= 1).nonzero()[:, 0]
    assert torch.equal(rows, expected)
    points = points_of(TASK, split(TASK, HOLDOUT), 100, torch.Generator().manual_seed(0), 40)
    assert len(points.latents) == 40
    assert points.classifiable.any()


def test_a_random_module_draws_equal_codes_separately():
    class Coin(nn.Module):
        def forward(self, code):
            return torch.rand(len(code), 1, 1, 1).expand(-1, 1, 8, 8)

    constant = lambda latents: torch.zeros(len(latents), 4)  # noqa: E731
    found = cs.diagnose(Coin(), TASK, HOLDOUT, constant, only="verdict")
    assert "random outputs" in found.notes
    assert found.error.map.unique().numel() > 32


def test_a_sample_of_a_large_grid_is_measured_as_all_of_it_would_be(monkeypatch):
    """The layers are read in other ways where units, compared points or derivatives are only some of all."""
    module = nn.Sequential(nn.Linear(16, 50), nn.Tanh(), nn.Linear(50, 64), nn.Unflatten(1, (1, 8, 8)))
    options = {"most_points": 30, "memory_mb": 1}
    all_units = cs.diagnose(module, TASK, HOLDOUT, cs.Bump(), **options)
    for name, value in (("MAX_SCORED", 64 * 20), ("SAMPLE_SCORED", 64 * 20), ("MAX_DIFFERENTIATED", 40)):
        monkeypatch.setattr(f"composcope.diagnosis.layers.{name}", value)
    found = cs.diagnose(module, TASK, HOLDOUT, cs.Bump(), **options)
    assert "at 30 of the 64 points" in found.notes["geometry.points"]
    for name, layer in all_units.layers.items():
        torch.testing.assert_close(found.layers[name].manifold.coordinates.abs(), layer.manifold.coordinates.abs())
        assert found.layers[name].probe == layer.probe
        sampled = found.layers[name].geometry
        assert len(sampled.metric) == 30
        apart = (layer.geometry.metric[None] - sampled.metric[:, None]).abs().amax((2, 3))
        assert (apart.amin(1) < 1e-5).all()  # each is the metric of one of the points


def test_units_of_a_very_large_layer_are_sampled(monkeypatch):
    monkeypatch.setattr("composcope.diagnosis.layers.MAX_SCORED", 64 * 20)
    monkeypatch.setattr("composcope.diagnosis.layers.SAMPLE_SCORED", 64 * 20)
    module = nn.Sequential(nn.Linear(16, 50), nn.ReLU(), nn.Linear(50, 64), nn.Unflatten(1, (1, 8, 8)))
    found = cs.diagnose(module, TASK, HOLDOUT, cs.Bump(), memory_mb=1)
    assert "of 0, image are of 20 units each" in found.notes["tuning"]
    layer = found.layers["0"]
    assert len(layer.tuning.stripe) == 20
    with torch.no_grad():
        hidden = module[:2](cs.Bump().encode(TASK.grid(), TASK.factors))
    assert torch.allclose(layer.tuning.maps.flatten(1), hidden[:, layer.tuning.shown].T, atol=1e-5)
