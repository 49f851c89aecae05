"""The overview of the cures at the tiny preset."""

import numpy as np
import pytest
import torch

from composcope.decoders.tokens import Pixelwise
from composcope.papers.forced_rendering.base import PAPER, QUICK, TINY
from composcope.papers.forced_rendering.cures import (
    PANELS,
    SHOWN,
    blocks,
    cure_table,
    cures,
    every_block,
)
from composcope.papers.forced_rendering.drawing_cures import grey_range
from composcope.study.drawing import MARK

from .made import picture


@pytest.mark.parametrize("preset", [QUICK, PAPER, TINY], ids=lambda preset: preset.name)
def test_the_runs_of_a_block_can_stand_below_one_truth(preset):
    for block in blocks(preset):
        worlds = {(str(spec.task), str(spec.holdout)) for specs in block.values() for spec in specs}
        assert len(worlds) == 1


def test_one_kind_of_run_draws_pixel_by_pixel():
    assert all(isinstance(spec.decoder, Pixelwise) for spec in every_block(TINY)["pixel by pixel"])


def test_the_overview_has_held_out_images_of_every_run(gather):
    numbers = cures(gather(every_block))
    for block, plan in zip(numbers.common["blocks"], blocks(TINY), strict=True):
        spec = next(iter(plan.values()))[0]
        assert list(block["images"]) == list(plan)
        assert len(block["points"]) == SHOWN
        assert spec.holdout.contains(block["points"]).all()
        assert torch.equal(block["truth"], spec.task.render(block["points"]))
    assert [row["run"] for row in cure_table(numbers)] == list(every_block(TINY))


def test_the_overview_draws_a_row_per_run_with_its_accuracy(gather):
    numbers = cures(gather(every_block))
    figure = picture(PANELS[0], numbers)
    rows = [figure.axes[start : start + SHOWN] for start in range(0, len(figure.axes), SHOWN)]
    labels = [label for block in numbers.common["blocks"] for label in ("truth", *block["images"])]
    assert [row[0].get_ylabel() for row in rows] == labels
    first, truth = rows[1], rows[0]
    block = numbers.common["blocks"][0]
    for axes, image, (x, y) in zip(first, block["images"][labels[1]], block["points"].tolist(), strict=True):
        assert np.array_equal(axes.images[0].get_array(), image[0])
        (plus,) = axes.lines
        assert (plus.get_xydata()[0].tolist(), plus.get_color()) == ([x, y], MARK)
    assert not any(axes.lines for axes in truth)
    accuracies = numbers.column("accuracy", labels[1])
    assert [text.get_text() for text in first[-1].texts] == [f"{sum(accuracies) / len(accuracies):.0%}"]


def test_grey_range_widens_for_more_than_a_few_pixels():
    assert grey_range(torch.full((1, 1, 4, 4), 0.5)) == (0, 1)
    assert grey_range(torch.full((1, 1, 4, 4), 3.0)) == (0, 3)
    single = torch.full((1, 1, 10, 10), 0.5)
    single[0, 0, 0, 0] = 9.0
    assert grey_range(single) == (0, 1)
