"""Figures 3 and 6: low-rank decoders with no penalty, each penalty alone, both; their embeddings, volume and errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from composcope.activations.recording import record
from composcope.decoders.lowrank import Embedding, LowRank, embeddings_of
from composcope.encodings import OneHot
from composcope.factors import Factor
from composcope.holdouts import Corner
from composcope.measures.kernel_structure import Schmidt
from composcope.measures.linear_factorization import effect_variances
from composcope.papers.forced_rendering.base import QUICK_SEEDS
from composcope.papers.forced_rendering.lowrank.drawing import (
    draw_ablation,
    draw_all,
    draw_pair,
    draw_volume,
    draw_walkthrough,
)
from composcope.papers.forced_rendering.volumes import evenness, evenness_table
from composcope.penalties import Entropy, Penalty, Variance
from composcope.runs.run import Run
from composcope.runs.spec import Spec
from composcope.sampling import Everything
from composcope.study.evidence import Evidence
from composcope.study.numbers import Numbers, Row, Rows
from composcope.study.panel import Panel
from composcope.study.plan import Plan, Preset, of_preset, only
from composcope.tasks.bump import BumpTask
from composcope.training import Training

MAX_TERMS = 5  # in the table of figure 3a

ABLATION: dict[str, tuple[Penalty, ...]] = {
    "none": (),
    "entropy": (Entropy(0.1),),
    "variance": (Variance(0.01),),
    "both": (Entropy(0.1), Variance(0.01)),
}


@dataclass(frozen=True)
class Sizes:
    """What the low-rank decoders are trained at; the corner is held out."""

    size: int
    corner: Corner
    training: Training
    seeds: tuple[int, ...]


# The authors' network, loss and length. Their code runs no penalty and both; the paper's ablation has all four.
SIZES = {
    "quick": Sizes(16, Corner(6), Training(epochs=600, weight_decay=1e-4), seeds=QUICK_SEEDS),
    "paper": Sizes(32, Corner(12), Training(epochs=1000, weight_decay=1e-4), seeds=tuple(range(20, 35))),
    "tiny": Sizes(8, Corner(3), Training(steps=5), seeds=(0, 1)),
}


@cache
def lowrank_spec(preset: Preset, penalties: str, seed: int) -> Spec:
    """A bright, wider bump, a corner held out, one-hot codes."""
    sizes = of_preset(SIZES, preset)
    return Spec(
        task=BumpTask(sizes.size, sigma=1.5, polarity="bright"),
        holdout=sizes.corner,
        encoding=OneHot(),
        decoder=LowRank(init="authors", activate_embedding=True),
        sampling=Everything(),
        training=sizes.training,
        penalties=ABLATION[penalties],
        seed=seed,
    )


def ablation(preset: Preset) -> Plan:
    """No penalty, each alone, both."""
    seeds = of_preset(SIZES, preset).seeds
    return {name: tuple(lowrank_spec(preset, name, seed) for seed in seeds) for name in ABLATION}


none_and_both = only(ablation, "none", "both")
both = only(ablation, "both")


def middle(size: int) -> int:
    """The factor value whose embeddings are shown: the paper's 14 at its sizes, otherwise the middle one."""
    return 14 if size in (28, 32) else size // 2


def walkthrough(evidence: Evidence) -> Numbers:
    """What a trained decoder with both penalties does for one held-out (x, y) in the middle, step by step."""
    run = evidence.first("both")
    value = middle(run.spec.task.image_shape[-1])
    row = int((run.split.latents == value).all(1).nonzero()[0, 0])
    code = run.spec.encoding.encode(run.split.latents[row : row + 1], run.spec.task.factors)
    with torch.no_grad():
        outputs, _ = record(run.module, code)
        terms = dict(zip(("x", "y"), (terms_of(each, value) for each in embeddings_of(run.module)), strict=True))
    rows: Rows = []
    for factor, each in terms.items():
        shares = each["weight"].square() / each["weight"].square().sum()
        of_factor = {"run": "both", "factor": factor, "value": value}
        for index, (weight, share) in enumerate(zip(each["weight"].tolist(), shares.tolist(), strict=True)):
            if index < MAX_TERMS:
                rows.append({**of_factor, "term": index + 1, "lambda": weight, "share of the squares": share})
    shown = {
        "terms": terms,
        "conv layers": {name: output[0] for name, output in outputs.items() if name.startswith("conv")},
        "image": outputs["image"][0],
        "truth": run.truth[row],
    }
    return Numbers(rows, {"both": shown}, {"value": value, "size": run.spec.task.image_shape[-1]})


def terms_of(embedding: Embedding, value: int) -> dict[str, Tensor]:
    """One value's matrix as sum_n lambda_n v_n u_n^T, the terms sorted by |lambda|, descending.

    The vectors have unit length, as the decoder uses them.
    """
    order = embedding.weight[value].abs().argsort(descending=True)
    v, u = (normalize(vectors[value][order], dim=1) for vectors in (embedding.v, embedding.u))
    return {"v": v, "weight": embedding.weight[value][order], "u": u}


Maps = Float[Tensor, "_ height width"]


def axis_variances(maps: Maps) -> Float[Tensor, "_ 3"]:
    """Each map's variance over its entries in three parts: due to the column alone, to the row alone, to neither alone.

    >>> axis_variances(torch.tensor([[[0.0, 2.0], [0.0, 2.0]]])).tolist()
    [[1.0, 0.0, 0.0]]
    """
    _, height, width = maps.shape
    factors = (Factor("row", tuple(range(height))), Factor("column", tuple(range(width))))
    parts = effect_variances(maps.flatten(1).T, factors)
    return torch.stack([parts["column",], parts["row",], parts["row", "column"]], 1)


