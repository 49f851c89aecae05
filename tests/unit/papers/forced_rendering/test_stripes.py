"""Figures 4a, 4b, 4d and 7 and their numbers, and claims 10, 11, 13, 14, 22 and 23."""

import numpy as np
import pytest
import torch

from composcope.papers.forced_rendering import stripes
from composcope.papers.forced_rendering.base import QUICK, TINY
from composcope.papers.forced_rendering.base import SIZES as BASE
from composcope.papers.forced_rendering.stripes import claims, figures
from composcope.papers.forced_rendering.stripes.drawing import grey_scale
from composcope.papers.forced_rendering.stripes.figures import Amount, stripes_spec
from composcope.papers.forced_rendering.volumes import evenness_both_ways, evenness_table
from composcope.runs.run import Run
from composcope.study.claim import UNLEARNED, training_share
from composcope.study.drawing import MARK
from composcope.study.plan import label_of

from .judging import effects, judged
from .made import made, made_run, outlines, picture, titles

PANEL = {panel.name: panel for panel in stripes.PANELS}
ALONE = Amount(stripes=True, bumps=0)
HOLE = BASE["tiny"].hole
MOST = figures.SIZES["tiny"].bumps[-1]


def drawing(images: torch.Tensor) -> Run:
    """A run that was never trained and draws these images over the grid."""
    return made_run(stripes_spec(TINY, ALONE, 0), draw=lambda self, latents=None: images)


@pytest.mark.parametrize("preset", [TINY, QUICK], ids=lambda preset: preset.name)
def test_plans_take_their_runs_from_all_amounts(preset):
    base = figures.with_and_without(preset)[figures.ALL_BUMPS]
    every_amount = {**figures.all_amounts(preset), figures.ALL_BUMPS: base}
    for panel in stripes.PANELS:
        assert panel.plan(preset).items() <= every_amount.items()
    assert figures.bumps_alone(preset) not in figures.increasing_bumps(preset)
    most, alone = (every_amount[key(preset)][0].sampling for key in (figures.most_bumps, figures.bumps_alone))
    assert most.bumps == alone.bumps
    assert (most.stripes, alone.stripes) == (None, 0)


def test_samples_are_of_the_training_set(gather):
    samples = figures.samples(gather(PANEL["4a"].plan))
    by_kind: dict[str, list] = {}
    for row in samples.rows:
        by_kind.setdefault(row["kind"], []).append(row)
    counts = {kind: rows[0]["in the training set"] for kind, rows in by_kind.items()}
    assert counts == {"stripes at x": 8, "stripes at y": 8, "bumps": MOST}
    vertical, horizontal = (
        torch.stack([row["image"] for row in by_kind[kind]]) for kind in ("stripes at x", "stripes at y")
    )
    assert torch.equal(vertical, vertical[:, :, :1].expand_as(vertical))
    assert torch.equal(horizontal, horizontal[:, :, :, :1].expand_as(horizontal))
    assert not HOLE.contains(torch.tensor([[float(row["x"]), float(row["y"])] for row in by_kind["bumps"]])).any()
    assert samples.rows[0]["y"] == "any"


def test_figure_4a_draws_the_samples(gather):
    samples = figures.samples(gather(PANEL["4a"].plan))
    figure = picture(PANEL["4a"], samples)
    shown = [axes.images[0].get_array() for axes in figure.axes]
    expected = [row["image"][0].numpy() for row in samples.rows]
    assert np.array_equal(shown, expected)
    labels = [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()]
    assert labels == ["stripes at x\n(8)", "stripes at y\n(8)", f"bumps\n({MOST})"]


def test_a_bump_is_like_the_bump_and_a_cross_like_the_cross():
    run = made_run(stripes_spec(TINY, ALONE, 0))
    cross = run.spec.task.background - figures.cross(run)  # dark
    drawn_bump, drawn_cross = drawing(run.truth), drawing(0.5 * cross + 3)
    assert figures.like_bump(drawn_bump) == pytest.approx(1)
    assert figures.like_cross(drawn_cross) == pytest.approx(1)
    assert figures.like_bump(drawn_cross) == pytest.approx(figures.like_cross(drawn_bump))
    assert claims.cross_over_bump(drawn_cross) == pytest.approx(-claims.cross_over_bump(drawn_bump))
    assert claims.cross_over_bump(drawn_cross) > 0.1


