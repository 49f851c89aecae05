"""What is drawn in the gap compared with known answers, figure 9 and claims 16 and 17."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from composcope.diagnosis.layers import Geometry, LayerDiagnosis
from composcope.measures.geometry import factorization, volume_summary
from composcope.measures.superposition import edge_blend
from composcope.papers.forced_rendering import rotation
from composcope.papers.forced_rendering.base import PAPER, TINY
from composcope.papers.forced_rendering.rotation import figures
from composcope.papers.forced_rendering.rotation.claims import (
    blend_correlation,
    blend_to_edge,
    blend_to_truth,
    largest_pace,
    late_pace,
    mean_pace,
    smallest_pace,
)
from composcope.papers.forced_rendering.rotation.drawing import shown_angles
from composcope.papers.forced_rendering.rotation.figures import gap, in_gap, pace
from composcope.runs.run import Run
from composcope.study.claim import UNDEFINED, Excluded
from composcope.tasks.rotation import RotationTask

from .judging import effects, judged
from .made import made, made_run, picture

# 10 degrees apart: 160, 170, 180 and 190 are held out, 150 and 200 are seen
SPEC = replace(gap(TINY)["rotation"][0], task=RotationTask(angles=36))
(PANEL,) = rotation.PANELS


def drawing(images: torch.Tensor) -> Run:
    """A run that was never trained and draws these images over the grid, at other angles the truth."""

    def draw(self: Run, latents: torch.Tensor | None = None) -> torch.Tensor:
        return images if latents is None else self.spec.task.render(latents)

    return made_run(SPEC, draw=draw)


def truth() -> torch.Tensor:
    return made_run(SPEC).truth.clone()


def blending() -> Run:
    """Draws the truth, and in the gap the blend of its edges."""
    run = made_run(SPEC)
    images, heldout = truth(), run.split.mask
    images[heldout] = edge_blend(run.truth, run.split.latents, heldout, run.spec.task.factors, "angle")
    return drawing(images)


def layer(volume: torch.Tensor, heldout: torch.Tensor, name: str = "conv1") -> LayerDiagnosis:
    metric = volume.square()[:, None, None]
    geometry = Geometry("exact", ("angle",), metric, volume, volume_summary(volume, heldout), factorization(metric))
    return LayerDiagnosis(name, "", (1,), geometry, None, None, None, None)


def test_the_gap_is_what_was_held_out_and_its_edges_are_not():
    outputs = in_gap(blending())
    assert outputs.angles.tolist() == [160, 170, 180, 190]
    at = {angle: truth()[angle // 10] for angle in (150, 180, 200)}
    assert torch.allclose(outputs.blend[0], 0.8 * at[150] + 0.2 * at[200], atol=1e-6)
    assert torch.allclose(outputs.blend[2], 0.4 * at[150] + 0.6 * at[200], atol=1e-6)
    assert torch.equal(outputs.edge[0], at[150])
    assert torch.equal(outputs.edge[2], at[200])
    assert torch.equal(outputs.truth[2], at[180])


def test_a_blending_decoder_differs_from_one_that_generalizes_and_one_that_repeats():
    assert blend_to_truth(blending()) == 0
    assert blend_to_edge(blending()) == 0
    assert blend_correlation(blending()) == pytest.approx(1)
    assert blend_to_truth(drawing(truth() + 0.01)) > 10
    repeats = truth()
    repeats[made_run(SPEC).split.mask] = in_gap(blending()).edge + 0.01
    assert blend_to_edge(drawing(repeats)) > 10


def test_a_ratio_to_an_exact_answer_is_undefined_and_excluded():
    exact = drawing(truth())
    assert math.isnan(blend_to_truth(exact))
    part = rotation.CLAIMS[0].primary[0]
    assert part.values(made({"rotation": [exact]})) == {0: UNDEFINED}


def test_pace_is_1_at_the_seen_median():
    heldout = torch.tensor([False, False, True, True, False])
    speed = torch.tensor([4.0, 4.0, 2.0, 8.0, 4.0]).double()
    assert pace(layer(speed, heldout), heldout).tolist() == [1, 1, 0.5, 2, 1]
    assert pace(layer(7 * speed, heldout), heldout).tolist() == [1, 1, 0.5, 2, 1]


def test_the_pace_of_a_claim_is_that_of_the_hidden_layers(gather):
    heldout = made_run(SPEC).split.mask
    steady = torch.ones(36).double()
    torn, slow = steady.clone(), steady.clone()
    torn[18], slow[18] = 9.0, 0.1
    wild = steady.clone() * 100
    wild[18] = 0
    speeds = {"code": wild, "conv1": torn, "conv2": slow, "image": wild}
    layers = {name: layer(speed, heldout, name) for name, speed in speeds.items()}
    run = made_run(SPEC, diagnosis=replace(gather(gap).first("rotation").diagnosis, layers=layers))
    assert largest_pace(run) == pytest.approx(math.log2(9))
    assert smallest_pace(run) == pytest.approx(math.log2(0.1))
    assert mean_pace(run) == pytest.approx((math.log2(9) + math.log2(0.1)) / 8)  # two layers of four angles
    assert late_pace(run) == pytest.approx(math.log2(0.1) / 4)


def test_no_evidence_has_no_effect():
    for claim in rotation.CLAIMS:
        assert all(part.values(made({"rotation": [], "bump": []})) == {} for part in claim.parts)


def test_claims_have_effects_for_every_seed_of_tiny_runs(gather):
    for claim in rotation.CLAIMS:
        assert all(tuple(values) == (0, 1) for values in effects(claim, gather(claim.plan)).values())
        assert judged(claim, gather(claim.plan)).outcome == "undetermined"  # two seeds are too few


def test_a_blending_decoder_is_judged_and_one_that_did_not_learn_is_excluded():
    (blend, *_), part = rotation.CLAIMS, rotation.CLAIMS[0].primary[0]
    assert part.values(made({"rotation": [blending()]})) == {0: 0.0}

    def blank(self: Run, latents: torch.Tensor | None = None) -> torch.Tensor:
        return self.spec.task.blank(36 if latents is None else len(latents))

    empty = made({"rotation": [made_run(SPEC, draw=blank)]})
    assert all(isinstance(p.values(empty)[0], Excluded) for p in blend.primary)


def test_the_authors_angles_are_trained_on():
    spec = gap(PAPER)["rotation"][0]
    seen = made_run(spec).split.seen[:, 0]
    expected = torch.cat([torch.arange(444), torch.arange(555, 999)]) * 160 / 444
    assert torch.allclose(seen, expected)


def test_the_table_has_a_row_per_seed(gather):
    rows = figures.rotation(gather(gap)).table()
    assert [row["seed"] for row in rows] == [0, 1]
    assert rows[0]["gap MSE"] == pytest.approx(gather(gap).first("rotation").error["heldout_mse"], rel=1e-4)
    assert len({tuple(row) for row in rows}) == 1


def parts_of(figure: Figure) -> tuple[list, list, list]:
    """The axes of the curves, of the embeddings (without the colour bar) and of the images."""
    top, middle, bottom = figure.subfigs
    return top.axes, [axes for axes in middle.axes if axes.get_label() != "<colorbar>"], bottom.axes


def test_figure_9_draws_errors_paces_and_images(gather):
    shown = figures.rotation(gather(gap))
    (errors, paces), embeddings, images = parts_of(picture(PANEL, shown))
    decoder, blank, blend = errors.lines
    drawn = shown.first["rotation"]
    mean = shown.stack("errors", "rotation").double().log().mean(0).exp()
    assert decoder.get_ydata() == pytest.approx(mean.numpy())
    assert blank.get_ydata() == pytest.approx(shown.common["blank"].numpy())
    assert blend.get_xdata().tolist() == drawn["angles in the gap"].tolist()
    assert [line.get_label() for line in paces.lines] == ["untrained", *shown.common["layers"]]
    assert len(embeddings) == len(drawn["embeddings"])
    first = len(images) // 3
    index, gap_of_run = shown_angles(len(drawn["angles in the gap"]))[0], in_gap(gather(gap).first("rotation"))
    for row, expected in enumerate((gap_of_run.truth, gap_of_run.outputs, gap_of_run.blend)):
        assert np.array_equal(images[row * first].images[0].get_array(), expected[index][0])
    near = gap_of_run.comparison
    assert images[first].get_xlabel() == f"{near.mse_to_truth[index].item():.4f}"
    assert images[2 * first].get_xlabel() == f"{near.mse_to_blend[index].item():.4f}"


def test_figure_9_says_that_it_shows_principal_components(gather, monkeypatch):
    monkeypatch.setattr(figures, "umap_installed", lambda: False)
    shown = figures.rotation(gather(gap))
    manifold = gather(gap).first("rotation").diagnosis.layers["conv1"].manifold
    embedded = shown.first["rotation"]["embeddings"]
    assert torch.equal(embedded["conv1"]["coordinates"], manifold.coordinates)
    figure = picture(PANEL, shown)
    assert figure.subfigs[1].get_suptitle().startswith("first two principal components")
    _, embeddings, _ = parts_of(figure)
    share = manifold.explained[:2].sum().item()
    assert f"conv1 ({share:.0%})" in [axes.get_title() for axes in embeddings]
    assert embeddings[0].get_xlabel() == "1st component"
    ring, points = embeddings[0].collections
    assert len(ring.get_offsets()) == shown.common["heldout"].sum()
    assert np.allclose(points.get_offsets(), embedded["first"]["coordinates"][:, :2])


def test_figure_9_says_that_it_shows_umap(gather):
    shown = figures.rotation(gather(gap))
    angles, drawn = shown.common["angles"], shown.first["rotation"]
    plane = torch.stack([angles, angles.square()], 1).double()
    umap = {"method": "umap", "coordinates": plane, "explained": None}
    embedded = dict.fromkeys(drawn["embeddings"], umap)
    figure = picture(PANEL, replace(shown, first={"rotation": {**drawn, "embeddings": embedded}}))
    assert figure.subfigs[1].get_suptitle().startswith("UMAP of each layer")
    _, embeddings, _ = parts_of(figure)
    assert [axes.get_title() for axes in embeddings] == list(embedded)
    assert np.allclose(embeddings[0].collections[1].get_offsets(), plane)


def test_umap_embeds_every_layer_with_the_settings_of_the_paper(gather):
    umap = pytest.importorskip("umap")
    run = gather(gap).first("rotation")
    layers = ["first", "image"]
    embeddings = figures.embeddings(run, layers)
    assert [embedding.method for embedding in embeddings.values()] == ["umap", "umap"]
    settings = {"n_neighbors": 15, "min_dist": 0.1, "random_state": 42, "n_jobs": 1}
    expected = umap.UMAP(**settings).fit_transform(run.draw().flatten(1).numpy())
    assert np.allclose(embeddings["image"].coordinates, expected, atol=1e-3)