def own_axis_share(of_x: Maps, of_y: Maps) -> float | None:
    """sum of Var(map | column alone) over x's maps and of Var(map | row alone) over y's, over the sum of all Var.

    1 if x's maps are vertical bands and y's horizontal ones, whatever their profile; 1 / (n + 1) for noise of side n.
    Faint maps count for little. None if no map varies.
    """
    x, y = axis_variances(of_x), axis_variances(of_y)
    total = (x.sum() + y.sum()).item()
    return (x[:, 0].sum() + y[:, 1].sum()).item() / total if total > 0 else None


def effective_rank(matrix: Float[Tensor, "height width"]) -> float:
    """exp of the entropy of p_n = s_n^2 / sum s^2, s the singular values: 1 for a single product v u^T.

    >>> round(effective_rank(torch.eye(4)), 6)
    4.0
    """
    return Schmidt(torch.linalg.svdvals(matrix.double())).effective_rank


def mean_rank(stacks: Sequence[Maps]) -> float:
    """The mean effective rank of all maps."""
    ranks = [effective_rank(matrix) for stack in stacks for matrix in stack]
    return sum(ranks) / len(ranks)


@torch.no_grad()
def matrices(run: Run) -> list[Float[Tensor, "values height width"]]:
    """Every value's embedding matrix, one stack per factor."""
    return [embedding.matrices() for embedding in embeddings_of(run.module)]


def rank(run: Run) -> float:
    """The effective rank of an embedding matrix, mean over all values of both factors."""
    return mean_rank(matrices(run))


def own_axis(run: Run) -> float:
    """The share of the embeddings' variance that lies along their own factor's axis."""
    of_x, of_y = matrices(run)
    return own_axis_share(of_x, of_y) or 0.0


def energy_in_hole(run: Run) -> float:
    """Mean square of an embedding's entries across the hole over that outside, mean over values that occur in the hole.

    Across the hole: rows of y values in the hole for an embedding of x, columns of x values in the hole for one of y.
    """
    ratios = []
    for axis, maps in enumerate(matrices(run)):
        own, other = (run.split.heldout[:, factor].unique().long() for factor in (axis, 1 - axis))
        profiles = maps[own].square().mean(2 if axis == 0 else 1)
        inside = torch.zeros(profiles.shape[1], dtype=torch.bool).index_fill(0, other, True)
        ratios.append(profiles[:, inside].mean(1) / profiles[:, ~inside].mean(1))
    return torch.cat(ratios).mean().item()


def middle_embeddings(evidence: Evidence) -> Numbers:
    """The embedding matrices of one value in the middle."""
    return _embeddings(evidence, [middle(_size(evidence))])


def all_embeddings(evidence: Evidence) -> Numbers:
    """Those of every value."""
    return _embeddings(evidence, list(range(_size(evidence))))


def _size(evidence: Evidence) -> int:
    return evidence.any_run.spec.task.image_shape[-1]


def _embeddings(evidence: Evidence, values: list[int]) -> Numbers:
    """Rank and own-axis share of every run; the matrices of some values for the first seed."""

    def shown(run: Run) -> Row:
        x, y = matrices(run)
        return {"x": x[values], "y": y[values]}

    def numbers(run: Run) -> Row:
        return {"effective rank": rank(run), "share along own axis": own_axis(run)}

    return evidence.numbers("penalties", numbers, shown, {"values": values})


def ablation_errors(evidence: Evidence) -> Numbers:
    """The errors of every run."""
    blank = evidence.first("none").error["blank_mse"]
    return evidence.numbers(
        "penalties",
        lambda run: {
            "seen MSE": run.error["seen_mse"],
            "held-out MSE": run.error["heldout_mse"],
            "blank MSE": blank,
            "held-out accuracy": run.error["accuracy"],
        },
    )


PANELS = (
    Panel(
        name="3a",
        title="Low-rank rendering, step by step",
        see="Each value's code selects a matrix that is a sum of products of two vectors; the matrices of x and y are "
        "the input channels of a small conv net. Everything shown was read from a trained decoder at a held-out point.",
        plan=both,
        numbers=walkthrough,
        draw=draw_walkthrough,
        no_claim="it explains the architecture",
        diagnosed=False,
        first_seed="everything",
    ),
    Panel(
        name="3b",
        title="Embeddings of one x and one y, without and with penalties",
        see="Whether the embedding of x is a vertical band and that of y a horizontal one. Red and blue are signs, "
        "each matrix on its own scale; rank and share along the own axis are means over all values and seeds.",
        plan=none_and_both,
        numbers=middle_embeddings,
        draw=draw_pair,
        diagnosed=False,
        first_seed="matrices",
    ),
    Panel(
        name="3c",
        title="Volume element without and with penalties",
        see="How even the colour is, above all across the line around held-out (x, y). The number is the spread: "
        "the standard deviation of log10 volume over the grid without its border, mean over seeds.",
        plan=none_and_both,
        numbers=evenness,
        table=evenness_table,
        draw=draw_volume,
        first_seed="maps",
    ),
    Panel(
        name="3d",
        title="Ablation of the penalties",
        see="Which penalties reduce the held-out error below that of a blank image, at what cost on seen points, and "
        "whether the bumps are then within 1 pixel of their true positions.",
        plan=ablation,
        numbers=ablation_errors,
        draw=draw_ablation,
        diagnosed=False,
    ),
    Panel(
        name="6",
        title="Embedding matrices of all values",
        see="Whether the bands move with the value and lie along its own axis, or differ from value to value. Values "
        "ascend from left to right, row by row from the top.",
        plan=none_and_both,
        numbers=all_embeddings,
        draw=draw_all,
        diagnosed=False,
        first_seed="matrices",
    ),
)
