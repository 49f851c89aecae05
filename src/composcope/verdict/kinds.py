"""The classes of images, what a decoder is said to do, and the thresholds between them."""

KINDS = {
    "composer": "composes",
    "additive cross": "adds",
    "nearest seen": "repeats",
    "superposer": "superposes",
    "blank": "draws nothing",
    "other": "does something else",
    "wrong combination": "mixes up factors",
    "additive": "adds",
}
"""Every class of images, and what a decoder is said to do if its held-out images are mostly of this kind."""

NOT_LEARNED = "has not learned"
"""The kind of a decoder that fails on what it saw: nothing can be said about composition."""

# Below a tenth of the truth's energy there is nothing to classify: a fit to what is left would fit noise. An image that
# is faint but correct has more: half the amplitude is a quarter of the energy.
BLANK_ENERGY = 0.1
# An image of which even the best reference leaves more than half of the energy is more unlike it than like it. The
# known-answer decoders leave next to 0 and noise leaves nearly 1, so the exact value matters little.
LARGEST_RESIDUAL = 0.5
# Two combinations whose images differ by less than this share of the energy cannot be told apart: a circle has no
# orientation. The product of an image with thousands of others is in single precision, which is exact to about 1e-6.
TIE = 1e-4
# The additive prediction is fitted to the decoder's own outputs and thus has its small flaws too, which the true images
# lack; the superposer has many weights besides. They must be better than the others by these shares of the energy.
LEADS = {"additive": 0.003, "superposer": 0.01}
# A decoder has learned if at least half of its seen images show their own combination, give or take one step of an
# ordered factor, which is an error of the drawing rather than of the factor.
LEAST_RECOGNISED = 0.5
