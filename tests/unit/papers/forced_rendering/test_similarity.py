"""Figures 1d, 1e and 8 and their numbers, and claims 2, 3 and 15."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from composcope.experiments.run import Run
from composcope.measures.error import shape_correlation
from composcope.measures.superposition import Superposition
from composcope.papers.forced_rendering import similarity
from composcope.papers.forced_rendering.base import base_spec, sizes_of
from composcope.papers.forced_rendering.codes import plan
from composcope.papers.forced_rendering.presets import TINY
from composcope.papers.forced_rendering.similarity import numbers

from .made import drawn, made, made_run, titled

PANEL = {panel.name: panel for panel in similarity.PANELS}
CLAIM = {claim.number: claim for claim in similarity.CLAIMS}


@pytest.fixture(scope="module")
def bump(gather) -> Run:
    return gather(plan.bump_alone).first("bump")


def test_parts_alone_sum_to_what_the_diagnosis_compares(bump):
    held = bump.split.mask.nonzero()[:, 0].tolist()
    x, y = bump.parts_alone(held)
    outputs = bump.spec.task.foreground(bump.draw()[held])
    correlations = shape_correlation(outputs, x + y)
    assert torch.allclose(correlations, bump.diagnosis.superposition.parts.correlations.double(), atol=1e-5)


def test_x_alone_does_not_depend_on_y(bump):
    grid = bump.split.latents
    rows = [row for row in range(len(grid)) if grid[row, 0] == 3]
    x, y = bump.parts_alone(rows)
    assert torch.allclose(x, x[:1].expand_as(x), atol=1e-6)
    assert not torch.allclose(y, y[:1].expand_as(y), atol=1e-6)


def test_figure_1d_shows_images_sums_and_every_codes_scores(gather, bump):
    sums = numbers.sums(gather(plan.all_codes))
    assert bump.spec.holdout.contains(sums.points).all()
    figure = drawn(PANEL["1d"], sums)
    shown = {"decoder\nD(x, y)": sums.drawn, "their sum": sums.x_part + sums.y_part}
    for title, images in shown.items():
        assert np.allclose(titled(figure, title).images[0].get_array(), -images[0, 0])
    (scores,) = (axes for axes in figure.axes if axes.get_ylabel() == "correlation of held-out images")
    assert [label.get_text() for label in scores.get_xticklabels()] == ["bump", "rate", "one-hot", "positional"]
    dots = [line.get_ydata().tolist() for line in scores.lines if line.get_marker() == "o"]
    columns = ("sum of parts", "sum of parts, control", "truth")
    wanted = [[row[column] for row in sums.scores if row["code"] == "rate"] for column in columns]
    assert dots[3:6] == wanted
    assert scores.get_ylim()[0] < min(map(min, dots))  # nothing is drawn outside the axes


def test_true_images_follow_the_product_kernel(bump):
    agreement = numbers.true_agreement(bump)
    assert agreement["product smoothed"] > 0.98
    assert agreement["binary"] < agreement["binary smoothed"] < agreement["product smoothed"]


def test_agreement_is_the_diagnosiss_own(gather, bump):
    heldout = numbers.heldout_similarity(gather(plan.bump_alone))
    for kernel in heldout.kernels:
        expected = bump.diagnosis.kernels.agreement[kernel]
        # Stored cosines are single precision, and those of a barely trained decoder are all nearly 1.
        assert heldout.agreement["cosine", kernel] == pytest.approx(expected, abs=2e-3)
    assert heldout.table()[0]["binary"] == bump.diagnosis.kernels.agreement["binary"]


def test_figure_1e_shows_kernels_above_similarities(gather):
    heldout = numbers.heldout_similarity(gather(plan.bump_alone))
    figure = drawn(PANEL["1e"], heldout)
    matrices = [*heldout.kernels.values(), *heldout.similarities.values()]
    images = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    assert all(np.array_equal(image, matrix) for image, matrix in zip(images, matrices, strict=True))
    label = titled(figure, "decoder: cosine").get_xlabel()
    assert f"binary {heldout.agreement['cosine', 'binary']:.2f}" in label


def test_seen_first_puts_seen_points_first(bump):
    held, gram = bump.split.mask, bump.diagnosis.kernels.cosine
    seen = int((~held).sum())
    ordered = numbers.seen_first(bump, "cosine")
    assert torch.equal(ordered[:seen, :seen], gram[~held][:, ~held])
    assert torch.equal(ordered[seen:, :seen], gram[held][:, ~held])


def test_figure_8_shows_all_matrices_and_where_held_out_points_begin(gather):
    matrices = numbers.matrices(gather(plan.bump_and_rate))
    figure = drawn(PANEL["8"], matrices)
    axes = titled(figure, "rate code: L2 distance")
    assert np.array_equal(axes.images[0].get_array(), matrices.grams["rate"]["l2"])
    assert [line.get_xdata()[0] for line in axes.lines][1] == matrices.seen - 0.5 == 47.5
    score = next(row["blocks, l2"] for row in matrices.scores if row["code"] == "rate")
    assert axes.get_xlabel() == f"block score {score:.3f}"


def test_effects_are_one_per_seed_and_none_without_runs(gather):
    for claim in similarity.CLAIMS:
        evidence, empty = gather(claim.plan), made({key: [] for key in claim.plan(TINY)})
        for part in claim.parts:
            assert tuple(part.effect(evidence)) == sizes_of(TINY).seeds, part.measure
            assert part.effect(empty) == {}, part.measure


def test_claim_2_compares_sums_with_their_control():
    superposition = SimpleNamespace(parts=Superposition(torch.tensor([0.9]), 0.9, 0.25))
    runs = [
        made_run(base_spec(TINY, "bump", 0), diagnosis=SimpleNamespace(superposition=superposition)),
        made_run(base_spec(TINY, "bump", 1), diagnosis=SimpleNamespace(superposition=None)),
    ]
    effects = [part.effect(made({"bump": runs})) for part in CLAIM[2].parts]
    assert effects == [{0: 0.9}, {0: pytest.approx(0.65)}]


def test_claim_3_subtracts_what_true_images_have(bump):
    agreement = {"binary": 0.5, "binary smoothed": 0.75, "product smoothed": 0.5}
    rows = torch.arange(len(bump.split.latents))
    run = made_run(bump.spec, diagnosis=SimpleNamespace(kernels=SimpleNamespace(agreement=agreement, rows=rows)))
    effects = [part.effect(made({"bump": [run]}))[0] for part in CLAIM[3].parts]
    assert effects == pytest.approx([0.5 - numbers.true_agreement(bump)["binary"], 0.75, 0.25])
