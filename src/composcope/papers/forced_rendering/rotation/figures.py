"""Figure 9: a rotated digit, all angles seen except a gap; what is drawn there, and how each layer goes through it."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.activations.recording import record
from composcope.decoders.base import Decoder
from composcope.decoders.cnn import CNN, DigitCNN
from composcope.diagnosis import Diagnosis
from composcope.diagnosis.layers import LayerDiagnosis
from composcope.encodings import Circle
from composcope.holdouts import Interval
from composcope.measures.error import mse, shape_correlation
from composcope.measures.manifold import Embedding, embed, umap_installed
from composcope.measures.superposition import GapBlend, edge_blend, gap_blend
from composcope.papers.forced_rendering.base import PAPER_SEEDS, QUICK_SEEDS
from composcope.papers.forced_rendering.rotation.drawing import draw_rotation
from composcope.runs.run import Run
from composcope.runs.spec import Spec
from composcope.sampling import Everything
from composcope.study.evidence import Evidence
from composcope.study.numbers import Numbers, Row
from composcope.study.panel import Panel
from composcope.study.plan import Plan, Preset, of_preset
from composcope.tasks.base import Images
from composcope.tasks.rotation import RotationTask
from composcope.training import Training

NEIGHBOURS, UMAP_SEED = 15, 42  # the paper's settings; its min_dist of 0.1 is UMAP's default


@dataclass(frozen=True)
class Sizes:
    """What is trained, and for how long; `angles`: how many, evenly spaced over the circle."""

    angles: int
    decoder: Decoder
    training: Training
    seeds: tuple[int, ...]


AS_LONG = Training(epochs=200, weight_decay=1e-4, l1=0.1, schedule="cosine")
"""The authors' length and loss."""

AUTHORS = Training(epochs=200, weight_decay=1e-4, l1=0.1, schedule="plateau", clip=1.0, validation=0.1)


def small(width: int) -> CNN:
    return CNN(depth=2, width=width, batch_norm=True, output="sigmoid", last_init="transposed")


# 999 angles less [160, 200) are the authors' 888, a tenth of which they keep for validation.
SIZES = {
    "quick": Sizes(222, small(24), AS_LONG, seeds=QUICK_SEEDS),
    "paper": Sizes(999, DigitCNN(), AUTHORS, seeds=PAPER_SEEDS),
    "tiny": Sizes(24, small(4), Training(steps=3), seeds=(0, 1)),
}


def gap(preset: Preset) -> Plan:
    """A handwritten 4, angles from 160 up to 200 degrees held out, a CNN with batch norm."""
    sizes = of_preset(SIZES, preset)
    return {
        "rotation": tuple(
            Spec(
                task=RotationTask(angles=sizes.angles),
                holdout=Interval("angle", 160, 200, closed="left"),
                encoding=Circle(),
                decoder=sizes.decoder,
                sampling=Everything(),
                training=sizes.training,
                seed=seed,
            )
            for seed in sizes.seeds
        )
    }


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


def hidden_names(diagnosis: Diagnosis) -> list[str]:
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
        manifolds = {name: run.diagnosis.layers[name].manifold for name in layers}
        return {name: manifold for name, manifold in manifolds.items() if manifold is not None}
    codes = run.spec.encoding.encode(run.split.latents, run.spec.task.factors)
    parts = [record(run.drawer, part)[0] for part in codes.split(128)]  # in bounded memory
    activations = {name: torch.cat([part[name].flatten(1) for part in parts]) for name in layers}
    return {name: embed(values, 2, UMAP_SEED, NEIGHBOURS) for name, values in activations.items()}


def rotation(evidence: Evidence) -> Numbers:
    """Error and pace by angle; of the first seed the images in the gap, and each layer in two dimensions."""
    any_run = evidence.any_run
    heldout = any_run.split.mask
    layers = [*hidden_names(any_run.diagnosis), "image"]
    common = {
        "angles": any_run.split.latents[:, 0],
        "heldout": heldout,
        "blank": any_run.diagnosis.error.maps["blank_mse"],
        "layers": layers,
    }

    def numbers(run: Run) -> Row:
        row = _scores(run, layers)
        row["errors"] = run.diagnosis.error.map
        row |= {f"pace, {name}": pace(run.diagnosis.layers[name], heldout) for name in layers}
        if run.diagnosis.untrained is not None:  # of the last hidden layer
            row["pace before training"] = pace(run.diagnosis.untrained[layers[-2]], heldout)
        return row

    def shown(run: Run) -> Row:
        gap = in_gap(run)
        images = {"truth": gap.truth, "decoder": gap.outputs, "blend": gap.blend}
        embedded = {
            name: {"method": each.method, "coordinates": each.coordinates, "explained": each.explained}
            for name, each in embeddings(run, layers).items()
        }
        return {"angles in the gap": gap.angles, "images": images, "embeddings": embedded}

    return evidence.numbers("run", numbers, shown, common)


def _scores(run: Run, layers: Sequence[str]) -> Row:
    gap, error, heldout = in_gap(run), run.diagnosis.error, run.split.mask
    comparison = gap.comparison
    row: Row = {
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


PANELS = (
    Panel(
        name="9",
        title="A gap in the angles of a rotated digit",
        see=(
            "At the bottom, the decoder's images in the gap between the truth above them and the blend of the gap's"
            " edges below them; at the top, the error by angle and how fast each layer changes, the gap shaded."
        ),
        plan=gap,
        numbers=rotation,
        draw=draw_rotation,
        first_seed="embeddings and images",
    ),
)