def test_outputs_are_of_held_out_points(gather):
    outputs = figures.outputs(gather(figures.all_amounts))
    assert HOLE.contains(outputs.common["points"]).all()
    assert len(outputs.common["points"]) == 5
    shares = [outputs.of(kind)[0]["share of seen bumps"] for kind in outputs.kinds]
    assert shares == pytest.approx([0, 10 / 48, 20 / 48, 20 / 48])
    truth = made_run(stripes_spec(TINY, ALONE, 0)).truth
    assert outputs.common["bump like cross"] == pytest.approx(figures.like_cross(drawing(truth)))


def test_figure_4b_draws_images_and_a_dot_per_seed(gather):
    outputs = figures.outputs(gather(figures.all_amounts))
    figure = picture(PANEL["4b"], outputs)
    images = [axes for axes in figure.axes if axes.images]
    assert len(images) == 5 * (1 + len(outputs.kinds))
    assert titles(figure) == [f"({x:g}, {y:g})" for x, y in outputs.common["points"].tolist()]
    labels = [axes.get_ylabel() for axes in images if axes.get_ylabel()]
    assert labels == ["truth", "stripes + 0", "stripes + 10", "stripes + 20", "20 bumps"]
    last = outputs.kinds[-1]
    assert np.array_equal(images[-1].images[0].get_array(), outputs.first[last]["images"][-1][0])
    (plus,) = images[-1].lines
    assert (plus.get_marker(), plus.get_color()) == ("+", MARK)
    assert plus.get_xydata()[0].tolist() == outputs.common["points"][-1].tolist()
    assert not images[0].lines  # the truth needs no mark
    bottom = {axes.get_xlabel(): axes.lines for axes in figure.axes if axes.get_xlabel()}
    assert bottom["within 1 pixel"][0].get_xdata().tolist() == outputs.column("held-out accuracy", last)
    assert bottom["MSE / blank's"][0].get_xdata() == pytest.approx(
        np.array(outputs.column("held-out MSE", last)) / outputs.rows[0]["blank MSE"]
    )
    bump, cross, both = bottom["correlation"]
    assert bump.get_xdata().tolist() == outputs.column("correlation with the bump", last)
    assert cross.get_xdata().tolist() == outputs.column("correlation with the cross", last)
    assert both.get_xdata()[0] == outputs.common["bump like cross"]


def test_figure_4d_has_a_row_per_kind_of_run_and_outlines_the_hole(gather):
    even = evenness_both_ways(gather(figures.with_and_without))
    figure = picture(PANEL["4d"], even)
    maps = [axes for axes in figure.axes if axes.images]
    assert len(maps) == 6 * 4 + 1
    assert all(outlines(axes) == [(MARK.lower(), True)] for axes in maps)
    labels = [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel().endswith("\n\ny")]
    kinds = ("stripes + 20", "20 bumps", "all bumps")
    assert labels == [f"{kind}\n{way}\n\ny" for kind in kinds for way in ("differences", "exact")]
    assert [row["runs"] for row in evenness_table(even)][-2:] == ["all bumps, exact", "true images"]
    layer = gather(figures.with_and_without).any_run.diagnosis.layers["conv1"]
    maps = even.first["stripes + 20"]
    for way, geometry in ((", differences", layer.differences), (", exact", layer.geometry)):
        logs = geometry.volume.clamp(min=1e-6).log10().reshape(8, 8)
        relative = logs - logs[~even.common["heldout"]].mean()
        assert torch.allclose(
            maps[f"maps{way}"][even.rows[0]["layers"].index("conv1")].float(), relative.float(), atol=1e-5
        )


