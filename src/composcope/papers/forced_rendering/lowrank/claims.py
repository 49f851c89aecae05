"""Claims 7, 8 and 9: which penalties cure, what the embeddings become, and how even the volume is."""

from math import log10

from composcope.papers.forced_rendering.errors import EQUAL
from composcope.papers.forced_rendering.layers import image_gap
from composcope.papers.forced_rendering.lowrank import plan
from composcope.papers.forced_rendering.lowrank.numbers import own_axis, rank
from composcope.papers.forced_rendering.lowrank.plan import ABLATION
from composcope.papers.forced_rendering.volumes import mean_spread
from composcope.study.claim import Claim, Part
from composcope.study.effects import Number, by_seed, difference, of_runs
from composcope.study.evidence import Evidence

PENALIZED = tuple(penalties for penalties in ABLATION if penalties != "none")


def log_error(measure: str) -> Number:
    """log10 of an error."""
    return lambda run: log10(max(run.error[measure], 1e-12))


HELDOUT, SEEN = log_error("heldout_mse"), log_error("seen_mse")


def worst_heldout(evidence: Evidence) -> dict[int, float]:
    """log10 of the held-out error without penalties over the largest with one or both."""
    rows = by_seed(evidence, HELDOUT)
    return {seed: row["none"] - max(row[name] for name in PENALIZED) for seed, row in rows.items()}


def best_seen(evidence: Evidence) -> dict[int, float]:
    """log10 of the seen error without penalties over the smallest with one or both."""
    rows = by_seed(evidence, SEEN)
    return {seed: row["none"] - min(row[name] for name in PENALIZED) for seed, row in rows.items()}


CLAIMS = (
    Claim(
        number=7,
        statement="Without penalties the held-out error is highest and the seen error lowest; the entropy penalty "
        "helps a little, the variance penalty a lot at some cost on seen points, and both together are best.",
        source="Sec. 4.1, Fig. 3d",
        figures=("3d",),
        plan=plan.ablation,
        parts=(
            Part("log10 held-out MSE, none over the worst of the others", worst_heldout, ">", 0.0, EQUAL),
            Part("log10 seen MSE, none over the best of the others", best_seen, "<", 0.0, EQUAL),
            Part("log10 held-out MSE, entropy over none", difference("entropy", "none", HELDOUT), "<", 0.0, EQUAL),
            Part(
                "log10 held-out MSE, variance over none",
                difference("variance", "none", HELDOUT),
                "<",
                -0.5,
                '"a lot" means at least a factor of three',
            ),
            Part(
                "log10 held-out MSE, variance over entropy",
                difference("variance", "entropy", HELDOUT),
                "<",
                0.0,
                EQUAL + ': "a lot" is more than "a little"',
            ),
            Part("log10 seen MSE, variance over none", difference("variance", "none", SEEN), ">", 0.0, EQUAL),
            Part(
                "log10 held-out MSE, both over variance",
                difference("both", "variance", HELDOUT),
                "<",
                0.0,
                EQUAL + "; above 0, variance alone is better than both",
            ),
        ),
        note="A full ordering of four kinds of runs is a lot to ask of a few seeds: a single atypical run breaks it. "
        "The paper does not say how the vectors are initialized; here they start with length 1.",
    ),
    Claim(
        number=8,
        statement="With both penalties the embedding of a value is a band on its own factor's axis, of rank about 1.",
        source="Sec. 4.1, Figs 3b and 6",
        figures=("3b", "6"),
        plan=plan.none_and_both,
        parts=(
            Part("effective rank, both penalties", of_runs("both", rank), "<", 1.5, "closer to 1 than to 2"),
            Part("effective rank, both minus none", difference("both", "none", rank), "<", 0.0, EQUAL),
            Part(
                "share of variance along the own axis, both penalties",
                of_runs("both", own_axis),
                ">",
                0.5,
                "more than half of it lies along the own axis; noise has 1 / (side + 1)",
            ),
            Part("share along the own axis, both minus none", difference("both", "none", own_axis), ">", 0.0, EQUAL),
        ),
    ),
    Claim(
        number=9,
        statement="With the penalties the volume element is smoother over the latent plane than without.",
        source="Sec. 4.1, Fig. 3c",
        figures=("3c",),
        plan=plan.none_and_both,
        parts=(
            Part(
                "spread of log10 volume, mean over layers, both minus none",
                difference("both", "none", mean_spread),
                "<",
                0.0,
                EQUAL,
            ),
            Part(
                "|gap of log10 volume| between held-out and seen images, both minus none",
                difference("both", "none", image_gap),
                "<",
                0.0,
                EQUAL,
            ),
        ),
        note="Without penalties a held-out image need not be blank: where it is bright and wrong, the volume there is "
        "as large as elsewhere, and the gap alone does not reveal the failure.",
    ),
)
