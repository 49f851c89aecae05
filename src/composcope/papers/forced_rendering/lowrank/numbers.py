"""What figures 3 and 6 show: a decoder's steps for one image, its embedding matrices, and the ablation's errors."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from composcope.activations.recording import record
from composcope.decoders.lowrank import Embedding, embeddings_of
from composcope.papers.forced_rendering.bands import mean_rank, own_axis_share
from composcope.runs.run import Run
from composcope.study.evidence import Evidence
from composcope.study.joining import rows_by_key, values_of
from composcope.study.panel import Rows
from composcope.study.plan import Key, label_of


def middle(size: int) -> int:
    """The factor value whose embeddings are shown: the paper's 14 at its sizes, otherwise the middle one."""
    return 14 if size in (28, 32) else size // 2


@dataclass(frozen=True)
class Terms:
    """One factor value's matrix as sum_n lambda_n v_n u_n^T, the terms sorted by |lambda|, descending."""

    v: Float[Tensor, "rank height"]
    weight: Float[Tensor, "rank"]
    u: Float[Tensor, "rank width"]

    @property
    def matrix(self) -> Float[Tensor, "height width"]:
        return torch.einsum("nh,n,nw->hw", self.v, self.weight, self.u)

    @property
    def shares(self) -> Float[Tensor, "rank"]:
        """p_n = lambda_n^2 / sum_m lambda_m^2."""
        return self.weight.square() / self.weight.square().sum()


@dataclass(frozen=True)
class Walkthrough:
    """What a trained decoder does for one held-out (x, y), step by step.

    - `terms`: of x and of y; `hidden`: the channels of the conv layers, by layer name.
    """

    point: tuple[int, int]
    size: int
    terms: dict[str, Terms]
    hidden: dict[str, Float[Tensor, "channels height width"]]
    image: Float[Tensor, "1 height width"]
    truth: Float[Tensor, "1 height width"]

    def table(self) -> Rows:
        return [
            {"factor": name, "value": value, "term": n + 1, "lambda": weight, "share of the squares": share}
            for (name, terms), value in zip(self.terms.items(), self.point, strict=True)
            for n, (weight, share) in enumerate(zip(terms.weight[:5].tolist(), terms.shares[:5].tolist(), strict=True))
        ]


def walkthrough(evidence: Evidence) -> Walkthrough:
    """The first run with both penalties, at a held-out point in the middle."""
    run = evidence.first("both")
    size = run.spec.task.image_shape[-1]
    value = middle(size)
    row = int((run.split.latents == value).all(1).nonzero()[0, 0])
    code = run.spec.encoding.encode(run.split.latents[row : row + 1], run.spec.task.factors)
    with torch.no_grad():
        outputs, _ = record(run.module, code)
        terms = [terms_of(embedding, value) for embedding in embeddings_of(run.module)]
    return Walkthrough(
        point=(value, value),
        size=size,
        terms=dict(zip(("x", "y"), terms, strict=True)),
        hidden={name: output[0] for name, output in outputs.items() if name.startswith("conv")},
        image=outputs["image"][0],
        truth=run.truth[row],
    )


def terms_of(embedding: Embedding, value: int) -> Terms:
    """The terms of one value's matrix, with vectors of unit length as the decoder uses them."""
    order = embedding.weight[value].abs().argsort(descending=True)
    v, u = (normalize(vectors[value][order], dim=1) for vectors in (embedding.v, embedding.u))
    return Terms(v, embedding.weight[value][order], u)


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


