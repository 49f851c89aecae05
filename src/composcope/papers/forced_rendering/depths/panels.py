"""Figures 2 and 10 to 14 as values."""

from functools import partial

from composcope.papers.forced_rendering.depths import plan
from composcope.papers.forced_rendering.depths.drawing import draw_gallery
from composcope.papers.forced_rendering.depths.numbers import gallery
from composcope.papers.forced_rendering.drawing_layers import draw_one_code, draw_profiles, draw_volumes
from composcope.papers.forced_rendering.layers import factorizations, probes, profiles
from composcope.papers.forced_rendering.volumes import volumes
from composcope.study.panel import Panel

BY_LAYER = {"layer-scale": partial(draw_volumes, scale="layer")}

PANELS = (
    Panel(
        "2a",
        "Linear probes by layer, bump code",
        "How well a linear readout recovers x and y from each layer: scored on its own points, as in the paper (1 for "
        "any layer with more units than points), on other points, and on held-out ones.",
        plan.bump_cnns,
        probes,
        draw_one_code,
        partial=True,
    ),
    Panel(
        "2b",
        "Linear probes by layer, rate code",
        "The same for the rate code, whose two numbers have to be expanded most.",
        plan.rate_cnns,
        probes,
        draw_one_code,
        partial=True,
    ),
    Panel(
        "2c",
        "Factorization by layer, bump code",
        "How close to right angles x and y stay in each layer, by the authors' measure and by the paper's formula; "
        "grey lines are the same networks before training.",
        plan.bump_cnns,
        factorizations,
        draw_one_code,
        partial=True,
    ),
    Panel(
        "2d",
        "Factorization by layer, rate code",
        "At which layers the score falls, and by how much at once, for shallow and for deep networks.",
        plan.rate_cnns,
        factorizations,
        draw_one_code,
        partial=True,
    ),
    Panel(
        "2e",
        "Volume by layer, bump code",
        "Whether the held-out square (outlined) gets less volume (purple) or more (green) than what was seen.",
        plan.bump_cnn,
        volumes,
        draw_volumes,
        styles=BY_LAYER,
        partial=True,
        first_seed="maps",
    ),
    Panel(
        "2f",
        "Volume by layer, rate code",
        "The same for the rate code, whose volume is even at the input.",
        plan.rate_cnn,
        volumes,
        draw_volumes,
        styles=BY_LAYER,
        partial=True,
        first_seed="maps",
    ),
    Panel(
        "10",
        "Held-out images by depth",
        "Images of networks of every depth at four held-out points; rings mark the true positions.",
        plan.cnns_and_others,
        gallery,
        draw_gallery,
        no_claim="The paper shows it as an illustration; that every code fails is claim 1.",
        partial=True,
        first_seed="images",
    ),
    Panel(
        "11",
        "Volume by layer, CNNs of all depths and other decoders",
        "In which layers the held-out square begins to differ from what was seen, and whether depth changes that.",
        plan.cnns_and_others,
        volumes,
        draw_volumes,
        styles=BY_LAYER,
        partial=True,
        first_seed="maps",
    ),
    Panel(
        "12",
        "Probes and factorization, CNNs of all depths and other decoders",
        "Whether the scores fall at a fixed layer or towards the image; grey lines are the networks before training.",
        plan.cnns_and_others,
        profiles,
        draw_profiles,
        partial=True,
    ),
    Panel(
        "13",
        "Volume by layer, MLPs of all depths",
        "Whether MLPs give the held-out square less volume or more, beside the CNNs of figure 11.",
        plan.mlps,
        volumes,
        draw_volumes,
        styles=BY_LAYER,
        partial=True,
        first_seed="maps",
    ),
    Panel(
        "14",
        "Probes and factorization, MLPs of all depths",
        "How evenly and how far the scores fall, beside the CNNs of figure 12.",
        plan.mlps,
        profiles,
        draw_profiles,
        partial=True,
    ),
)
