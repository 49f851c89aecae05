"""Figures 1a to 1c and 5: the failure, whatever the code. The runs that most of the paper varies are planned here."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.decoders.base import Decoder
from composcope.decoders.cnn import CNN
from composcope.decoders.image_encoder import ImageEncoder
from composcope.diagnosis.outputs import Errors
from composcope.encodings import Bump, Encoding, OneHot, Positional, Rate
from composcope.experiments.spec import Spec
from composcope.factors import Latents
from composcope.holdouts import Holdout, Nothing, split
from composcope.measures.grid import grid_sizes, on_grid
from composcope.paper.evidence import Evidence, Plan, Rows, Run
from composcope.paper.preset import Preset
from composcope.tasks.base import Images
from composcope.tasks.bump import BumpTask

CODES: dict[str, Encoding] = {"bump": Bump(), "rate": Rate(), "one-hot": OneHot(), "positional": Positional()}


@cache
def spec(preset: Preset, code: str, seed: int, holdout: Holdout | None = None, decoder: Decoder | None = None) -> Spec:
    """The run that most figures vary: dark bumps, a square hole, a CNN."""
    return Spec(
        task=BumpTask(preset.size),
        holdout=preset.hole if holdout is None else holdout,
        encoding=CODES[code],
        decoder=decoder or CNN(depth=preset.depth, width=preset.width),
        sampling=preset.sampling,
        training=preset.patient if code == "rate" else preset.training,
        seed=seed,
    )


def both(preset: Preset) -> Plan:
    """The paper's two codes."""
    return {code: tuple(spec(preset, code, seed) for seed in preset.seeds) for code in ("bump", "rate")}


def every(preset: Preset) -> Plan:
    """All four codes."""
    return {code: tuple(spec(preset, code, seed) for seed in preset.seeds) for code in CODES}


def one(preset: Preset) -> Plan:
    """The bump code alone."""
    return {"bump": both(preset)["bump"]}


def local(preset: Preset) -> Plan:
    """The codes in which few units tell a value."""
    return {code: every(preset)[code] for code in ("bump", "one-hot")}


def broad(preset: Preset) -> Plan:
    """The codes in which every unit tells every value."""
    return {code: every(preset)[code] for code in ("rate", "positional")}


def nothing(preset: Preset) -> Plan:
    """No runs at all."""
    return {}


def controls(preset: Preset) -> Plan:
    """The bump code with the hole in the middle, in a corner and without one, and the map from images to codes."""
    seeds = preset.seeds
    return {
        "square": one(preset)["bump"],
        "corner": tuple(spec(preset, "bump", seed, preset.corner) for seed in seeds),
        "no hole": tuple(spec(preset, "bump", seed, Nothing()) for seed in seeds),
        "image encoder": tuple(
            spec(preset, "bump", seed, decoder=ImageEncoder(width=preset.width)) for seed in preset.few
        ),
    }


def holes(preset: Preset) -> Plan:
    """With the hole in the middle and without one."""
    return {name: controls(preset)[name] for name in ("square", "no hole")}


def corner(preset: Preset) -> Plan:
    """With the hole in a corner."""
    return {"corner": controls(preset)["corner"]}


def heldout_map(run: Run) -> Bool[Tensor, "x y"]:
    return on_grid(run.parts.mask, run.spec.task.factors)


def spread_rows(latents: Latents, mask: Bool[Tensor, "n"], across: int = 3) -> list[int]:
    """Rows of `across` x `across` points of the mask, evenly spread: the first row of images first, from the top."""
    places = []
    for values in latents[mask][:, :2].T:
        known = values.unique()
        at = ((torch.arange(across) + 0.5) * len(known) / across).long()
        places.append(known[at].tolist())
    wanted = [(x, y) for y in reversed(places[1]) for x in places[0]]
    rows = {(x, y): row for row, (x, y) in enumerate(latents[:, :2].tolist()) if mask[row]}
    return [rows[point] for point in wanted if point in rows]


@dataclass(frozen=True)
class Setup:
    """The latent plane with its hole, true images of some points, and the codes of one of them.

    - `shown`: which of the points has its codes shown; `codes`: by name, the parts that tell x and y.
    """

    heldout: Bool[Tensor, "x y"]
    points: Latents
    inside: Bool[Tensor, "points"]
    images: Images
    shown: int
    codes: dict[str, tuple[Float[Tensor, "x_units"], Float[Tensor, "y_units"]]]

    def table(self) -> Rows:
        return [
            {"code": name, "numbers that tell x": len(x), "numbers that tell y": len(y)}
            for name, (x, y) in self.codes.items()
        ]


def setup(evidence: Evidence) -> Setup:
    """Figure 1a."""
    size, hole = evidence.preset.size, evidence.preset.hole
    task = BumpTask(size)
    parts = split(task, hole)
    inside = parts.latents[spread_rows(parts.latents, parts.mask, 2)]
    low, middle = hole.lo // 2, size // 2
    high = size - 1 - low
    outside = torch.tensor([[low, high], [high, high], [low, middle], [middle, low]], dtype=inside.dtype)
    points = torch.cat([outside, inside])
    coded = {name: encoding.encode(inside[:1], task.factors)[0] for name, encoding in CODES.items()}
    return Setup(
        heldout=on_grid(parts.mask, task.factors),
        points=points,
        inside=hole.contains(points),
        images=task.render(points),
        shown=len(outside),
        codes={name: _halves(code, CODES[name], task) for name, code in coded.items()},
    )


