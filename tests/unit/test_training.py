"""Training a module on data in memory."""

import itertools
import math
import threading
import time

import pytest
import torch
from pydantic import ValidationError
from torch import nn

import composcope as cs
from composcope import training
from composcope.runs.machine import using_threads

STILL = {"weight_decay": 0.0}


class Number(nn.Module):
    """A module with one parameter, which it outputs for any input."""

    def __init__(self, value=0.0):
        super().__init__()
        self.value = nn.Parameter(torch.tensor(value))

    def forward(self, inputs):
        return self.value.expand(len(inputs), 1)


def linear(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))


@pytest.fixture
def data():
    rng = torch.Generator().manual_seed(0)
    inputs = torch.rand(20, 3, generator=rng)
    return inputs, inputs @ torch.rand(3, 2, generator=rng)


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def test_loss_falls(data):
    trained = cs.train(linear(), *data, cs.Training(epochs=40, batch=5, lr=0.01))
    losses = [row["loss"] for row in trained.curve]
    assert losses[-1] < 0.1 * losses[0]


def test_curve_has_one_row_per_epoch(data):
    trained = cs.train(linear(), *data, cs.Training(epochs=3, batch=8))
    assert [(row["epoch"], row["step"]) for row in trained.curve] == [(1, 3), (2, 6), (3, 9)]


def test_steps_end_in_the_middle_of_an_epoch(data):
    trained = cs.train(linear(), *data, cs.Training(steps=4, batch=8))
    assert [(row["epoch"], row["step"]) for row in trained.curve] == [(1, 3), (2, 4)]


def test_every_sample_is_used_once_per_epoch():
    seen = []

    class Recorder(Number):
        def forward(self, inputs):
            seen.extend(inputs.flatten().tolist())
            return super().forward(inputs)

    inputs = torch.arange(10.0)[:, None]
    cs.train(Recorder(), inputs, inputs, cs.Training(epochs=2, batch=4))
    assert sorted(seen[:10]) == sorted(seen[10:]) == list(range(10))
    assert seen[:10] != seen[10:]
    assert seen[:10] != list(range(10))


def test_loss_is_the_mean_squared_error_plus_l1_times_the_mean_absolute_error():
    inputs, targets = torch.zeros(4, 1), torch.tensor([[1.0], [2.0], [3.0], [6.0]])
    rows = [
        cs.train(Number(), inputs, targets, cs.Training(steps=1, batch=4, l1=l1)).curve[0]["loss"] for l1 in (0.0, 0.5)
    ]
    assert rows == pytest.approx([50 / 4, 50 / 4 + 0.5 * 12 / 4])


def test_l1_pulls_towards_the_median_and_mse_towards_the_mean():
    inputs, targets = torch.zeros(5, 1), torch.tensor([[0.0], [0.0], [0.0], [0.0], [1.0]])
    ends = []
    for l1 in (0.0, 10.0):
        module = Number(0.5)
        cs.train(module, inputs, targets, cs.Training(steps=600, batch=5, lr=0.01, l1=l1, schedule="cosine", **STILL))
        ends.append(module.value.item())
    assert ends == pytest.approx([0.2, 0.0], abs=0.02)


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_learning_rate_follows_the_schedule(schedule):
    """Far from its target, the length of every Adam step equals the learning rate."""
    values = [0.0]
    cs.train(
        Number(),
        torch.zeros(1, 1),
        torch.full((1, 1), 1e4),
        cs.Training(steps=10, batch=1, lr=0.1, schedule=schedule, **STILL),
        on_step=lambda step, module: values.append(module.value.item()),
    )
    steps = [after - before for before, after in itertools.pairwise(values)]
    cosine = [0.1 * 0.5 * (1 + math.cos(math.pi * step / 10)) for step in range(10)]
    assert steps == pytest.approx([0.1] * 10 if schedule == "constant" else cosine, rel=1e-3)


def test_the_plateau_halves_the_rate_after_more_than_five_epochs_without_progress():
    """The loss of a number whose target is far away falls by less than a ten-thousandth per step: a plateau."""
    values, settings = [0.0], cs.Training(steps=20, batch=1, lr=0.1, schedule="plateau", **STILL)
    cs.train(
        Number(),
        torch.zeros(1, 1),
        torch.full((1, 1), 1e5),
        settings,
        on_step=lambda step, module: values.append(module.value.item()),
    )
    steps = [after - before for before, after in itertools.pairwise(values)]
    assert steps == pytest.approx([0.1] * 7 + [0.05] * 6 + [0.025] * 6 + [0.0125], rel=1e-2)