def test_every_stripe_is_in_the_set(gather):
    stripe_set = figures.stripe_set(gather(figures.increasing_bumps))
    size = BASE["tiny"].size
    assert len(stripe_set.common["stripes"]) == 2 * size
    assert len({tuple(stripe.flatten().tolist()) for stripe in stripe_set.common["stripes"]}) == 2 * size


def test_figure_7_draws_every_stripe_and_a_column_per_share(gather):
    stripe_set = figures.stripe_set(gather(figures.increasing_bumps))
    figure = picture(PANEL["7"], stripe_set)
    above, below = figure.subfigs
    assert above.get_suptitle() == "all 16 stripes"
    shown = [axes.images[0].get_array() for axes in above.axes if axes.images]
    assert np.array_equal(shown, stripe_set.common["stripes"][:, 0].numpy())
    columns = [axes.get_title().split("\n")[0] for axes in below.axes if axes.get_title()]
    assert columns == ["truth", "0% of bumps (0)", "21% of bumps (10)", "42% of bumps (20)"]
    assert len(below.axes) == 4 * 4
    first = stripe_set.first[stripe_set.kinds[0]]
    assert np.array_equal(below.axes[1].images[0].get_array(), first["images"][0][0])


def test_grey_scale_widens_for_outputs_that_overshoot():
    assert grey_scale(torch.tensor([[0.2, 0.9]])) == (0, 1)
    assert grey_scale(torch.tensor([[-0.5, 1.5]])) == (-0.5, 1.5)


def test_tables_show_labels(gather):
    rows = figures.outputs(gather(figures.all_amounts)).rows
    assert list(dict.fromkeys(row["trained on"] for row in rows)) == [
        label_of(key) for key in figures.all_amounts(TINY)
    ]


def test_claims_have_effects_for_every_seed_of_tiny_runs(gather):
    for claim in stripes.CLAIMS:
        found = effects(claim, gather(claim.plan))
        assert all(tuple(values) == BASE["tiny"].seeds for values in found.values()), claim.number
        assert judged(claim, gather(claim.plan)).outcome == "undetermined"  # two seeds


def test_no_primary_statement_needs_a_verdict():
    assert not any("fits best" in part.measure for claim in stripes.CLAIMS for part in claim.primary)


def perfect(amount: Amount, seed: int, **answers: object) -> Run:
    """A run that was never trained and draws every latent as the task does."""

    def draw(self: Run, latents: torch.Tensor | None = None) -> torch.Tensor:
        return self.spec.task.render(self.split.latents if latents is None else latents)

    return made_run(stripes_spec(TINY, amount, seed), draw=draw, **answers)


def test_bumps_with_stripes_and_failing_bumps_reproduce_claim_11():
    def runs(amount: Amount, placed: float) -> list[Run]:
        errors = [{"accuracy": placed - 0.01 * seed, "heldout_mse": 0.1, "blank_mse": 1.0} for seed in range(5)]
        return [perfect(amount, seed, error=error) for seed, error in enumerate(errors)]

    claim = next(claim for claim in stripes.CLAIMS if claim.number == 11)
    with_stripes = {key: runs(key, 1.0) for key in figures.increasing_bumps(TINY)}
    alone = figures.bumps_alone(TINY)
    evidence = made({**with_stripes, alone: runs(alone, 0.2)})
    assert judged(claim, evidence).outcome == "reproduced"
    good = made({**with_stripes, alone: runs(alone, 1.0)})
    assert judged(claim, good).outcome == "not reproduced"


def test_a_run_that_did_not_learn_is_excluded_with_the_reason():
    def blank(self: Run, latents: torch.Tensor | None = None) -> torch.Tensor:
        return self.spec.task.blank(64 if latents is None else len(latents))

    failing = made_run(stripes_spec(TINY, ALONE, 1), draw=blank, error={"accuracy": 1.0})
    learned = perfect(ALONE, 0, error={"accuracy": 1.0})
    part = claims.CLAIMS[0].primary[2]
    found = part.values(made({ALONE: [learned, failing]}))
    assert found == {0: 1.0, 1: UNLEARNED}
    assert training_share(learned) == 0
    assert training_share(failing) == pytest.approx(1)
