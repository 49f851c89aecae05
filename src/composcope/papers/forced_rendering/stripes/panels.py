"""Figures 4a, 4b, 4d, 4e, 4f, 7 and 15."""

from composcope.papers.forced_rendering.smoothness import evenness_both_ways
from composcope.papers.forced_rendering.stripes import drawing, drawing_tuning, first_layer, numbers, plan, tuning
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
        first_seed="training set",
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
        first_seed="images",
    ),
    Panel(
        name="4d",
        title="Volume element after training with and without stripes",
        see="How even the colour is, above all across the line around held-out (x, y), down to the image; by "
        "differences on the grid, as in the paper, and exactly. The number is the spread: the standard deviation of "
        "log10 volume over the grid without its border, mean over seeds.",
        plan=plan.with_and_without,
        numbers=evenness_both_ways,
        draw=drawing.draw_volume,
        first_seed="maps",
    ),
    Panel(
        name="4e",
        title="First-layer units after training with and without stripes",
        see="Above, the activation of units over (x, y), as in the paper: stripes, or crosses. Below, whole channels: "
        "whether a value of x alone gives vertical bands and one of y horizontal bands, as in the penalized embeddings "
        "of figure 3b. The shares in the titles are over all units, and over all values and channels.",
        plan=plan.few_and_without,
        numbers=first_layer.first_layers,
        draw=drawing_tuning.draw_first_layers,
        diagnosed=False,
        first_seed="units and channels",
    ),
    Panel(
        name="4f",
        title="Tuning over (x, y), layer by layer",
        see="A typical unit of each layer, the median of those at the middle of the map: bands, crosses or a bump. On "
        "the right the mean over these units, one per channel, and over all; dashed, before training.",
        plan=plan.with_few,
        numbers=tuning.typical,
        draw=drawing_tuning.draw_typical,
        first_seed="maps",
    ),
    Panel(
        name="7",
        title="The stripe set, and increasing shares of bumps",
        see="What share of the seen bumps is needed until held-out images are bumps instead of crosses.",
        plan=plan.increasing_bumps,
        numbers=numbers.stripe_set,
        draw=drawing.draw_stripe_set,
        diagnosed=False,
        first_seed="images",
    ),
    Panel(
        name="15",
        title="Tuning of sample units, stripes alone and with bumps",
        see="Two units per layer, from the stripe-like and from the bump-like half of those at the middle of the map; "
        "their mean activation along x and along y beside the map. Compare left and right, and first and last rows.",
        plan=plan.increasing_bumps,
        numbers=tuning.stripe_and_bump,
        draw=drawing_tuning.draw_units,
        first_seed="units",
    ),
)