def test_the_plateau_ends_at_the_smallest_rate_and_never_raises_it():
    for lr, expected in ((1e-3, training.MIN_RATE), (1e-8, 1e-8)):
        rate = training._Rate(cs.Training(lr=lr, schedule="plateau"), 1)
        for _ in range(200):
            rate.end_epoch(1.0)
        assert rate.at(0) == expected


def test_validation_samples_are_not_trained_on_and_their_loss_is_in_the_curve():
    seen, inputs = [], torch.arange(25.0)[:, None]

    class Recorder(Number):
        def forward(self, given):
            if self.training:
                seen.extend(given.flatten().tolist())
            return super().forward(given)

    settings = cs.Training(epochs=2, batch=4, lr=1e-9, validation=0.1)
    trained = cs.train(Recorder(), inputs, inputs, settings)
    assert settings.total_steps(25) == trained.curve[-1]["step"] == 2 * 6
    assert sorted(seen[:23]) == sorted(seen[23:])
    left = set(range(25)) - set(seen)
    assert len(left) == 2
    assert trained.curve[0]["validation"] == pytest.approx(sum(value**2 for value in left) / 2, rel=1e-3)


def test_a_validation_share_of_no_sample_is_refused():
    with pytest.raises(ValueError, match=r"validation: a share of 0\.1 of 5 samples"):
        cs.Training(validation=0.1).check(5)


def test_gradients_are_clipped_to_a_norm():
    """Adam's first step has one length whatever the gradient's, so the second tells: 1 after 1e3, or 1 after 1."""
    ends = []
    for clip in (None, 1.0):
        module, slopes = Number(0.0), iter((1e3, 1.0))
        settings = cs.Training(steps=2, batch=1, lr=0.1, clip=clip, **STILL)

        def loss(module, inputs, targets, rng, slopes=slopes):
            return next(slopes) * module.value

        cs.train(module, torch.zeros(1, 1), torch.full((1, 1), 10.0), settings, loss=loss)
        ends.append(module.value.item())
    assert ends[1] == pytest.approx(-0.2, rel=1e-3)
    assert ends[0] > -0.19


def test_weight_decay_shrinks_weights():
    """AdamW: value <- value (1 - lr decay) where the gradient is zero."""
    module = Number(1.0)
    with torch.no_grad():
        targets = module(torch.zeros(1, 1)).clone()
    cs.train(module, torch.zeros(1, 1), targets, cs.Training(steps=1, batch=1, lr=0.1, weight_decay=0.5))
    assert module.value.item() == pytest.approx(1 - 0.1 * 0.5)


def test_penalties_are_added_to_the_loss():
    class Pull(cs.Penalty):
        def loss(self, module):
            return 3 * module.value.square()

    inputs, targets = torch.zeros(1, 1), torch.ones(1, 1)
    trained = cs.train(Number(2.0), inputs, targets, cs.Training(steps=1, batch=1), penalties=(Pull(),))
    assert trained.curve[0]["loss"] == pytest.approx(1)
    assert trained.curve[0]["penalty"] == pytest.approx(3 * 4)


def test_a_large_penalty_does_not_count_as_divergence():
    class Constant(cs.Penalty):
        def loss(self, module):
            return 100 + 0 * module.value

    inputs, targets = torch.zeros(4, 1), torch.tensor([[0.0], [0.0], [0.0], [0.1]])
    cs.train(Number(), inputs, targets, cs.Training(epochs=2), penalties=(Constant(),))


def test_targets_of_zero_do_not_count_as_divergence():
    module, inputs = Number(0.5), torch.zeros(4, 1)
    trained = cs.train(module, inputs, torch.zeros(4, 1), cs.Training(epochs=3))
    assert trained.curve[-1]["loss"] < trained.curve[0]["loss"]


def test_weights_depend_on_the_seed_only(data):
    weights = [cs.train(linear(), *data, cs.Training(epochs=3, batch=4), seed=seed).weights for seed in (0, 0, 1)]
    assert same(weights[0], weights[1])
    assert not same(weights[0], weights[2])


def test_snapshots_are_the_weights_of_a_shorter_run(data):
    long = cs.train(linear(), *data, cs.Training(steps=12, batch=8, snapshots=(4, 7)))
    assert set(long.snapshots) == {4, 7}
    for step, snapshot in long.snapshots.items():
        assert same(snapshot, cs.train(linear(), *data, cs.Training(steps=step, batch=8)).weights)


def test_callbacks_run_after_each_step_and_epoch_and_change_nothing(data):
    steps, rows = [], []
    trained = cs.train(
        linear(),
        *data,
        cs.Training(epochs=2, batch=8),
        on_step=lambda step, module: steps.append(step),
        on_epoch=lambda row, module: rows.append(row),
    )
    assert steps == [1, 2, 3, 4, 5, 6]
    assert rows == trained.curve
    assert same(trained.weights, cs.train(linear(), *data, cs.Training(epochs=2, batch=8)).weights)


