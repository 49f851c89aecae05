"""The figure of controls: the bump code with another hole, without one, and the reverse map from images to codes."""

from dataclasses import dataclass

from jaxtyping import Bool
from torch import Tensor

from composcope.decoders.image_encoder import ImageEncoder
from composcope.diagnosis.errors import mean_over
from composcope.diagnosis.layers import true_geometry
from composcope.holdouts import Holdout, Nothing
from composcope.measures.geometry import volume_summary
from composcope.measures.grid import on_grid
from composcope.papers.forced_rendering.base import SIZES, base_spec, bump_alone
from composcope.papers.forced_rendering.controls.drawing import draw_controls
from composcope.runs.run import Run
from composcope.study.evidence import Evidence
from composcope.study.numbers import Numbers, Row
from composcope.study.panel import Panel
from composcope.study.plan import Plan, Preset, of_preset


def all_controls(preset: Preset) -> Plan:
    """Three holdouts, and the map from images to codes."""
    sizes = of_preset(SIZES, preset)
    encoder = ImageEncoder(width=sizes.width)
    return {
        "square": bump_alone(preset)["bump"],
        "corner": tuple(base_spec(preset, "bump", seed, sizes.corner) for seed in sizes.seeds),
        "no hole": tuple(base_spec(preset, "bump", seed, Nothing()) for seed in sizes.seeds),
        "image encoder": tuple(base_spec(preset, "bump", seed, decoder=encoder) for seed in sizes.few_seeds),
    }


@dataclass(frozen=True)
class Region:
    """A run's numbers inside a region of the latent plane and outside it, whether it was held out or not.

    - `share`: MSE over that of a blank image (or a code of zeros), inside and outside; `accuracy`: share within one
      step of the true position, inside and outside.
    - `volume_gap`: mean log10 dv of the image inside minus that outside, minus the same for the true images; None for
      a run that does not draw images.
    """

    share: tuple[float, float]
    accuracy: tuple[float, float]
    volume_gap: float | None


def region(run: Run, inside: Bool[Tensor, "n"]) -> Region:
    """The same numbers for every kind of run; the image encoder's are of codes."""
    shares, placed = run.point_errors.share, run.point_errors.placed
    return Region(
        share=(shares[inside].mean().item(), shares[~inside].mean().item()),
        accuracy=(mean_over(placed, inside) or 0.0, mean_over(placed, ~inside) or 0.0),
        volume_gap=volume_gap(run, inside),
    )


def volume_gap(run: Run, inside: Bool[Tensor, "n"]) -> float | None:
    """By how many powers of ten the image's volume is larger inside than outside, beyond what true images have."""
    geometry = run.diagnosis.layers["image"].geometry if run.spec.decoder.draws else None
    if geometry is None:
        return None
    gap = volume_summary(geometry.volume, inside).gap
    true = true_geometry(run.spec.task, run.split.latents, inside).volumes.gap
    return None if gap is None or true is None else gap - true


def compared_region(run: Run, hole: Holdout) -> Bool[Tensor, "n"]:
    """What was held out or, if nothing was, what this hole would hold out."""
    mask = run.split.mask
    return mask if mask.any() else hole.contains(run.split.latents, run.spec.task.factors)


def controls(evidence: Evidence) -> Numbers:
    """Errors, accuracy and volume of every run, in the region and outside; of the first seed the error over the plane.

    Without a hole the region is where the square would be.
    """
    hole = of_preset(SIZES, evidence.preset).hole

    def numbers(run: Run) -> Row:
        each = region(run, compared_region(run, hole))
        return {
            "region": "held out" if run.split.mask.any() else "the middle, seen",
            "MSE / blank, outside": each.share[1],
            "MSE / blank, in the region": each.share[0],
            "within 1 pixel, outside": each.accuracy[1],
            "within 1 pixel, in the region": each.accuracy[0],
            "log10 volume, region minus rest": each.volume_gap,
        }

    def maps(run: Run) -> Row:
        factors = run.spec.task.factors
        return {
            "region": on_grid(compared_region(run, hole), factors),
            "held out": bool(run.split.mask.any()),
            "share": on_grid(run.point_errors.share, factors),
        }

    return evidence.numbers("run", numbers, maps)


PANELS = (
    Panel(
        "controls",
        "Another hole, no hole, the reverse map",
        "Whether the failure follows the hole: in the middle, in a corner, nowhere (dotted: where the square would "
        "be); and the map from images to codes.",
        all_controls,
        controls,
        draw_controls,
        first_seed="maps",
    ),
)
