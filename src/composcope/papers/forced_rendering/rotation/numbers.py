"""Figure 9: a digit turned through all angles but a gap; what is drawn in the gap."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.decoders.cnn import CNN
from composcope.diagnosis import Diagnosis
from composcope.diagnosis.layers import LayerDiagnosis
from composcope.encodings import Circle
from composcope.experiments.spec import Spec
from composcope.holdouts import Interval
from composcope.measures.error import mse, shape_correlation
from composcope.measures.superposition import GapBlend, edge_blend, gap_blend
from composcope.paper.evidence import Evidence, Plan, Rows, Run
from composcope.paper.preset import Preset
from composcope.sampling import Everything
from composcope.tasks.base import Images
from composcope.tasks.rotation import RotationTask

SHOWN = 7  # angles of the gap that are drawn


def gap(preset: Preset) -> Plan:
    """A handwritten 4, angles strictly between 160 and 200 degrees withheld, a CNN with batch norm."""
    decoder = CNN(depth=3, width=preset.rotation_width, batch_norm=True, output="sigmoid")
    return {
        "rotation": tuple(
            Spec(
                task=RotationTask(angles=preset.angles),
                holdout=Interval("angle", 160, 200, closed="neither"),
                encoding=Circle(),
                decoder=decoder,
                sampling=Everything(),
                training=preset.rotation_training,
                seed=seed,
            )
            for seed in preset.seeds
        )
    }


@dataclass(frozen=True)
class InGap:
    """The gap of one run: what is drawn, what it is compared with, and how near it is to each.

    - `blend`: the linear blend of the seen images at the gap's two edges; `edge`: the one of them that is nearer.
    """

    angles: Float[Tensor, "gap"]
    truth: Images
    outputs: Images
    blend: Images
    edge: Images

    @property
    def found(self) -> GapBlend:
        return gap_blend(self.outputs, self.blend, self.truth)

    @property
    def to_edge(self) -> float:
        """MSE to the nearer edge's image."""
        return mse(self.outputs, self.edge).double().mean().item()

    @property
    def to_blend(self) -> float:
        return self.found.mse_to_blend.double().mean().item()

    @property
    def to_truth(self) -> float:
        return self.found.mse_to_truth.double().mean().item()


def in_gap(run: Run) -> InGap:
    """What a run draws at the withheld angles."""
    held, latents, factors = run.parts.mask, run.parts.latents, run.spec.task.factors
    blend = edge_blend(run.truth, latents, held, factors, "angle")
    angles, seen = latents[held, 0], latents[~held, 0]
    nearest = factors[0].difference(angles[:, None], seen[None, :]).abs().argmin(1)
    return InGap(angles, run.truth[held], run.images[held], blend, run.truth[~held][nearest])


def hidden(diagnosis: Diagnosis) -> list[str]:
    """The layers between code and image."""
    return [name for name in diagnosis.layers if name not in ("code", "image")]


def pace(layer: LayerDiagnosis, heldout: Bool[Tensor, "n"]) -> Float[Tensor, "n"]:
    """|d activation / d angle| over its median on the seen angles: 1 where the layer moves as fast as it does there."""
    if layer.geometry is None:
        raise ValueError(f"the diagnosis has no geometry of layer {layer.name!r}")
    speed = layer.geometry.volume
    return speed / speed[~heldout].median()


@dataclass(frozen=True)
class Rotation:
    """What figure 9 shows.

    - `errors`: MSE by seed and angle; `blank`: that of an empty image; `between`: that of the blend, in the gap.
    - `paces` by layer, seed and angle; `untrained`: that of the last hidden layer before training.
    - `manifolds`: of the first seed, three principal components a layer; `explained`: their shares of the variance.
    """

    angles: Float[Tensor, "angles"]
    heldout: Bool[Tensor, "angles"]
    errors: Float[Tensor, "seeds angles"]
    blank: Float[Tensor, "angles"]
    between: Float[Tensor, "gap"]
    paces: dict[str, Float[Tensor, "seeds angles"]]
    untrained: Float[Tensor, "seeds angles"]
    manifolds: dict[str, Float[Tensor, "angles components"]]
    explained: dict[str, Float[Tensor, "components"]]
    gaps: tuple[InGap, ...]
    seeds: tuple[int, ...]

    @property
    def shown(self) -> Tensor:
        """Places in the gap that are drawn, evenly spread from edge to edge."""
        count = len(self.gaps[0].angles)
        return torch.linspace(0, count - 1, min(SHOWN, count)).round().long()

    def table(self) -> Rows:
        return [self._row(place) for place in range(len(self.seeds))]

    def _row(self, place: int) -> dict[str, object]:
        gap, error = self.gaps[place], self.errors[place]
        near = gap.found
        row: dict[str, object] = {
            "seed": self.seeds[place],
            "seen MSE": error[~self.heldout].mean().item(),
            "gap MSE": gap.to_truth,
            "blank MSE": self.blank[self.heldout].mean().item(),
            "MSE to blend": gap.to_blend,
            "MSE to nearer edge": gap.to_edge,
            "nearer blend than truth": near.share_nearer_blend,
            "correlation with blend": near.correlation_with_blend.mean().item(),
            "correlation with truth": near.correlation_with_truth.mean().item(),
            "blend's correlation with truth": shape_correlation(gap.blend, gap.truth).mean().item(),
        }
        for layer, paces in self.paces.items():
            row |= {f"pace in gap, {layer}": paces[place][self.heldout].median().item()}
        return row


def rotation(evidence: Evidence) -> Rotation:
    """Error, pace and images of every seed, and the first seed's layers."""
    runs = evidence["rotation"]
    first = runs[0]
    held, gaps = first.parts.mask, tuple(in_gap(run) for run in runs)
    names = [*hidden(first.diagnosis), "image"]
    twins = [run.diagnosis.untrained for run in runs if run.diagnosis.untrained is not None]
    before = [pace(twin[names[-2]], held) for twin in twins]
    manifolds = {name: first.diagnosis.layers[name].manifold for name in names}
    known = {name: found for name, found in manifolds.items() if found is not None}
    return Rotation(
        angles=first.parts.latents[:, 0],
        heldout=held,
        errors=torch.stack([run.diagnosis.error.map for run in runs]),
        blank=first.diagnosis.error.maps["blank_mse"],
        between=mse(gaps[0].blend, gaps[0].truth),
        paces={name: torch.stack([pace(run.diagnosis.layers[name], held) for run in runs]) for name in names},
        untrained=torch.stack(before) if before else torch.zeros(0, len(held)),
        manifolds={name: found.coordinates for name, found in known.items()},
        explained={name: found.explained for name, found in known.items() if found.explained is not None},
        gaps=gaps,
        seeds=tuple(run.spec.seed for run in runs),
    )
