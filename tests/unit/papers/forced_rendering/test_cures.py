"""The overview of the cures at the tiny preset."""

import pytest
import torch

from composcope.experiments.run import run as train
from composcope.experiments.store import Store
from composcope.figures.cures import PANELS
from composcope.paper.cures import SHOWN, cures, groups, plan
from composcope.paper.evidence import Evidence, Known
from composcope.paper.preset import PAPER, QUICK, TINY


@pytest.mark.parametrize("preset", [QUICK, PAPER, TINY], ids=lambda preset: preset.name)
def test_the_runs_of_a_block_can_stand_under_one_truth(preset):
    for group in groups(preset).values():
        worlds = {(str(spec.task), str(spec.holdout)) for specs in group.values() for spec in specs}
        assert len(worlds) == 1


def test_the_overview_shows_held_out_images_of_every_run(tmp_path):
    store = Store(tmp_path / "runs")
    for spec in (spec for specs in plan(TINY).values() for spec in specs):
        train(spec, store)
    evidence = Evidence(TINY, plan(TINY), Known(store))
    numbers = cures(evidence)
    for block, group in zip(numbers.blocks, groups(TINY).values(), strict=True):
        spec = next(iter(group.values()))[0]
        assert list(block.images) == list(group)
        assert len(block.latents) == SHOWN
        assert spec.holdout.contains(block.latents).all()
        assert torch.equal(block.truth, spec.task.render(block.latents))
    assert [row["run"] for row in numbers.table()] == list(plan(TINY))
    assert PANELS[0].draw(numbers).axes
