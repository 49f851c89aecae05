"""What figure 9 shows: the images drawn in the gap, the error by angle, and how each layer goes through the gap."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.activations.recording import record
from composcope.diagnosis import Diagnosis
from composcope.diagnosis.layers import LayerDiagnosis
from composcope.measures.error import mse, shape_correlation
from composcope.measures.manifold import Embedding, embed, umap_installed
from composcope.measures.superposition import GapBlend, edge_blend, gap_blend
from composcope.runs.run import Run
from composcope.study.evidence import Evidence
from composcope.study.panel import Rows
from composcope.tasks.base import Images

SHOWN = 7  # angles of the gap that are drawn
NEIGHBOURS, UMAP_SEED = 15, 42  # the paper's settings; its min_dist of 0.1 is UMAP's default


@dataclass(frozen=True)
class InGap:
    """The gap of one run: what is drawn, what it is compared with, and how close it is to each.

    - `blend`: the linear blend of the seen images at the gap's two edges; `edge`: the closer of the two.
    """

    angles: Float[Tensor, "gap"]
    truth: Images
    outputs: Images
    blend: Images
    edge: Images

    @property
    def comparison(self) -> GapBlend:
        """The outputs compared with the blend and with the truth, image by image."""
        return gap_blend(self.outputs, self.blend, self.truth)

    @property
    def to_edge(self) -> float:
        """MSE to the image at the closer edge."""
        return mse(self.outputs, self.edge).double().mean().item()

    @property
    def to_blend(self) -> float:
        return self.comparison.mse_to_blend.double().mean().item()

    @property
    def to_truth(self) -> float:
        return self.comparison.mse_to_truth.double().mean().item()


def in_gap(run: Run) -> InGap:
    """What a run draws at the held-out angles."""
    heldout, latents, factors = run.split.mask, run.split.latents, run.spec.task.factors
    blend = edge_blend(run.truth, latents, heldout, factors, "angle")
    angles, seen = latents[heldout, 0], latents[~heldout, 0]
    nearest = factors[0].difference(angles[:, None], seen[None, :]).abs().argmin(1)
    return InGap(angles, run.truth[heldout], run.draw()[heldout], blend, run.truth[~heldout][nearest])


def hidden(diagnosis: Diagnosis) -> list[str]:
    """The layers between code and image."""
    return [name for name in diagnosis.layers if name not in ("code", "image")]


def pace(layer: LayerDiagnosis, heldout: Bool[Tensor, "n"]) -> Float[Tensor, "n"]:
    """|d activation / d angle| over its median on the seen angles: 1 where the layer changes as fast as there."""
    if layer.geometry is None:
        raise ValueError(f"the diagnosis has no geometry of layer {layer.name!r}")
    speed = layer.geometry.volume
    return speed / speed[~heldout].median()


@torch.no_grad()
def embeddings(run: Run, layers: Sequence[str]) -> dict[str, Embedding]:
    """The angles in two dimensions, as each layer represents them: by UMAP if it is installed, otherwise by PCA."""
    if not umap_installed():
        known = {name: run.diagnosis.layers[name].manifold for name in layers}
        return {name: manifold for name, manifold in known.items() if manifold is not None}
    codes = run.spec.encoding.encode(run.split.latents, run.spec.task.factors)
    parts = [record(run.drawer, part)[0] for part in codes.split(128)]  # in bounded memory
    activations = {name: torch.cat([part[name].flatten(1) for part in parts]) for name in layers}
    return {name: embed(values, 2, UMAP_SEED, NEIGHBOURS) for name, values in activations.items()}


@dataclass(frozen=True)
class Rotation:
    """What figure 9 shows.

    - `errors`: MSE by seed and angle; `blank`: that of a blank image; `between`: that of the blend, in the gap.
    - `paces`: by layer, seed and angle; `untrained`: that of the last hidden layer before training.
    - `embeddings`: by layer, and `gap`: what is drawn there, of the first seed. `scores`: one row per seed.
    """

    angles: Float[Tensor, "angles"]
    heldout: Bool[Tensor, "angles"]
    errors: Float[Tensor, "seeds angles"]
    blank: Float[Tensor, "angles"]
    between: Float[Tensor, "gap"]
    paces: dict[str, Float[Tensor, "seeds angles"]]
    untrained: Float[Tensor, "seeds angles"]
    embeddings: dict[str, Embedding]
    gap: InGap
    scores: Rows

    @property
    def shown(self) -> Tensor:
        """Indices in the gap that are drawn, evenly spread from edge to edge."""
        count = len(self.gap.angles)
        return torch.linspace(0, count - 1, min(SHOWN, count)).round().long()

    def table(self) -> Rows:
        return self.scores


def rotation(evidence: Evidence) -> Rotation:
    """Error, pace and images of every seed, and the layers of the first seed."""
    runs = evidence["rotation"]
    first = runs[0]
    heldout, gap = first.split.mask, in_gap(first)
    layers = [*hidden(first.diagnosis), "image"]
    untrained = [run.diagnosis.untrained for run in runs if run.diagnosis.untrained is not None]
    before = [pace(network[layers[-2]], heldout) for network in untrained]
    return Rotation(
        angles=first.split.latents[:, 0],
        heldout=heldout,
        errors=torch.stack([run.diagnosis.error.map for run in runs]),
        blank=first.diagnosis.error.maps["blank_mse"],
        between=mse(gap.blend, gap.truth),
        paces={name: torch.stack([pace(run.diagnosis.layers[name], heldout) for run in runs]) for name in layers},
        untrained=torch.stack(before) if before else torch.zeros(0, len(heldout)),
        embeddings=embeddings(first, layers),
        gap=gap,
        scores=[_scores(run, layers) for run in runs],
    )


def _scores(run: Run, layers: Sequence[str]) -> dict[str, object]:
    gap, error, heldout = in_gap(run), run.diagnosis.error, run.split.mask
    comparison = gap.comparison
    row: dict[str, object] = {
        "seed": run.spec.seed,
        "seen MSE": error.map[~heldout].mean().item(),
        "gap MSE": gap.to_truth,
        "blank MSE": error.maps["blank_mse"][heldout].mean().item(),
        "MSE to blend": gap.to_blend,
        "MSE to closer edge": gap.to_edge,
        "share closer to blend than to truth": comparison.share_nearer_blend,
        "correlation with blend": comparison.correlation_with_blend.mean().item(),
        "correlation with truth": comparison.correlation_with_truth.mean().item(),
        "blend's correlation with truth": shape_correlation(gap.blend, gap.truth).mean().item(),
    }
    paces = {layer: pace(run.diagnosis.layers[layer], heldout)[heldout] for layer in layers}
    return row | {f"pace in gap, {layer}": values.median().item() for layer, values in paces.items()}
