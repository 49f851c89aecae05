"""The monitor for training loops."""

import pytest
import torch
from torch import nn

import composcope as cs

TASK, HOLDOUT = cs.BumpTask(8), cs.Square(2, 5)


def test_it_records_every_so_many_calls_of_a_plain_loop_and_changes_nothing():
    logged = []
    monitor = cs.Monitor(TASK, HOLDOUT, cs.Bump(), every=4, log=lambda numbers, step: logged.append((step, numbers)))
    module = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 64), nn.Unflatten(1, (1, 8, 8)))
    seen = cs.split(TASK, HOLDOUT).seen
    codes, images = cs.Bump().encode(seen, TASK.factors), TASK.render(seen)
    optimizer = torch.optim.Adam(module.parameters(), 1e-2)

    def losses(watched):
        torch.manual_seed(0)
        module.apply(lambda part: part.reset_parameters() if isinstance(part, nn.Linear) else None)
        for _ in range(9):
            optimizer.zero_grad()
            loss = (module(codes) - images).square().mean()
            loss.backward()
            optimizer.step()
            if watched:
                monitor(module)
            yield loss.item()

    without = list(losses(False))
    optimizer.state.clear()
    assert list(losses(True)) == without  # neither the weights nor the random numbers of training are touched
    assert module.training
    assert [moment.step for moment in monitor.moments] == [0, 4, 8]
    assert [step for step, _ in logged] == [0, 4, 8]
    assert {"heldout_mse", "share/superposer", "factor/x", "seen factor/y"} <= logged[0][1].keys()
    frame = monitor.frame()
    assert frame["step"].tolist() == [0, 4, 8]
    assert frame["seen_mse"].iloc[-1] < frame["seen_mse"].iloc[0]


def test_a_run_can_use_it_and_it_plots(tmp_path):
    spec = cs.Spec(TASK, HOLDOUT, cs.Bump(), cs.MLP(depth=1, width=16), training=cs.Training(epochs=4))
    monitor = cs.Monitor(TASK, HOLDOUT, cs.Bump(), every=3)
    run = cs.run(spec, on_epoch=monitor.on_epoch)
    assert [moment.step for moment in monitor.moments] == [1, 4]
    assert monitor.moments[-1].heldout_mse == pytest.approx(run.error["heldout_mse"], rel=1e-5)
    figure = monitor.plot(tmp_path / "monitor.png", title="an MLP")
    assert (tmp_path / "monitor.png").read_bytes().startswith(b"\x89PNG")
    shares, score, factors = figure.axes
    assert {line.get_label() for line in factors.lines} == {"x", "y"}
    assert [axes.get_xlabel() for axes in (shares, score)] == ["step", "step"]


def test_wrong_use_is_told():
    with pytest.raises(cs.BadInput, match="at least 1"):
        cs.Monitor(TASK, HOLDOUT, cs.Bump(), every=0)
    monitor = cs.Monitor(TASK, cs.Nothing(), cs.Bump())
    with pytest.raises(cs.BadInput, match="nothing to plot"):
        monitor.plot()
    with pytest.raises(cs.BadInput, match="holds out nothing"):
        monitor(cs.MLP(depth=1).build((8, 8), (1, 8, 8)))
