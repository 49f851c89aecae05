"""What penalties are given: a module alone, a batch, or everything that is known before training."""

from dataclasses import replace

import pytest
import torch

import composcope as cs

pytestmark = pytest.mark.usefixtures("no_new_kinds")


def test_a_penalty_that_takes_the_module_alone_gives_the_weights_it_gave_before(tiny_spec):
    @cs.register("alone")
    class Alone(cs.Penalty):
        def loss(self, module):
            return 0.1 * sum(parameter.square().sum() for parameter in module.parameters())

    @cs.register("with_batch")
    class WithBatch(cs.Penalty):
        def loss(self, module, batch):
            return 0.1 * sum(parameter.square().sum() for parameter in module.parameters())

    plain, alone, with_batch = (
        cs.run(replace(tiny_spec, penalties=penalties)).weights for penalties in ((), (Alone(),), (WithBatch(),))
    )
    assert all(torch.equal(alone[name], with_batch[name]) for name in alone)
    assert not all(torch.equal(alone[name], plain[name]) for name in alone)


def test_a_batch_holds_the_codes_images_and_outputs_of_the_step(tiny_spec):
    seen = []

    @cs.register("watching")
    class Watching(cs.Penalty):
        def loss(self, module, batch):
            seen.append(batch)
            return (batch.outputs - module(batch.codes)).square().sum()

    run = cs.run(replace(tiny_spec, penalties=(Watching(),)))
    assert run.curve["penalty"].abs().max() < 1e-6
    for batch in seen:
        latents = tiny_spec.encoding.decode(batch.codes, tiny_spec.task.factors)
        torch.testing.assert_close(batch.images, tiny_spec.task.render(latents))


def test_before_training_a_penalty_is_given_the_training_set_and_held_out_codes(tiny_spec):
    given = []

    @cs.register("preparing")
    class Preparing(cs.Penalty):
        def start(self, data):
            given.append(data)
            return lambda module, batch: batch.outputs.sum() * 0

    spec = replace(tiny_spec, penalties=(Preparing(),))
    trained, plain = (cs.run(each, kernels="torch").weights for each in (spec, tiny_spec))
    assert all(torch.equal(trained[name], plain[name]) for name in plain)
    data, parts = given[0], cs.split(spec.task, spec.holdout)
    assert torch.equal(data.heldout_codes, spec.encoding.encode(parts.heldout, spec.task.factors))
    assert data.code_sizes == spec.encoding.code_sizes(spec.task.factors)
    assert len(data.codes) == len(data.images) == spec.sampling.count(spec.task, spec.holdout)


def test_two_penalties_do_not_share_random_numbers(tiny_spec):
    drawn = []

    @cs.register("drawing")
    class Drawing(cs.Penalty):
        def start(self, data):
            drawn.append(torch.rand(4, generator=data.rng).tolist())
            return lambda module, batch: batch.outputs.sum() * 0

    for _ in range(2):
        cs.run(replace(tiny_spec, penalties=(Drawing(), Drawing())))
    assert drawn[:2] == drawn[2:]
    assert drawn[0] != drawn[1]


def test_codes_and_images_stay_what_they_are_for_a_control_that_is_given_images(tiny_spec):
    shapes = []

    @cs.register("looking")
    class Looking(cs.Penalty):
        def loss(self, module, batch):
            shapes.append((batch.codes.shape[1:], batch.images.shape[1:]))
            return batch.outputs.sum() * 0

    cs.run(replace(tiny_spec, decoder=cs.ImageEncoder(width=4), penalties=(Looking(),)))
    assert set(shapes) == {((16,), (1, 8, 8))}


def test_a_penalty_without_a_loss_says_so(tiny_spec):
    @cs.register("empty")
    class Empty(cs.Penalty):
        pass

    with pytest.raises(cs.RunFailed, match="Empty implements neither loss nor start"):
        cs.run(replace(tiny_spec, penalties=(Empty(),)))
