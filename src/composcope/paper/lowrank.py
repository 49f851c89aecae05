"""Figures 3 and 6: the cure by architecture, low-rank embeddings with and without each penalty."""

from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from composcope.activations.recording import record
from composcope.decoders.lowrank import Embedding, LowRank, embeddings_of
from composcope.encodings import OneHot
from composcope.experiments.spec import Spec
from composcope.paper.bands import mean_rank, own_axis_share
from composcope.paper.evidence import Evidence, Plan, Rows, Run
from composcope.paper.preset import Preset
from composcope.penalties import Entropy, Penalty, Variance
from composcope.sampling import Everything
from composcope.tasks.bump import BumpTask

ABLATION: dict[str, tuple[Penalty, ...]] = {
    "none": (),
    "entropy": (Entropy(0.1),),
    "variance": (Variance(0.01),),
    "both": (Entropy(0.1), Variance(0.01)),
}


@cache
def spec(preset: Preset, penalties: str, seed: int) -> Spec:
    """A bright, wider bump, a corner withheld, one-hot codes."""
    return Spec(
        task=BumpTask(preset.lowrank_size, sigma=1.5, polarity="bright"),
        holdout=preset.lowrank_corner,
        encoding=OneHot(),
        decoder=LowRank(),
        sampling=Everything(),
        training=preset.lowrank_training,
        penalties=ABLATION[penalties],
        seed=seed,
    )


def ablation(preset: Preset) -> Plan:
    """No penalty, each alone, both."""
    return {name: tuple(spec(preset, name, seed) for seed in preset.lowrank_seeds) for name in ABLATION}


def ends(preset: Preset) -> Plan:
    """No penalty and both."""
    return {name: specs for name, specs in ablation(preset).items() if name in ("none", "both")}


def cured(preset: Preset) -> Plan:
    """Both penalties."""
    return {"both": ablation(preset)["both"]}


def middle(size: int) -> int:
    """The factor value whose embeddings are shown: the paper's 14 at its sizes, else the middle one."""
    return 14 if size in (28, 32) else size // 2


@dataclass(frozen=True)
class Terms:
    """One factor value's matrix as sum_n lambda_n v_n u_n^T, the terms sorted by |lambda|, falling."""

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
class Scheme:
    """What happens in a trained decoder for one held-out (x, y), step by step.

    - `terms`: of x and y; `hidden`: the conv layers' channels by the layer's name.
    """

    place: tuple[int, int]
    size: int
    terms: dict[str, Terms]
    hidden: dict[str, Float[Tensor, "channels height width"]]
    image: Float[Tensor, "1 height width"]
    truth: Float[Tensor, "1 height width"]

    def table(self) -> Rows:
        return [
            {"factor": name, "value": value, "term": n + 1, "lambda": weight, "share of the squares": share}
            for (name, terms), value in zip(self.terms.items(), self.place, strict=True)
            for n, (weight, share) in enumerate(zip(terms.weight[:5].tolist(), terms.shares[:5].tolist(), strict=True))
        ]


def scheme(evidence: Evidence) -> Scheme:
    """The first run with both penalties, at a held-out place in the middle."""
    run = evidence.first("both")
    module, size = run.result.module, run.spec.task.image_shape[-1]
    place = middle(size)
    row = int((run.parts.latents == place).all(1).nonzero()[0, 0])
    code = run.spec.encoding.encode(run.parts.latents[row : row + 1], run.spec.task.factors)
    with torch.no_grad():
        values, _ = record(module, code)
        terms = [_terms(embedding, place) for embedding in embeddings_of(module)]
    return Scheme(
        place=(place, place),
        size=size,
        terms=dict(zip(("x", "y"), terms, strict=True)),
        hidden={name: value[0] for name, value in values.items() if name.startswith("conv")},
        image=values["image"][0],
        truth=run.truth[row],
    )


def _terms(embedding: Embedding, value: int) -> Terms:
    """The terms with vectors of unit length, as the decoder uses them."""
    order = embedding.weight[value].abs().argsort(descending=True)
    v, u = (normalize(vectors[value][order], dim=1) for vectors in (embedding.v, embedding.u))
    return Terms(v, embedding.weight[value][order], u)


@torch.no_grad()
def matrices(run: Run) -> list[Float[Tensor, "values height width"]]:
    """Every value's embedding matrix, one stack a factor."""
    return [embedding.matrices() for embedding in embeddings_of(run.result.module)]


def rank(run: Run) -> float:
    """The effective rank of an embedding, mean over all values of both factors."""
    return mean_rank(matrices(run))


def own_axis(run: Run) -> float:
    """The share of the embeddings' variance that lies along their own factor's axis."""
    of_x, of_y = matrices(run)
    return own_axis_share(of_x, of_y) or 0.0


@dataclass(frozen=True)
class Embeddings:
    """Embedding matrices of some values, by the run's penalties and the factor, and what they are like in each seed."""

    values: tuple[int, ...]
    seeds: dict[str, list[int]]
    shown: dict[str, dict[str, Float[Tensor, "values height width"]]]
    ranks: dict[str, list[float]]
    own_axes: dict[str, list[float]]

    def table(self) -> Rows:
        return [
            {"penalties": name, "seed": seed, "effective rank": rank, "share along own axis": share}
            for name, seeds in self.seeds.items()
            for seed, rank, share in zip(seeds, self.ranks[name], self.own_axes[name], strict=True)
        ]


def embeddings_in_the_middle(evidence: Evidence) -> Embeddings:
    return _embeddings(evidence, (middle(evidence.preset.lowrank_size),))


def embeddings_of_several(evidence: Evidence) -> Embeddings:
    """Six values from end to end."""
    spaced = torch.linspace(0, evidence.preset.lowrank_size - 1, 6).round().long()
    return _embeddings(evidence, tuple(spaced.tolist()))


def _embeddings(evidence: Evidence, values: tuple[int, ...]) -> Embeddings:
    stacks = {name: matrices(evidence.first(name)) for name in evidence}
    return Embeddings(
        values=values,
        seeds={name: [run.spec.seed for run in runs] for name, runs in evidence.items()},
        shown={name: {"x": x[list(values)], "y": y[list(values)]} for name, (x, y) in stacks.items()},
        ranks={name: [rank(run) for run in runs] for name, runs in evidence.items()},
        own_axes={name: [own_axis(run) for run in runs] for name, runs in evidence.items()},
    )


@dataclass(frozen=True)
class Ablation:
    """Seen and held-out error and held-out accuracy of every run, by penalties; `blank`: an empty image's error.

    - `seeds`: by penalties, in the order of the numbers.
    """

    seeds: dict[str, list[int]]
    seen: dict[str, list[float]]
    heldout: dict[str, list[float]]
    accuracy: dict[str, list[float]]
    blank: float

    def table(self) -> Rows:
        return [
            {
                "penalties": name,
                "seed": seed,
                "seen MSE": self.seen[name][n],
                "held-out MSE": self.heldout[name][n],
                "blank MSE": self.blank,
                "held-out accuracy": self.accuracy[name][n],
            }
            for name, seeds in self.seeds.items()
            for n, seed in enumerate(seeds)
        ]


def ablation_errors(evidence: Evidence) -> Ablation:
    def gathered(measure: str) -> dict[str, list[float]]:
        return {name: [run.error[measure] for run in runs] for name, runs in evidence.items()}

    return Ablation(
        seeds={name: [run.spec.seed for run in runs] for name, runs in evidence.items()},
        seen=gathered("seen_mse"),
        heldout=gathered("heldout_mse"),
        accuracy=gathered("accuracy"),
        blank=evidence.first("none").error["blank_mse"],
    )