def _halves(code: Float[Tensor, "units"], encoding: Encoding, task: BumpTask) -> tuple[Tensor, Tensor]:
    x, y = code.split(encoding.code_sizes(task.factors))
    return x, y


@dataclass(frozen=True)
class Failed:
    """One code: the error over the plane and what is drawn by the first seed, and the numbers of every seed.

    - `share`: MSE over that of a blank image, point by point; `drawn`: foregrounds of some held-out images.
    - `placed`: share of held-out images in place at each distance into the hole, a row a seed.
    """

    code: str
    heldout: Bool[Tensor, "x y"]
    share: Float[Tensor, "x y"]
    points: Latents
    drawn: Images
    seeds: tuple[int, ...]
    errors: Sequence[Errors]
    distances: Float[Tensor, "bins"]
    placed: Float[Tensor, "seeds bins"]


@dataclass(frozen=True)
class Failure:
    """Some codes, one after the other."""

    codes: tuple[Failed, ...]

    def table(self) -> Rows:
        return [
            {
                "code": found.code,
                "seed": seed,
                "seen MSE": error.seen_mse,
                "held-out MSE": error.heldout_mse,
                "blank MSE": error.blank_mse,
                "seen in place": error.seen_accuracy,
                "held-out in place": error.accuracy,
                "held-out correlation": error.heldout_correlation,
                "in place beyond 2 steps": placed_beyond(error, 2),
                "reach (grid steps)": reach(error),
            }
            for found in self.codes
            for seed, error in zip(found.seeds, found.errors, strict=True)
        ]


def failure(evidence: Evidence) -> Failure:
    """Figures 1b and 1c."""
    return Failure(tuple(_failed(code, runs) for code, runs in evidence.items()))


def _failed(code: str, runs: Sequence[Run]) -> Failed:
    first = runs[0]
    error = first.diagnosis.error
    rows = spread_rows(first.parts.latents, first.parts.mask)
    curves = [run.diagnosis.error.by_distance["placed"] for run in runs]
    return Failed(
        code=code,
        heldout=heldout_map(first),
        share=error.map / error.maps["blank_mse"],
        points=first.parts.latents[rows],
        drawn=first.spec.task.foreground(first.images[rows]),
        seeds=tuple(run.spec.seed for run in runs),
        errors=[run.diagnosis.error for run in runs],
        distances=curves[0].distances,
        placed=torch.stack([curve.means for curve in curves]),
    )


def reach(error: Errors) -> float | None:
    """Sum, over the distances into the hole, of the share of images in place there: how far in, in grid steps.

    A decoder that draws the first two rings right and nothing further has 2.
    """
    curve = error.by_distance.get("placed")
    return None if curve is None else curve.means.sum().item()


def placed_beyond(error: Errors, steps: float) -> float | None:
    """Share of images in place among those more than so many grid steps into the hole; None if none is."""
    curve = error.by_distance.get("placed")
    if curve is None or not (curve.distances > steps).any():
        return None
    deep = curve.distances > steps
    return ((curve.means * curve.counts)[deep].sum() / curve.counts[deep].sum()).item()


@dataclass(frozen=True)
class Sheet:
    """The latent plane as a layer has it: three principal components over the grid, and their shares of variance."""

    code: str
    layer: str
    units: int
    coordinates: Float[Tensor, "x y 3"]
    explained: Float[Tensor, "3"]


@dataclass(frozen=True)
class Bent:
    """The plane at the input, halfway and in the image: one row of sheets a code, the one of fewest units first."""

    heldout: Bool[Tensor, "x y"]
    sheets: tuple[tuple[Sheet, ...], ...]

    def table(self) -> Rows:
        return [
            {
                "code": sheet.code,
                "layer": sheet.layer,
                "units": sheet.units,
                **{f"share of component {i + 1}": share for i, share in enumerate(sheet.explained.tolist())},
            }
            for row in self.sheets
            for sheet in row
        ]


def bent(evidence: Evidence) -> Bent:
    """Figure 5."""
    rows = [_sheets(code, evidence.first(code)) for code in evidence]
    rows.sort(key=lambda sheets: sheets[0].units)
    return Bent(heldout_map(evidence.first(next(iter(evidence)))), tuple(rows))


def _sheets(code: str, run: Run) -> tuple[Sheet, ...]:
    """The code, the layer in the middle of the decoder, and the image; a layer that does not vary is left out."""
    layers = run.diagnosis.layers
    names = list(layers)
    sheets = []
    for name in (names[0], names[len(names) // 2], names[-1]):
        shape = layers[name].manifold
        if shape is not None and shape.explained is not None:
            units = int(torch.tensor(layers[name].shape).prod())
            sizes = grid_sizes(run.spec.task.factors)
            sheets.append(Sheet(code, name, units, shape.coordinates.reshape(*sizes, 3), shape.explained))
    return tuple(sheets)
