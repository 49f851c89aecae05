"""What is drawn in the gap, against answers that are known; and figure 9 at the tiny preset."""

from dataclasses import replace

import pytest
import torch

from composcope.diagnosis.layers import Geometry, LayerDiagnosis
from composcope.experiments.run import run as train
from composcope.experiments.store import Store
from composcope.figures.rotation import PANELS
from composcope.measures.geometry import factorization, volume_summary
from composcope.measures.superposition import edge_blend
from composcope.paper.claims.rotation import (
    CLAIMS,
    blend_to_edge,
    blend_to_truth,
    largest_pace,
    least_pace,
    likeness,
)
from composcope.paper.evidence import Evidence, Known, Run
from composcope.paper.ledger import judge
from composcope.paper.preset import TINY
from composcope.paper.rotation import gap, in_gap, pace, rotation

ANGLES = replace(TINY, angles=36)  # 10 degrees: 170, 180 and 190 are withheld, 160 and 200 seen
EFFECTS = (blend_to_truth, blend_to_edge, likeness, largest_pace, least_pace)


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("runs"))
    for spec in gap(TINY)["rotation"]:
        train(spec, store)
    return Known(store)


def made_run(**answers) -> Run:
    """A run that was never trained; what it is asked is given."""
    made = Run(Store("nowhere"), gap(ANGLES)["rotation"][0])
    made.__dict__.update(answers)
    return made


def made(*runs: Run) -> Evidence:
    evidence = Evidence(ANGLES, gap(ANGLES), Known(Store("nowhere")))
    evidence._runs["rotation"].extend(runs)
    return evidence


def blending() -> Run:
    """Draws the truth, and in the gap the blend of its edges."""
    run = made_run()
    images = run.truth.clone()
    images[run.parts.mask] = edge_blend(run.truth, run.parts.latents, run.parts.mask, run.spec.task.factors, "angle")
    return made_run(images=images)


def layer(volume: torch.Tensor, heldout: torch.Tensor, name: str = "conv1") -> LayerDiagnosis:
    metric = volume.square()[:, None, None]
    geometry = Geometry("exact", ("angle",), metric, volume, volume_summary(volume, heldout), factorization(metric))
    return LayerDiagnosis(name, "", (1,), geometry, None, None, None, None)


def test_the_gap_is_what_was_withheld_and_its_edges_are_not():
    found = in_gap(blending())
    assert found.angles.tolist() == [170, 180, 190]
    at = {angle: made_run().truth[angle // 10] for angle in (160, 180, 200)}
    assert torch.allclose(found.blend[1], (at[160] + at[200]) / 2)
    assert torch.allclose(found.blend[0], 0.75 * at[160] + 0.25 * at[200])
    assert torch.equal(found.edge[0], at[160])
    assert torch.equal(found.edge[2], at[200])
    assert torch.equal(found.truth[1], at[180])


def test_a_blending_decoder_is_told_from_one_that_knows_and_one_that_repeats():
    evidence = made(blending())
    assert blend_to_truth(evidence) == [0]
    assert blend_to_edge(evidence) == [0]
    assert likeness(evidence) == [pytest.approx(1)]
    truth = made_run().truth
    knows = made(made_run(images=truth + 0.01))
    assert blend_to_truth(knows)[0] > 10
    found = in_gap(blending())
    repeats = truth.clone()
    repeats[made_run().parts.mask] = found.edge + 0.01
    assert blend_to_edge(made(made_run(images=repeats)))[0] > 10


def test_an_exact_answer_raises_nothing():
    evidence = made(made_run(images=made_run().truth))
    assert blend_to_truth(evidence) == [float("inf")]


def test_pace_is_1_at_the_seen_median():
    held = torch.tensor([False, False, True, True, False])
    speed = torch.tensor([4.0, 4.0, 2.0, 8.0, 4.0]).double()
    assert pace(layer(speed, held), held).tolist() == [1, 1, 0.5, 2, 1]
    assert pace(layer(7 * speed, held), held).tolist() == [1, 1, 0.5, 2, 1]


def test_the_pace_of_a_claim_is_the_worst_of_the_hidden_layers(known):
    held = made_run().parts.mask
    steady = torch.ones(36).double()
    torn, slow = steady.clone(), steady.clone()
    torn[18], slow[18] = 9.0, 0.1
    wild = steady.clone() * 100
    wild[18] = 0
    speeds = {"code": wild, "conv1": torn, "conv2": slow, "image": wild}
    diagnosis = Evidence(TINY, gap(TINY), known).first("rotation").diagnosis
    layers = {name: layer(speed, held, name) for name, speed in speeds.items()}
    evidence = made(made_run(diagnosis=replace(diagnosis, layers=layers)))
    assert largest_pace(evidence) == [9.0]
    assert least_pace(evidence) == [pytest.approx(0.1)]


def test_no_evidence_has_no_effect():
    for effect in EFFECTS:
        assert list(effect(made())) == []


def test_figure_9_is_drawn_from_its_numbers(known):
    evidence = Evidence(TINY, gap(TINY), known)
    numbers = rotation(evidence)
    rows = numbers.table()
    assert [row["seed"] for row in rows] == [0, 1]
    assert rows[0]["gap MSE"] == pytest.approx(evidence.first("rotation").error["heldout_mse"], rel=1e-4)
    assert len({tuple(row) for row in rows}) == 1
    assert PANELS[0].draw(numbers).axes or PANELS[0].draw(numbers).subfigs
    for claim in CLAIMS:
        assert judge(claim, evidence).outcome == "undetermined"  # two seeds are too few
