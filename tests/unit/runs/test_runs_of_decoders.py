"""The decoders that are not the paper's train, are stored, open with the same bytes and are diagnosed."""

from dataclasses import replace

import pytest
import torch

import composcope as cs
from catalogue import DECODERS, label

KINDS = {"spatial_broadcast", "additive", "product", "flow_matching"}
DRAWING = [decoder for decoder in DECODERS if decoder.kind in KINDS and decoder.polarity != "bright"]


@pytest.mark.parametrize("decoder", DRAWING, ids=label)
def test_decoder_is_trained_stored_reopened_and_diagnosed(decoder, tiny_spec, tmp_path):
    spec = replace(tiny_spec, decoder=decoder, sampling=cs.Stripes(fraction=1.0))  # with absent factors
    store = cs.Store(tmp_path)
    trained = cs.run(spec).weights
    run = cs.run(spec, store)
    again = cs.run(spec, store)
    assert all(torch.equal(value, again.weights[name]) for name, value in trained.items())
    assert torch.equal(run.draw(), again.draw())
    diagnosis = run.diagnose()
    names = list(diagnosis.layers)
    assert names[0] == "code"
    assert names[-1] == "image"
    assert set(names[1:-1]) <= {name for name, _ in run.module.named_children()}
    assert diagnosis.summary()


@pytest.mark.parametrize("decoder", DRAWING, ids=label)
def test_a_training_step_changes_the_loss(decoder, tiny_spec):
    spec = replace(tiny_spec, decoder=decoder, training=cs.Training(steps=60, batch=16, lr=3e-3))
    losses = cs.run(spec).curve["loss"]
    assert losses.iloc[-3:].mean() < losses.iloc[0]
