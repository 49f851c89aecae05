"""Figures 1d, 1e and 8 and their numbers, and claims 2, 3 and 15."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from composcope.measures.error import shape_correlation
from composcope.measures.superposition import Superposition
from composcope.papers.forced_rendering import similarity
from composcope.papers.forced_rendering.base import PAPER, SIZES, TINY, base_spec
from composcope.papers.forced_rendering.similarity import claims, figures
from composcope.runs.run import Run
from composcope.study.claim import UNDEFINED, UNLEARNED, Excluded

from .made import made, made_run, picture, titled

PANEL = {panel.name: panel for panel in similarity.PANELS}
CLAIM = {claim.number: claim for claim in similarity.CLAIMS}


@pytest.fixture(scope="module")
def bump(gather) -> Run:
    return gather(figures.sums).first("bump")


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
    sums = figures.sum_scores(gather(figures.all_sums))
    shown = sums.first["bump"]
    assert figures.SIZES["tiny"].inner.contains(shown["points"]).all()
    figure = picture(PANEL["1d"], sums)
    stacks = {"decoder\nD(x, y)": shown["images"], "their sum": shown["x part"] + shown["y part"]}
    for title, images in stacks.items():
        assert np.allclose(titled(figure, title).images[0].get_array(), -images[0, 0])
    (scores,) = (axes for axes in figure.axes if axes.get_ylabel() == "correlation of held-out images")
    assert [label.get_text() for label in scores.get_xticklabels()] == ["bump", "rate", "one-hot", "positional"]
    dots = [line.get_ydata().tolist() for line in scores.lines if line.get_marker() == "o"]
    columns = ("sum of parts, inner", "sum of parts", "sum of parts, control", "truth")
    wanted = [sums.column(column, "rate") for column in columns]
    assert dots[4:8] == wanted
    assert scores.get_ylim()[0] < min(map(min, dots))  # nothing is drawn outside the axes


def test_true_images_follow_the_product_kernel(bump):
    agreement = figures.true_agreement(bump)
    assert agreement["product smoothed"] > 0.98
    assert agreement["binary"] < agreement["binary smoothed"] < agreement["product smoothed"]


def test_agreement_is_the_diagnosiss_own(gather):
    evidence = gather(figures.short_bump)
    heldout, bump = figures.heldout_similarity(evidence), evidence.first("bump")
    shown = heldout.first["bump"]
    for kernel, agreement in zip(shown["kernels"], shown["agreement"]["cosine"], strict=True):
        expected = bump.diagnosis.kernels.agreement[kernel]
        # Stored cosines are single precision, and those of a barely trained decoder are all nearly 1.
        assert agreement == pytest.approx(expected, abs=2e-3)
    assert heldout.rows[0]["binary"] == bump.diagnosis.kernels.agreement["binary"]


def test_figure_1e_shows_kernels_above_similarities(gather):
    heldout = figures.heldout_similarity(gather(figures.short_bump))
    figure = picture(PANEL["1e"], heldout)
    shown = heldout.first["bump"]
    matrices = [*shown["kernels"].values(), *shown["similarities"].values()]
    images = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    assert all(np.array_equal(image, matrix) for image, matrix in zip(images, matrices, strict=True))
    label = titled(figure, "decoder: cosine").get_xlabel()
    assert f"binary {shown['agreement']['cosine'][0]:.2f}" in label


def test_seen_first_puts_seen_points_first(bump):
    held, gram = bump.split.mask, bump.diagnosis.kernels.cosine
    seen = int((~held).sum())
    ordered = figures.seen_first(bump, "cosine")
    assert torch.equal(ordered[:seen, :seen], gram[~held][:, ~held])
    assert torch.equal(ordered[seen:, :seen], gram[held][:, ~held])


def test_large_matrices_are_drawn_at_every_second_x_and_y(bump, monkeypatch):
    monkeypatch.setattr(figures, "MAX_POINTS", 16)
    even = (bump.split.latents % 2 == 0).all(1)
    held, gram = bump.split.mask, bump.diagnosis.kernels.cosine
    drawn = figures.seen_first(bump, "cosine")
    seen = int((even & ~held).sum())
    assert len(drawn) == 16
    assert torch.equal(drawn[:seen, seen:], gram[even & ~held][:, even & held])


def test_figure_8_shows_all_matrices_and_where_held_out_points_begin(gather):
    matrices = figures.matrices(gather(figures.short))
    figure = picture(PANEL["8"], matrices)
    above, first, axes = figure.axes[2], figure.axes[4], figure.axes[6]  # a row per code, four matrices in each
    assert (above.get_title(), first.get_ylabel()) == ("L2 distance", "rate code")
    assert np.array_equal(axes.images[0].get_array(), matrices.first["rate"]["l2"])
    assert [(patch.get_x(), patch.get_width()) for patch in axes.patches] == [(-0.5, 48), (47.5, 16)]
    share = matrices.column("variance explained by blocks, l2", "rate")[0]
    assert axes.get_xlabel() == f"blocks explain {share:.0%}"


def test_effects_are_one_per_seed_and_none_without_runs(gather):
    for claim in similarity.CLAIMS:
        evidence, empty = gather(claim.plan), made({key: [] for key in claim.plan(TINY)})
        for part in claim.parts:
            assert tuple(part.values(evidence)) == SIZES["tiny"].seeds, part.measure
            assert part.values(empty) == {}, part.measure


def test_runs_are_as_long_as_the_authors():
    sums, short = figures.sums(PAPER)["bump"][0], figures.short(PAPER)["rate"][0]
    assert (sums.sampling.n, sums.training.epochs, short.sampling.n, short.training.epochs) == (
        20000,
        20,
        2000,
        15,
    )


@pytest.fixture
def learned(monkeypatch):
    """Made-up runs have learned what they saw, except those of seed 9."""
    monkeypatch.setattr("composcope.study.claim.training_share", lambda run: 0.5 if run.spec.seed == 9 else 0.01)


@pytest.mark.usefixtures("learned")
def test_claim_2_takes_the_inner_part_of_the_hole_and_compares_sums_with_their_control(bump):
    inside = figures.inner_region(bump, figures.SIZES["tiny"].inner)
    parts = Superposition(torch.where(inside, 0.9, 0.1), 0.3, 0.05)
    answers = {"draw": lambda self, latents=None: bump.spec.task.render(bump.split.latents)}
    runs = [
        made_run(bump.spec, diagnosis=SimpleNamespace(superposition=SimpleNamespace(parts=parts)), **answers),
        made_run(base_spec(TINY, "bump", 1), diagnosis=SimpleNamespace(superposition=None), **answers),
    ]
    runs.append(made_run(base_spec(TINY, "bump", 9), diagnosis=runs[0].diagnosis, **answers))
    effects = [part.values(made({"bump": runs})) for part in CLAIM[2].parts]
    assert {effect.pop(9) for effect in effects} == {UNLEARNED}
    assert {effect.pop(1) for effect in effects[:3]} == {UNDEFINED}
    assert effects[:3] == [{0: pytest.approx(0.9)}, {0: 0.3}, {0: pytest.approx(0.25)}]
    assert effects[3] == {0: 0.0, 1: 0.0}  # true images have one bump
    assert effects[4][0] == pytest.approx(1 - (1 - (5 / 8) ** 2))  # which is where it should be: all but chance


def test_peaks_are_counted_if_strong_and_aligned_if_at_the_true_x_or_y():
    images = torch.zeros(2, 1, 9, 9)
    images[0, 0, 1, 4] = images[0, 0, 4, 7] = 1.0  # at x = 4 and at y = 4
    images[0, 0, 8, 8] = 0.3  # too faint
    images[1, 0, 0, 8] = 1.0  # neither
    found = figures.peaks(images, torch.tensor([[4.0, 4.0], [4.0, 4.0]]))
    assert found.counts.tolist() == [2, 1]
    assert found.several == 0.5
    assert found.aligned == pytest.approx(2 / 3)
    assert found.chance == pytest.approx(1 - (6 / 9) ** 2)


@pytest.mark.usefixtures("learned")
def test_claim_3_subtracts_what_true_images_have_and_excludes_empty_overlaps(bump):
    agreement = {"binary": 0.5, "binary smoothed": 0.75, "product smoothed": 0.5}
    rows = torch.arange(len(bump.split.latents))
    kernels = SimpleNamespace(agreement=agreement, rows=rows)
    blank = bump.spec.task.blank(len(rows))
    run = made_run(bump.spec, diagnosis=SimpleNamespace(kernels=kernels), draw=lambda self: blank)
    effects = [part.values(made({"bump": [run]}))[0] for part in CLAIM[3].parts]
    assert effects[:3] == pytest.approx([0.75, 0.25, 0.5 - figures.true_agreement(bump)["binary"]])
    assert effects[3] == claims.EMPTY
    perfect = made_run(bump.spec, diagnosis=SimpleNamespace(kernels=kernels), draw=lambda self: bump.truth)
    assert perfect.draw().shape == blank.shape
    assert CLAIM[3].parts[3].values(made({"bump": [perfect]}))[0] == claims.EMPTY  # a bump is one pixel above 0.7


def test_contrast_of_blocks_is_of_means_and_distances_turn_its_sign():
    held = torch.tensor([False, False, True, True])
    gram = torch.where(held[:, None] == held[None, :], 3.0, 1.0).fill_diagonal_(100.0)
    run = made_run(
        base_spec(TINY, "bump", 0),
        split=SimpleNamespace(mask=held),
        diagnosis=SimpleNamespace(kernels=SimpleNamespace(rows=torch.arange(4), cosine=gram, l2=gram)),
    )
    assert (figures.contrast(run, "cosine"), figures.contrast(run, "l2")) == (0.5, -0.5)
    assert figures.block_contrast(torch.zeros(4, 4), held) is None


def test_variance_of_blocks_sees_blocks_that_differ_in_opposite_directions():
    held = torch.tensor([False] * 3 + [True] * 3)
    gram = torch.full((6, 6), 2.0)
    gram[:3, :3], gram[3:, 3:] = 3.0, 1.0
    gram.fill_diagonal_(100.0)
    assert figures.variance_of_blocks(gram, held) == pytest.approx(1)
    assert figures.block_contrast(gram, held) == 0  # the mean of both blocks is that of the rest
    noise = torch.rand(6, 6, generator=torch.Generator().manual_seed(0)) - 0.5
    noisy = figures.variance_of_blocks(gram + 3 * (noise + noise.T), held)
    assert 0 < noisy < 0.7
    assert figures.variance_of_blocks(torch.ones(6, 6), held) is None
    columns = torch.arange(6.0).repeat(6, 1)  # means 1, 4 and 2.5 of 6, 6 and 18 entries; the variance of 0 to 5
    assert figures.variance_of_blocks(columns, held) == pytest.approx((12 * 1.5**2 / 30) / (35 / 12))


@pytest.mark.parametrize("kind", figures.KINDS)
def test_claim_15_excludes_seeds_of_which_a_matrix_is_empty(kind, monkeypatch):
    contrasts = {("bump", 0): None, ("bump", 1): 0.5, ("bump", 2): None, ("bump", 3): 0.5}
    contrasts |= {("rate", 0): None, ("rate", 1): None, ("rate", 2): 0.5, ("rate", 3): 0.75}
    runs = {code: [made_run(base_spec(TINY, code, seed)) for seed in range(4)] for code in ("bump", "rate")}
    named = {id(run): (code, run.spec.seed) for code, some in runs.items() for run in some}
    found = claims.more_blocks(lambda run, kind: contrasts[named[id(run)]], kind)(made(runs))
    assert [isinstance(found[seed], Excluded) for seed in range(4)] == [True, True, True, False]
    assert found[3] == -0.25
    if kind == figures.OVERLAP:
        assert found[1].reason == "no two images of one of the codes share a pixel above 0.7"
