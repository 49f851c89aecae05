"""Whole walks: from a description to stored numbers, and again."""

from dataclasses import replace

import pytest
import torch

import composcope as cs
from tiny import tiny


def weights_file(store, run_id):
    return (store.folder / run_id / "weights.safetensors").read_bytes()


def test_the_walk_of_the_data_by_hand_is_what_run_does(tiny_spec):
    """Each step as the documentation draws it, without `run`."""
    from composcope.randomness import generator, seeded

    task, parts = tiny_spec.task, cs.split(tiny_spec.task, tiny_spec.holdout)
    latents = tiny_spec.sampling.sample(task, tiny_spec.holdout, generator(0, "sampling"))
    codes = tiny_spec.encoding.encode(latents, task.factors)
    with seeded(0, "initialisation"):
        module = tiny_spec.decoder.build(tiny_spec.encoding.code_sizes(task.factors), task.image_shape)
    cs.train(module, codes, task.render(latents), tiny_spec.training, seed=0)
    with torch.no_grad():
        images = module(tiny_spec.encoding.encode(parts.heldout, task.factors))
    error = (images - task.render(parts.heldout)).square().mean().item()
    assert cs.run(tiny_spec).measures["error"]["heldout_mse"] == pytest.approx(error, rel=1e-5)


def test_same_seed_same_bytes(tiny_spec, tmp_path):
    stores = [cs.Store(tmp_path / name) for name in ("a", "b")]
    for store in stores:
        torch.rand(7)  # what happened before must not matter
        cs.run(tiny_spec, store)
    one, other = (weights_file(store, tiny_spec.run_id) for store in stores)
    assert one == other
    cs.run(replace(tiny_spec, seed=1), stores[0])
    assert weights_file(stores[0], replace(tiny_spec, seed=1).run_id) != one


@pytest.mark.parametrize("sampling", [cs.Draws(40), cs.Stripes(bumps=10)])
def test_same_seed_same_bytes_with_random_sampling(tiny_spec, sampling, tmp_path):
    spec = replace(tiny_spec, sampling=sampling)
    stores = [cs.Store(tmp_path / name) for name in ("a", "b")]
    for store in stores:
        cs.run(spec, store)
    assert weights_file(stores[0], spec.run_id) == weights_file(stores[1], spec.run_id)


def test_a_run_leaves_random_state_and_threads_alone(tiny_spec, store):
    torch.manual_seed(3)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    cs.run(tiny_spec, store)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads


def test_a_run_says_nothing(tiny_spec, store, capsys):
    cs.run(tiny_spec, store)
    said = capsys.readouterr()
    assert not said.out
    assert not said.err


def test_module_of_a_result_gives_the_measured_images(tiny_spec, store):
    result = cs.run(tiny_spec, store)
    seen = cs.split(tiny_spec.task, tiny_spec.holdout).seen
    assert not result.module.training
    with torch.no_grad():
        images = result.module(tiny_spec.encoding.encode(seen, tiny_spec.task.factors))
    error = (images - tiny_spec.task.render(seen)).square().mean().item()
    assert result.measures["error"]["seen_mse"] == pytest.approx(error, rel=1e-5)


def test_callbacks_reach_a_run(tiny_spec):
    steps, rows = [], []
    cs.run(
        tiny_spec,
        on_step=lambda step, module: steps.append(step),
        on_epoch=lambda row, module: rows.append(row["epoch"]),
    )
    assert steps == [1, 2, 3, 4, 5, 6]
    assert rows == [1, 2]


def test_three_factors_go_through_a_whole_run(store):
    task = cs.BumpTask(8, brightness=(0.25, 0.5, 1.0))
    spec = cs.Spec(
        task=task,
        holdout=cs.Box({"x": (2, 4), "y": (2, 4), "brightness": (1.0, 1.0)}),
        encoding=cs.PerFactor({"x": cs.Bump(), "y": cs.OneHot(), "brightness": cs.Rate()}),
        decoder=cs.CNN(depth=2, width=4),
        sampling=cs.Everything(),
        training=cs.Training(steps=5),
    )
    result = cs.run(spec, store)
    assert cs.split(task, spec.holdout).certificate.composition
    assert len(cs.split(task, spec.holdout).heldout) == 9
    assert result.module.first[0].in_channels == 8 + 8 + 1
    assert 0 <= result.measures["error"]["accuracy"] <= 1
    assert cs.Store(store.folder).frame().loc[0, "task.brightness"] == "[0.25, 0.5, 1.0]"


def test_a_table_of_ones_own_goes_through_a_whole_run(tmp_path, store):
    source = cs.BumpTask(8, polarity="bright")
    table = cs.TableTask(source.grid(), source.render(source.grid()), source.factors).save(tmp_path / "table.npz")
    spec = tiny(task=table)
    result = cs.run(spec, store)
    again = cs.run(cs.Spec.from_dict(spec.to_dict()), store)
    assert again.run_id == result.run_id
    assert "accuracy" not in result.measures["error"]
    drawn = cs.run(replace(spec, task=source))
    assert drawn.measures["error"]["heldout_mse"] == pytest.approx(result.measures["error"]["heldout_mse"])


def test_a_stored_table_run_is_listed_when_its_file_is_gone(tmp_path, store, composcope):
    source = cs.BumpTask(8)
    path = tmp_path / "table.npz"
    table = cs.TableTask(source.grid(), source.render(source.grid()), source.factors).save(path)
    spec = cs.Spec(table, cs.Square(2, 5), cs.Bump(), cs.MLP(depth=1, width=4), training=cs.Training(steps=2))
    run_id = cs.run(spec, store).run_id
    path.unlink()
    assert composcope("list", "--store", store.folder).code == 0
    assert "table.npz" in composcope("show", run_id, "--store", store.folder).out
    diagnosed = composcope("diagnose", run_id, "--store", store.folder)
    assert diagnosed.code == 2
    assert "table.npz" in diagnosed.err


def test_extrapolation_is_warned_of(tiny_spec):
    with pytest.warns(cs.NotComposition, match="never seen in training: x = 3, 4"):
        cs.run(replace(tiny_spec, holdout=cs.Interval("x", 3, 4)))


def test_unusable_device_is_bad_input(tiny_spec):
    with pytest.raises(cs.BadInput, match="toaster"):
        cs.run(tiny_spec, device="toaster")


def test_a_decoder_learns_what_it_sees_and_fails_where_it_does_not(tiny_spec):
    """The paper's phenomenon in small: an MLP draws seen bumps in place, and unseen ones elsewhere."""
    spec = replace(
        tiny_spec,
        encoding=cs.OneHot(),
        decoder=cs.MLP(depth=2, width=64),
        training=cs.Training(steps=1200, batch=48, lr=3e-3),
    )
    measured = cs.run(spec).measures["error"]
    assert measured["seen_accuracy"] == 1
    assert measured["seen_mse"] < 0.05 * measured["blank_mse"]
    assert measured["heldout_mse"] > 5 * measured["seen_mse"]
