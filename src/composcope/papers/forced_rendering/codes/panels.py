"""Figures 1a to 1c and 5 as values."""

from composcope.papers.forced_rendering.codes import drawing, numbers, plan
from composcope.study.panel import Panel

PANELS = (
    Panel(
        "1a",
        "The set-up",
        "Every x and every y is seen, but not the combinations in the square; separate units encode x and y.",
        plan.no_runs,
        numbers.setup,
        drawing.draw_setup,
        no_claim="it shows the question, not a result",
    ),
    Panel(
        "1b",
        "Bump and one-hot codes",
        "The error over the plane, the held-out square outlined; images drawn there, with a cross at the true "
        "position; how far in from the edge of the hole bumps are still within 1 pixel of it.",
        plan.local_codes,
        numbers.failure,
        drawing.draw_failure,
        first_seed="maps and images",
    ),
    Panel(
        "1c",
        "Rate and positional codes",
        "The same with codes in which every unit changes with the value; look at the seen error before judging.",
        plan.distributed_codes,
        numbers.failure,
        drawing.draw_failure,
        first_seed="maps and images",
    ),
    Panel(
        "5",
        "The latent plane, bent into a layer",
        "The grid of (x, y) in three principal components of a layer: how it folds, and what becomes of the hole.",
        plan.bump_and_rate,
        numbers.bent_plane,
        drawing.draw_bent_plane,
        no_claim="a sketch in the paper; the claims about geometry rest on figures 2, 11 and 13",
        first_seed="planes",
    ),
)
