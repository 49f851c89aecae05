"""The reader of factor values, and the penalty that compares held-out codes with what is read."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import composcope as cs
from composcope.factors import Factor
from composcope.penalties.consistency import fitted_reader

TASK, HOLDOUT = cs.BumpTask(10), cs.Square(3, 6)
PARTS = cs.split(TASK, HOLDOUT)


def given(task=TASK, holdout=HOLDOUT, seed=0):
    parts = cs.split(task, holdout)
    codes, heldout = (cs.OneHot().encode(latents, task.factors) for latents in (parts.seen, parts.heldout))
    sizes = cs.OneHot().code_sizes(task.factors)
    return cs.TrainingData(codes, task.render(parts.seen), heldout, sizes, torch.Generator().manual_seed(seed))


def reader_of(data):
    return fitted_reader(data.codes, data.images, data.code_sizes, data.rng)


class Draws(nn.Module):
    """A decoder that draws the images it is given for the codes it is given."""

    def __init__(self, codes, images):
        super().__init__()
        self.codes, self.images = codes, nn.Parameter(images)

    def forward(self, codes):
        return self.images[torch.cdist(codes, self.codes).argmin(1)]


@pytest.mark.parametrize("polarity", ["dark", "bright"])
def test_positions_are_read_in_combinations_that_were_never_seen(polarity):
    task = replace(TASK, polarity=polarity)
    reader = reader_of(given(task))
    assert [factor.way for factor in reader.readings] == [0, 1]  # x pooled over rows, y over columns
    assert reader.features is None  # pooling the image is enough
    x, y = reader.read(task.render(PARTS.heldout))
    # One-hot codes in increasing order of the code: the last value comes first.
    assert torch.equal(9 - x, PARTS.heldout[:, 0].long())
    assert torch.equal(9 - y, PARTS.heldout[:, 1].long())


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    """A 3 x 3 square, a plus or an x at any position of a 9 x 9 image."""
    pictures = torch.tensor([[1, 1, 1, 1, 1, 1, 1, 1, 1], [0, 1, 0, 1, 1, 1, 0, 1, 0], [1, 0, 1, 0, 1, 0, 1, 0, 1]])
    factors = (Factor("shape", (0, 1, 2), "categorical"), Factor("x", range(7)), Factor("y", range(7)))
    latents = torch.cartesian_prod(*(factor.tensor() for factor in factors))
    images = torch.zeros(len(latents), 1, 9, 9)
    for image, (shape, x, y) in zip(images, latents.long().tolist(), strict=True):
        image[0, y : y + 3, x : x + 3] = pictures[shape].reshape(3, 3)
    return cs.TableTask(latents, images, factors).save(tmp_path_factory.mktemp("shapes") / "shapes.npz")


def test_shape_is_read_by_a_network_pooled_over_both_axes(shapes):
    data = given(shapes, cs.Box({"x": (2, 4), "y": (2, 4)}))
    reader = reader_of(data)
    assert [factor.way for factor in reader.readings] == [3, 0, 1]
    heldout = cs.split(shapes, cs.Box({"x": (2, 4), "y": (2, 4)})).heldout
    codes = data.heldout_codes.split([3, 7, 7], 1)
    readings = zip(reader.read(shapes.render(heldout)), reader.readings, codes, strict=True)
    assert min((read == factor.index(part)).float().mean() for read, factor, part in readings) > 0.95


def test_an_absent_factor_is_a_value_like_others():
    latents = cs.Stripes(fraction=1.0).sample(TASK, HOLDOUT, torch.Generator())
    codes = cs.OneHot().encode(latents, TASK.factors)
    reader = fitted_reader(codes, TASK.render(latents), (10, 10), torch.Generator())
    assert [len(factor.codes) for factor in reader.readings] == [11, 11]


def test_a_decoder_that_draws_the_truth_pays_almost_nothing_and_a_blank_one_does():
    data, batch = given(), cs.Batch(torch.zeros(40, 20), torch.zeros(40, 1, 10, 10), None)
    truth = TASK.render(PARTS.heldout)
    step = cs.Consistency(1.0).start(data)
    assert step(Draws(data.heldout_codes, truth), batch).item() < 0.01
    assert step(Draws(data.heldout_codes, TASK.blank(len(truth))), batch).item() > 0.5
    assert step(Draws(data.heldout_codes, truth.flip(0)), batch).item() > 0.5


def test_it_never_sees_an_image_of_a_held_out_combination(monkeypatch):
    """The true images of held-out combinations are rendered after training only."""
    rendered = []
    render = cs.BumpTask.render
    monkeypatch.setattr(cs.BumpTask, "render", lambda self, latents: rendered.append(latents) or render(self, latents))
    spec = cs.Spec(TASK, HOLDOUT, cs.OneHot(), cs.MLP(depth=1), cs.Everything(), cs.Training(steps=3))
    from composcope.runs.pipeline import train_spec

    rendered.clear()
    train_spec(replace(spec, penalties=(cs.Consistency(),)))
    assert rendered
    assert not any(HOLDOUT.contains(latents, TASK.factors).any() for latents in rendered)


def test_nothing_held_out_is_a_failed_run(tiny_spec):
    with pytest.raises(cs.RunFailed, match="holds out none"):
        cs.run(replace(tiny_spec, holdout=cs.Nothing(), penalties=(cs.Consistency(),)))


def test_a_continuum_of_values_is_a_failed_run(tiny_spec):
    spec = replace(tiny_spec, task=cs.BumpTask(8, continuous=True), sampling=cs.Draws(1500))
    with pytest.raises(cs.RunFailed, match="1500 distinct codes"):
        cs.run(replace(spec, penalties=(cs.Consistency(),)))


def test_same_seed_same_bytes(tiny_spec):
    spec = replace(tiny_spec, penalties=(cs.Consistency(),))
    weights = [cs.run(spec).weights for _ in range(2)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
