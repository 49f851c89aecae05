"""A complete study in one file: does showing each factor alone help an MLP compose? Two treatments, a figure, a claim.

composcope reproduce --study stripes-for-mlps --plugin examples/own_study.py
"""

from dataclasses import replace

import composcope as cs

SMALL = cs.Preset("small", "8 x 8 images, three seeds: seconds", label="8x8")
STEPS, SEEDS = {"small": 300}, (0, 1, 2)


def plan(preset):
    """Which runs: the same MLP with bumps alone, and with stripes added; one run per seed."""
    base = cs.Spec(
        task=cs.BumpTask(8),
        holdout=cs.Square(2, 5),
        encoding=cs.OneHot(),
        decoder=cs.MLP(depth=2, width=64),
        sampling=cs.Everything(),
        training=cs.Training(steps=STEPS[preset.name], batch=16),
    )
    samplings = {"bumps alone": cs.Everything(), "stripes and bumps": cs.Stripes(bumps=40)}
    seeds = preset.seeds_or(SEEDS)
    return {key: tuple(replace(base, sampling=s, seed=seed) for seed in seeds) for key, s in samplings.items()}


def share(run):
    """Held-out MSE over the MSE of a blank image."""
    return run.error["heldout_mse"] / run.error["blank_mse"]


def numbers(evidence):
    """What the figure shows: one row per run, which is also its table."""
    return evidence.numbers("trained on", lambda run: {"share": share(run)})


def draw(numbers):
    """The figure, from the numbers alone: a dot per run."""
    from composcope.study.drawing import COLUMN, figure

    page = figure(COLUMN, 2.0)
    axes = page.subplots()
    axes.plot(numbers.column("trained on"), numbers.column("share"), "o")
    axes.axhline(1, color="black", linestyle=":")
    axes.set_ylabel("held-out MSE / blank MSE")
    return page


STUDY = cs.Study(
    name="stripes-for-mlps",
    title="Do stripes help an MLP compose?",
    presets=(SMALL,),
    panels=(cs.Panel("1", "Held-out error", "Below the dotted line: better than a blank image.", plan, numbers, draw),),
    claims=(
        cs.Claim(
            number=1,
            statement="With stripes, an MLP's held-out error is lower than with bumps alone.",
            source="our own question",
            figures=("1",),
            plan=plan,
            primary=(
                cs.Part(
                    "held-out MSE / blank MSE, with stripes minus without",
                    cs.difference("stripes and bumps", "bumps alone", share),
                    relation="<",
                    threshold=0.0,
                    reason="0 means no difference",
                ),
            ),
        ),
    ),
    headline=cs.Headline(
        question="Do stripes help an MLP compose?",
        lead="An MLP draws bumps at (x, y). The middle of the plane is held out.",
        classes=(
            cs.RunClass("bumps alone", lambda spec: spec["sampling"]["kind"] == "everything", "untreated"),
            cs.RunClass("stripes and bumps", lambda spec: spec["sampling"]["kind"] == "stripes", "treated"),
        ),
        untreated="MLPs trained on bumps alone",
        treated="MLPs trained on stripes too",
    ),
)

cs.register_study(STUDY)