@dataclass(frozen=True)
class Embeddings:
    """Embedding matrices of some values, by penalties and factor; their rank and own-axis share for each seed.

    - `shown`: from the first seed.
    """

    values: tuple[int, ...]
    seeds: dict[Key, list[int]]
    shown: dict[Key, dict[str, Float[Tensor, "values height width"]]]
    ranks: dict[Key, list[float]]
    own_axes: dict[Key, list[float]]

    def joined(self, other: "Embeddings") -> "Embeddings":
        """The values of the seeds of both, and the matrices of the smallest seed."""
        rows, both = rows_by_key(self.seeds, other.seeds), (self, other)
        return Embeddings(
            values=self.values,
            shown={key: both[picked[0][0]].shown[key] for key, picked in rows.items()},
            seeds=values_of(rows, self.seeds, other.seeds),
            ranks=values_of(rows, self.ranks, other.ranks),
            own_axes=values_of(rows, self.own_axes, other.own_axes),
        )

    def seed_counts(self) -> list[int]:
        return [len(seeds) for seeds in self.seeds.values()]

    def table(self) -> Rows:
        return [
            {"penalties": label_of(key), "seed": seed, "effective rank": rank, "share along own axis": share}
            for key, seeds in self.seeds.items()
            for seed, rank, share in zip(seeds, self.ranks[key], self.own_axes[key], strict=True)
        ]


def middle_embeddings(evidence: Evidence) -> Embeddings:
    """One value in the middle."""
    return _embeddings(evidence, (middle(_size(evidence)),))


def all_embeddings(evidence: Evidence) -> Embeddings:
    """Every value."""
    return _embeddings(evidence, tuple(range(_size(evidence))))


def _size(evidence: Evidence) -> int:
    return evidence.any_run.spec.task.image_shape[-1]


def _embeddings(evidence: Evidence, values: tuple[int, ...]) -> Embeddings:
    stacks = {key: matrices(evidence.first(key)) for key in evidence}
    return Embeddings(
        values=values,
        seeds={key: [run.spec.seed for run in runs] for key, runs in evidence.items()},
        shown={key: {"x": x[list(values)], "y": y[list(values)]} for key, (x, y) in stacks.items()},
        ranks={key: [rank(run) for run in runs] for key, runs in evidence.items()},
        own_axes={key: [own_axis(run) for run in runs] for key, runs in evidence.items()},
    )


@dataclass(frozen=True)
class Ablation:
    """Seen and held-out error and held-out accuracy of every run, by penalties; `blank`: a blank image's error.

    - `seeds`: by penalties, in the order of the numbers.
    """

    seeds: dict[Key, list[int]]
    seen: dict[Key, list[float]]
    heldout: dict[Key, list[float]]
    accuracy: dict[Key, list[float]]
    blank: float

    def joined(self, other: "Ablation") -> "Ablation":
        """The values of the seeds of both."""
        rows = rows_by_key(self.seeds, other.seeds)
        return Ablation(
            seeds=values_of(rows, self.seeds, other.seeds),
            seen=values_of(rows, self.seen, other.seen),
            heldout=values_of(rows, self.heldout, other.heldout),
            accuracy=values_of(rows, self.accuracy, other.accuracy),
            blank=self.blank,
        )

    def seed_counts(self) -> list[int]:
        return [len(seeds) for seeds in self.seeds.values()]

    def table(self) -> Rows:
        return [
            {
                "penalties": label_of(key),
                "seed": seed,
                "seen MSE": self.seen[key][n],
                "held-out MSE": self.heldout[key][n],
                "blank MSE": self.blank,
                "held-out accuracy": self.accuracy[key][n],
            }
            for key, seeds in self.seeds.items()
            for n, seed in enumerate(seeds)
        ]


def ablation_errors(evidence: Evidence) -> Ablation:
    """The errors of every run."""

    def errors(measure: str) -> dict[Key, list[float]]:
        return {key: [run.error[measure] for run in runs] for key, runs in evidence.items()}

    return Ablation(
        seeds={key: [run.spec.seed for run in runs] for key, runs in evidence.items()},
        seen=errors("seen_mse"),
        heldout=errors("heldout_mse"),
        accuracy=errors("accuracy"),
        blank=evidence.first("none").error["blank_mse"],
    )
