"""Diagnoses from the shell: of stored runs, and of modules in users' files."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import nn

import composcope as cs
from composcope.runs import own_decoder

EXAMPLES = Path(__file__).parents[3] / "examples"
WORLD = EXAMPLES / "own_decoder.toml"


@pytest.fixture
def store(tmp_path):
    return cs.Store(tmp_path / "store")


def test_a_stored_run_is_diagnosed_beside_its_untrained_twin(tiny_spec, store):
    result = cs.run(tiny_spec, store)
    found = store[result.run_id].diagnose()
    assert found.error.heldout_mse == pytest.approx(result.measures["error"]["heldout_mse"], rel=1e-5)
    assert found.error.accuracy == pytest.approx(result.measures["error"]["accuracy"])
    assert found.untrained is not None
    assert found.untrained.keys() == found.layers.keys()


def test_measures_live_beside_the_run_and_in_the_frame(tiny_spec, store):
    result = cs.run(tiny_spec, store)
    before = store.run_folder(result.run_id).weights()
    found = store[result.run_id].measure()
    again = cs.run(tiny_spec, store)
    assert again.measures["diagnosis"]["verdict"]["score"] == found.verdict.score
    assert store.frame()["diagnosis.verdict.kind"].tolist() == [found.verdict.kind]
    assert all((store.run_folder(result.run_id).weights()[name] == value).all() for name, value in before.items())


def test_a_control_that_only_reads_cannot_be_diagnosed(tiny_spec, store):
    result = cs.run(replace(tiny_spec, decoder=cs.ImageEncoder(width=4)), store)
    with pytest.raises(cs.BadInput, match="ImageEncoder draws no images"):
        store[result.run_id].diagnose()


def test_a_strangers_module_is_made_and_given_its_weights(tmp_path):
    source = f"{EXAMPLES / 'own_decoder.py'}:make_sequential"
    weights = tmp_path / "weights.safetensors"
    state = {name: value + 1 for name, value in own_decoder.load_decoder(source).state_dict().items()}
    safetensors.torch.save_file(state, weights)
    loaded = own_decoder.load_decoder(source, weights)
    assert isinstance(loaded, nn.Module)
    assert all((loaded.state_dict()[name] == value).all() for name, value in state.items())


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nowhere.py:make", ["nowhere.py", "no such Python file"]),
        (f"{EXAMPLES / 'own_decoder.py'}:make_nothing", ["make_nothing", "no function"]),
        (f"{EXAMPLES / 'own_decoder.py'}:SIZE", ["SIZE", "no function"]),
        (f"{EXAMPLES / 'own_decoder.py'}:F.relu", ["F.relu"]),
    ],
)
def test_a_decoder_that_is_not_there_is_named(source, words):
    with pytest.raises(cs.BadInput) as complaint:
        own_decoder.load_decoder(source)
    assert all(word in str(complaint.value) for word in words)


def test_weights_that_do_not_fit_are_refused(tmp_path):
    source = f"{EXAMPLES / 'own_decoder.py'}:make_sequential"
    weights = tmp_path / "weights.safetensors"
    safetensors.torch.save_file({"other": nn.Linear(2, 2).weight.data}, weights)
    with pytest.raises(cs.BadInput, match="do not fit"):
        own_decoder.load_decoder(source, weights)
    weights.write_text("no tensors")
    with pytest.raises(cs.BadInput, match="do not fit"):
        own_decoder.load_decoder(source, weights)
    with pytest.raises(cs.BadInput, match="file not found"):
        own_decoder.load_decoder(source, tmp_path / "nowhere")


def test_the_world_of_a_whole_spec_or_of_three_tables():
    task, holdout, encoding = own_decoder.read_task(WORLD)
    assert (task.size, holdout, encoding) == (16, cs.Square(4, 11), cs.Bump())
    assert own_decoder.read_task(EXAMPLES / "bump_cnn.toml")[1] == cs.Square(4, 11)


def test_diagnose_a_module_from_the_shell(composcope, tmp_path):
    source = f"{EXAMPLES / 'own_decoder.py'}:make_decoder"
    result = composcope("diagnose", source, "--spec", WORLD, "--pick", "0", "--out", tmp_path / "found")
    assert result.code == 0
    assert result.out.startswith("verdict: ")
    assert json.loads((tmp_path / "found" / "numbers.json").read_text())
    assert cs.load_diagnosis(tmp_path / "found").summary() in result.out


def test_only_the_verdict_from_the_shell(composcope, tmp_path):
    source = f"{EXAMPLES / 'own_decoder.py'}:make_decoder"
    arguments = ("diagnose", source, "--spec", WORLD, "--pick", "0", "--only", "verdict", "--out", tmp_path / "found")
    result = composcope(*arguments)
    assert result.code == 0
    assert result.out.startswith("verdict: ")
    assert "factor is right" in result.out
    assert "layers (" not in result.out
    found = cs.load_diagnosis(tmp_path / "found")
    assert found.layers == {}
    assert set(found.verdict.confusion) == {"x", "y"}
    page = (tmp_path / "found" / "diagnosis.html").read_text()
    assert "Images in which the factor is right" in page
    assert "Layer by layer" not in page
    assert composcope("diagnose", source, "--spec", WORLD, "--only", "errors").code == 2


def test_diagnose_and_measure_a_run_from_the_shell(composcope, tiny_spec, store):
    run_id = cs.run(tiny_spec, store).run_id
    assert composcope("diagnose", run_id[:6], "--store", store.folder).out.startswith("verdict: ")
    measured = composcope("measure", "--store", store.folder)
    assert measured.code == 0
    assert run_id in measured.out
    assert "diagnosis" in store.run_folder(run_id).measures()
    shown = composcope("show", run_id, "--store", store.folder)
    assert shown.code == 0
    assert "diagnosis: " in shown.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["diagnose", "nowhere.py:make"], ["--spec", "[task]"]),
        (["diagnose", "nowhere.py:make", "--spec", "nowhere.toml"], ["nowhere.toml"]),
        (["diagnose", "nowhere.py"], ["nowhere.py", ":make_decoder"]),
        (["diagnose", "0123"], ["0123", "no run"]),
        (["diagnose", "0123", "--pick", "1"], ["0123", "--pick"]),
        (["measure", "0123"], ["0123", "no run"]),
    ],
)
def test_bad_requests_are_refused(composcope, tmp_path, arguments, words):
    result = composcope(*arguments, "--store", tmp_path / "store")
    assert result.code == 2
    assert all(word in result.err for word in words)
    assert not (tmp_path / "store").exists()


def test_several_outputs_need_a_pick(composcope):
    result = composcope("diagnose", f"{EXAMPLES / 'own_decoder.py'}:make_decoder", "--spec", WORLD)
    assert result.code == 2
    assert "pick" in result.err


@pytest.mark.parametrize("wrap", ["plain", "state_dict", "module.", "checkpoint"])
def test_a_state_dict_of_torch_save_is_read(tmp_path, wrap):
    source = f"{EXAMPLES / 'own_decoder.py'}:make_sequential"
    state = {name: value + 1 for name, value in own_decoder.load_decoder(source).state_dict().items()}
    kept = {
        "plain": state,
        "state_dict": {"state_dict": state, "epoch": 3},
        "module.": {f"module.{name}": value for name, value in state.items()},
        "checkpoint": {"optimizer": {"lr": 0.1}, "model": state},
    }[wrap]
    torch.save(kept, tmp_path / "weights.pt")
    loaded = own_decoder.load_decoder(source, tmp_path / "weights.pt")
    assert all((loaded.state_dict()[name] == value).all() for name, value in state.items())


def test_a_file_that_would_run_something_is_refused(tmp_path):
    source = f"{EXAMPLES / 'own_decoder.py'}:make_sequential"
    torch.save(own_decoder.load_decoder(source), tmp_path / "module.pt")
    with pytest.raises(cs.BadInput, match=r"save module.state_dict\(\)"):
        own_decoder.load_decoder(source, tmp_path / "module.pt")
    torch.save({"epoch": 3}, tmp_path / "other.pt")
    with pytest.raises(cs.BadInput, match="hold no state dict"):
        own_decoder.load_decoder(source, tmp_path / "other.pt")
