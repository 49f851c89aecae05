"""Figures 4a, 4b, 4d, 4e, 4f, 7 and 15."""

from composcope.papers.forced_rendering.stripes import drawing, drawing_tuning, numbers, plan, tuning
from composcope.papers.forced_rendering.volumes import evenness
from composcope.study.panel import Panel

PANELS = (
    Panel(
        name="4a",
        title="The training set: stripes and a few bumps",
        see="A stripe shows one value of one factor and nothing about the other; bumps come from outside the hole.",
        plan=plan.with_most,
        numbers=numbers.samples,
        draw=drawing.draw_samples,
        no_claim="it shows the training set",
        diagnosed=False,
    ),
    Panel(
        name="4b",
        title="Held-out images as bumps are added to the stripes",
        see="From crosses to bumps, down the rows; the last row has as many bumps and no stripes. A cross at the true "
        "position counts as within 1 pixel: the correlation distinguishes it from a bump. The plus marks the true "
        "position; each row has its own grey scale.",
        plan=plan.all_amounts,
        numbers=numbers.outputs,
        draw=drawing.draw_outputs,
        diagnosed=False,
    ),
    Panel(
        name="4d",
        title="Volume element after training with and without stripes",
        see="How even the colour is, above all across the line around held-out (x, y), down to the image. The number "
        "is the spread: the standard deviation of log10 volume over the grid without its border, mean over seeds.",
        plan=plan.with_and_without,
        numbers=evenness,
        draw=drawing.draw_volume,
    ),
    Panel(
        name="4e",
        title="First-layer channels after training with and without stripes",
        see="Whether a value of x alone gives vertical bands and one of y horizontal bands, as in the penalized "
        "embeddings of figure 3b; both together give their sum. The share along the own axis is over all values and "
        "channels.",
        plan=plan.few_and_without,
        numbers=tuning.first_layers,
        draw=drawing_tuning.draw_first_layers,
        diagnosed=False,
    ),
    Panel(
        name="4f",
        title="Tuning over (x, y), layer by layer",
        see="A typical unit of each layer, the median of the most active ones: bands, crosses or a bump. On the right "
        "the mean over all units; dashed, before training.",
        plan=plan.with_few,
        numbers=tuning.typical,
        draw=drawing_tuning.draw_typical,
    ),
    Panel(
        name="7",
        title="The stripe set, and increasing shares of bumps",
        see="What share of the seen bumps is needed until held-out images are bumps instead of crosses.",
        plan=plan.increasing_bumps,
        numbers=numbers.stripe_set,
        draw=drawing.draw_stripe_set,
        diagnosed=False,
    ),
    Panel(
        name="15",
        title="Tuning of sample units, stripes alone and with bumps",
        see="Two units per layer, one from the stripe-like and one from the bump-like half of the most active ones; "
        "their mean activation along x and along y beside the map. Compare left and right, and first and last rows.",
        plan=plan.none_and_most,
        numbers=tuning.stripe_and_bump,
        draw=drawing_tuning.draw_units,
    ),
)
