"""One definition each: errors, true geometry, reference kernels, parts alone, blocks of factors."""

import pytest
import torch

import composcope as cs
from composcope.diagnosis import diagnose
from composcope.diagnosis.errors import mean_errors, point_errors
from composcope.diagnosis.layers import true_geometry
from composcope.diagnosis.points import grid_split, points_of
from composcope.diagnosis.structure import reference_kernels, shared_blocks
from composcope.diagnosis.superposition import code_columns, inferred_columns, parts_alone
from composcope.measures.geometry import grid_metric, volume_element
from composcope.measures.kernels import binary_kernel, product_kernel

TASK, HOLDOUT = cs.BumpTask(10, sigma=1.5), cs.Square(3, 7)


def test_the_truth_has_no_error_and_a_blank_image_that_of_a_blank():
    parts = grid_split(TASK, HOLDOUT)
    truth = TASK.render(parts.latents)
    right = mean_errors(point_errors(TASK, truth, truth, parts.latents), parts.mask)
    assert (right["seen_mse"], right["heldout_mse"], right["accuracy"], right["seen_accuracy"]) == (0, 0, 1, 1)
    blank = point_errors(TASK, TASK.blank(len(truth)), truth, parts.latents)
    assert torch.allclose(blank.share, torch.ones(100, dtype=torch.float64))
    assert mean_errors(blank, parts.mask)["blank_mse"] == pytest.approx((1 - truth[parts.mask]).square().mean().item())
    nothing = torch.zeros(100, dtype=torch.bool)
    seen_only = mean_errors(blank, nothing)
    assert seen_only["heldout_mse"] is None
    assert seen_only["blank_mse"] == seen_only["seen_mse"]


def test_true_geometry_is_that_of_a_perfect_decoder():
    task = cs.BumpTask(24, sigma=3.0)
    parts = grid_split(task, cs.Square(9, 14))
    exact = true_geometry(task, parts.latents, parts.mask)
    rough = volume_element(grid_metric(task.render(parts.latents), task.factors))
    assert exact.method == "exact"
    assert exact.axes == ("x", "y")
    assert torch.allclose(exact.volume[parts.mask], rough[parts.mask], rtol=0.1)
    assert exact.volumes.gap is not None


def test_reference_kernels_have_the_width_of_what_is_drawn():
    grid = TASK.grid()
    kernels = reference_kernels(TASK, grid)
    assert torch.equal(kernels["binary"], binary_kernel(grid, TASK.factors))
    assert torch.equal(kernels["product smoothed"], product_kernel(grid, TASK.factors, 1.5))
    bright = cs.BumpTask(4, sigma=1.5, brightness=(0.25, 0.5))
    widths = {"x": 1.5, "y": 1.5, "brightness": 0.25}
    expected = product_kernel(bright.grid(), bright.factors, widths)
    assert torch.equal(reference_kernels(bright, bright.grid())["product smoothed"], expected)


def test_parts_alone_keep_one_factor_and_the_mean_of_the_others():
    parts = grid_split(TASK, HOLDOUT)
    codes = cs.Bump().encode(parts.latents, TASK.factors)
    columns = code_columns(cs.Bump(), TASK.factors)
    assert all(
        torch.equal(a, b) for a, b in zip(columns, inferred_columns(codes, parts.latents, TASK.factors), strict=True)
    )
    seen = []

    def draw(codes):
        seen.append(codes)
        return torch.zeros(len(codes), 1, 2, 2)

    rows = torch.tensor([35, 46])
    assert len(parts_alone(draw, codes, columns, parts.mask, rows)) == 2
    mean = codes[~parts.mask].mean(0)
    assert torch.equal(seen[0], torch.cat([codes[rows, :10], mean[10:].expand(2, -1)], 1))
    assert torch.equal(seen[1], torch.cat([mean[:10].expand(2, -1), codes[rows, 10:]], 1))


def blocks_of(task, images):
    parts = grid_split(task, cs.Box({"x": (2, 3), "brightness": (1.0, 1.0)}))
    return shared_blocks(images, points_of(task, parts, 1024, torch.Generator()))


def test_factors_that_act_together_share_a_block():
    task = cs.BumpTask(6, brightness=(0.5, 1.0))
    foreground = task.foreground(task.render(task.grid()))
    assert blocks_of(task, foreground) == "x | y | brightness"
    x, y, brightness = task.grid().unbind(1)
    cross = brightness[:, None, None, None] * (x + y**2)[:, None, None, None] * torch.ones(72, 1, 2, 2)
    assert blocks_of(task, cross) == "x, y | brightness"
    noise = torch.rand(72, 1, 3, 3, generator=torch.Generator().manual_seed(0))
    assert blocks_of(task, noise) == "x, y, brightness"


def test_blocks_are_diagnosed_for_three_factors_and_not_for_two():
    task = cs.BumpTask(6, brightness=(0.5, 1.0))
    found = diagnose(cs.MLP(1, 8).build((6, 6, 2), (1, 6, 6)), task, cs.Square(2, 3), cs.Bump())
    assert found.numbers()["blocks"] == {"targets": "x | y | brightness", "outputs": found.more["blocks.outputs"]}
    assert "factors that act together" in found.summary()
    two = diagnose(cs.MLP(1, 8).build((10, 10), (1, 10, 10)), TASK, HOLDOUT, cs.Bump())
    assert two.numbers()["blocks"] == {}