def test_cpu_seconds_are_those_of_the_training_thread_alone(data):
    """Neither waiting nor another thread of the process counts; what the training thread computes does."""
    stop = threading.Event()
    other = threading.Thread(target=lambda: [sum(range(1000)) for _ in iter(stop.is_set, True)])
    other.start()
    try:
        waiting = cs.train(linear(), *data, cs.Training(steps=3), on_step=lambda step, module: time.sleep(0.2))
    finally:
        stop.set()
        other.join()
    assert waiting.seconds > 0.6
    assert 0 < waiting.cpu_seconds < 0.4
    before = time.thread_time()
    result = cs.train(linear(), *data, cs.Training(steps=30))
    assert 0 < result.cpu_seconds <= time.thread_time() - before


def test_cpu_seconds_include_helper_threads(data):
    """With several threads the whole process is counted, since they do part of the work."""

    def work(step, module):
        helper = threading.Thread(target=lambda: sum(range(10**6)))
        helper.start()
        helper.join()

    with using_threads(2):
        thread_start, process_start = time.thread_time(), time.process_time()
        result = cs.train(linear(), *data, cs.Training(steps=5), on_step=work)
        own, whole = time.thread_time() - thread_start, time.process_time() - process_start
    assert own < result.cpu_seconds <= whole


def test_weights_are_a_copy(data):
    module = linear()
    trained = cs.train(module, *data, cs.Training(steps=1))
    before = {name: value.clone() for name, value in trained.weights.items()}
    for parameter in module.parameters():
        parameter.data.zero_()
    assert same(trained.weights, before)


def test_module_ends_in_eval_mode(data):
    module = linear()
    cs.train(module, *data, cs.Training(steps=1))
    assert not module.training


def test_global_random_state_is_unchanged(data):
    module = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2))
    torch.manual_seed(5)
    before = torch.get_rng_state()
    cs.train(module, *data, cs.Training(steps=3))
    assert torch.equal(torch.get_rng_state(), before)


def test_dropout_is_seeded(data):
    weights = []
    for noise in (1, 2):
        torch.manual_seed(7)
        module = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2))
        torch.manual_seed(noise)
        weights.append(cs.train(module, *data, cs.Training(steps=3)).weights)
    assert same(*weights)


@pytest.mark.parametrize("settings", [{"lr": 1e30}, {"lr": 1e8}], ids=str)
def test_divergence_is_a_failed_run(settings, data):
    with pytest.raises(cs.RunFailed, match="diverged"):
        cs.train(linear(), *data, cs.Training(epochs=20, **settings))


def test_nan_target_is_a_failed_run(data):
    inputs, targets = data
    targets[3, 1] = torch.nan
    with pytest.raises(cs.RunFailed, match="diverged: loss nan in epoch 1"):
        cs.train(linear(), inputs, targets, cs.Training(epochs=2))


def test_wrong_shape_is_reported(data):
    inputs, targets = data
    with pytest.raises(cs.RunFailed, match=r"\(20, 2\) where the targets are \(20, 1\)"):
        cs.train(linear(), inputs, targets[:, :1], cs.Training(steps=1))


def test_default_is_fifty_epochs():
    assert cs.Training().epochs == 50
    assert cs.Training(steps=10).epochs is None
    assert cs.Training() == cs.Training(epochs=50)


def test_epochs_or_steps_not_both():
    with pytest.raises(ValidationError, match="give one of them, not both"):
        cs.Training(epochs=3, steps=4)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epochs", 0),
        ("epochs", -1),
        ("steps", 0),
        ("batch", 0),
        ("batch", -1),
        ("lr", 0.0),
        ("lr", -1e-3),
        ("lr", float("nan")),
        ("lr", float("inf")),
        ("weight_decay", -1.0),
        ("l1", -1.0),
        ("schedule", "linear"),
        ("clip", 0.0),
        ("validation", -0.1),
        ("validation", 1.0),
        ("snapshots", (0,)),
        ("batch", 1.5),
        ("batch", True),
    ],
)
def test_bad_field_is_named(field, value):
    with pytest.raises(ValidationError, match=field):
        cs.Training(**{field: value})


def test_frozen_parameters_stay():
    module = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    module[0].requires_grad_(False)
    before = module[0].weight.clone()
    cs.train(module, torch.randn(8, 2), torch.randn(8, 1), cs.Training(steps=3, weight_decay=0.5))
    assert torch.equal(module[0].weight, before)
