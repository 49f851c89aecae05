"""An opened run: lazy, in memory or in a store, and the same either way."""

import json
from dataclasses import replace

import pytest
import torch

import composcope as cs
from composcope.errors import Damaged
from composcope.runs import DIAGNOSIS_VERSION
from composcope.runs.run import Run


def test_opening_a_run_reads_nothing(tiny_spec, tmp_path):
    run = Run(tiny_spec, cs.Store(tmp_path / "nowhere").run_folder(tiny_spec.run_id))
    assert run.run_id == tiny_spec.run_id
    assert len(run.split.heldout) == 16
    assert torch.equal(run.truth, tiny_spec.task.render(tiny_spec.task.grid()))
    with pytest.raises(Damaged, match="missing"):
        _ = run.weights
    with pytest.raises(cs.BadInput, match="neither a store nor weights"):
        _ = Run(tiny_spec).module


def test_in_memory_and_stored_runs_are_the_same(tiny_spec, store):
    spec = replace(tiny_spec, training=cs.Training(steps=6, batch=16, snapshots=(2,)))
    here, stored = cs.run(spec), cs.run(spec, store)
    assert here.error == stored.error
    assert torch.equal(here.draw(), stored.draw())
    assert here.curve["loss"].tolist() == pytest.approx(stored.curve["loss"].tolist())
    assert here.snapshots.keys() == stored.snapshots.keys() == {2}
    assert here.diagnosis.numbers() == stored.diagnosis.numbers()


def test_images_over_the_grid_are_drawn_once(tiny_spec):
    run = cs.run(tiny_spec)
    assert run.draw() is run.draw()
    assert torch.allclose(run.draw(run.split.latents[:5]), run.draw()[:5], atol=1e-6)
    assert torch.allclose(run.draw_codes(run.codes[:5]), run.draw()[:5], atol=1e-6)


def test_parts_alone_are_those_of_the_diagnosis(tiny_spec):
    from composcope.measures.error import shape_correlation

    run = cs.run(tiny_spec)
    drawn = tiny_spec.task.foreground(run.draw())[run.split.mask]
    correlations = shape_correlation(drawn, sum(run.parts_alone()))
    assert torch.allclose(correlations, run.diagnosis.superposition.parts.correlations, atol=1e-5)
    rows = run.split.mask.nonzero()[:2, 0].tolist()
    assert torch.allclose(run.parts_alone(rows)[0], run.parts_alone()[0][:2], atol=1e-5)


def test_the_diagnosis_is_stored_and_a_damaged_one_made_again(tiny_spec, store):
    run = cs.run(tiny_spec, store)
    numbers = run.diagnosis.numbers()
    assert store.run_folder(run.run_id).has_diagnosis()
    stored = store.run_folder(run.run_id).diagnosis()
    assert list(stored.layers) == list(run.diagnosis.layers) == ["code", "hidden1", "image"]
    assert stored.summary() == run.diagnosis.summary()
    maps = store.folder / run.run_id / "measures" / "diagnosis.npz"
    content = maps.read_bytes()
    maps.write_bytes(b"torn")
    with pytest.raises(Damaged, match=r"diagnosis\.npz"):
        store.run_folder(run.run_id).diagnosis()
    assert store[tiny_spec.run_id].diagnosis.numbers() == numbers
    assert maps.read_bytes() == content


def test_a_diagnosis_of_an_earlier_version_counts_as_none(tiny_spec, store):
    run = cs.run(tiny_spec, store)
    numbers = run.diagnosis.numbers()
    path = store.folder / run.run_id / "measures" / "diagnosis.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": DIAGNOSIS_VERSION - 1}))
    again = store[run.run_id]
    assert not again.artifacts.has_diagnosis()
    assert "diagnosis" not in again.measures
    assert store.record(run.run_id, verify=True).status == "done"
    assert again.diagnosis.numbers() == numbers
    assert again.artifacts.has_diagnosis()


def test_a_control_that_only_reads_has_errors_of_codes(tiny_spec, store):
    run = cs.run(replace(tiny_spec, decoder=cs.ImageEncoder(width=4)), store)
    assert not run.draws
    assert set(run.error) == {"seen_code_mse", "heldout_code_mse", "seen_code_accuracy", "code_accuracy"}
    share = (run.read - run.codes).square().sum(1) / run.codes.square().sum(1)
    assert torch.allclose(run.point_errors.share, share.double(), rtol=1e-5)
    assert run.point_errors.placed[run.split.mask].mean().item() == run.error["code_accuracy"]
    for use in (lambda: run.drawer, run.draw, run.diagnose, run.parts_alone):
        with pytest.raises(cs.BadInput, match="ImageEncoder draws no images"):
            use()
    with pytest.raises(cs.BadInput, match="MLP reads no codes"):
        _ = cs.run(tiny_spec).read


def test_an_autoencoder_has_both(tiny_spec):
    run = cs.run(replace(tiny_spec, decoder=cs.Autoencoder(cs.MLP(1, 8), width=4)))
    assert {"heldout_mse", "accuracy", "heldout_code_mse", "code_accuracy"} <= set(run.error)
    assert run.point_errors.mse[run.split.mask].mean().item() == pytest.approx(run.error["heldout_mse"])


def test_a_table_in_any_order_is_opened_in_grid_order(tiny_spec, tmp_path):
    task = cs.BumpTask(8)
    order = torch.randperm(64, generator=torch.Generator().manual_seed(0))
    table = cs.TableTask(task.grid()[order], task.render(task.grid())[order], task.factors, "dark")
    run = Run(replace(tiny_spec, task=table.save(tmp_path / "table.npz")))
    assert torch.equal(run.split.latents, task.grid())
    assert torch.equal(run.truth, task.render(task.grid()))
