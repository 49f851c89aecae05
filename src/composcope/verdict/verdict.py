"""The verdict: what a decoder does on held-out combinations, beside what it does on seen ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from composcope.factors import Factor, Latents
from composcope.measures.error import blank_mse, has_learned, mse
from composcope.measures.grid import grid_index
from composcope.randomness import some_rows
from composcope.tasks.base import Images
from composcope.verdict.classes import KINDS, MIN_RECOGNISED, NOT_LEARNED, Placed, place, recognised, within_one_step
from composcope.verdict.readings import Calibration
from composcope.verdict.references import Pictures, is_additive
from composcope.verdict.residuals import to_combinations, world_of

REPEATS = 1000
# Images of which the weights are drawn at a time, times repeats: bounds the memory.
MAX_WEIGHTS = 20_000_000


def cluster_interval(
    values: Float[Tensor, "n"], index: Int[Tensor, "n factors"], seed: int = 0
) -> tuple[float, float] | None:
    """A 95 % interval of the values' mean by a bootstrap over factor values; None for fewer than two values of each.

    Neighbouring combinations are not independent, so factor values are drawn with replacement rather than images: an
    image's weight is the product over factors of how often its value was drawn (the pigeonhole bootstrap, Owen 2007).
    A factor with one value among the images is left as it is. Where all values agree the interval has no width.
    """
    columns = [column for column in index.unbind(1) if len(column.unique()) > 1]
    if not columns:
        return None
    rng = torch.Generator().manual_seed(seed)
    repeats = max(1, min(REPEATS, MAX_WEIGHTS // len(values)))
    weights = torch.ones(repeats, len(values), dtype=torch.float64)
    for column in columns:
        present, member = column.unique(return_inverse=True)
        draws = torch.randint(len(present), (repeats, len(present)), generator=rng)
        counts = torch.zeros(repeats, len(present), dtype=torch.float64)
        counts.scatter_add_(1, draws, torch.ones_like(draws, dtype=torch.float64))
        weights *= counts[:, member]
    total = weights.sum(1)
    means = (weights @ values.double())[total > 0] / total[total > 0]
    low, high = torch.quantile(means, torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    return low, high


# Multiplications of pixels when images are compared with candidates, about a second on one core. At least this many
# images are classified even so.
MAX_PRODUCTS, MIN_CLASSIFIED = 2e10, 200
# Combinations whose true images each image is compared with; those that differ in one factor are always among them.
MAX_CANDIDATES = 20_000
# Seen images that are classified as the control: they only tell whether most of what was seen is drawn.
CONTROLS = 128
# Seen images whose mean error tells whether the decoder has learned, at most.
MAX_SEEN = 2048
CHUNK = 256  # images at a time


@dataclass(frozen=True)
class Verdict:
    """What a decoder does on held-out combinations.

    - `kind`: what most held-out images do, or "has not learned" (unless seen images, too, are what each factor does by
      itself: a decoder that is additive everywhere "adds"); `score`: the share of images won by the composer, None
      for a decoder that has not learned; `interval`: 95 % of the score, by a bootstrap over factor values.
    - `shares`, `seen_shares`: of every class among held-out and among seen images, by the names in `KINDS`.
    - `classes`: the class of each held-out image, "" if it was not classified; `residuals`: the share of each such
      image's energy that each reference's best fit leaves, NaN where the reference has nothing to offer.
    - `factors`: for each factor, the share of held-out images that show its true value; `within_one_step`: the same
      give or take one step, for ordered factors; `seen_factors`: of seen images.
    - `confusion`: for each factor, how many images of a value (row) show which (column); the last column counts images
      that show no combination.
    - `values`: of each factor, in the order of rows and columns; `names`: of a factor's values, if these have names.
    - `pairs`: for two factors, the share of the images of each pair of values in which both are right; NaN where none
      is held out.
    - `without_dictionary`: number of images for which no seen image shares all but one factor's value, so that there
      is no superposer. `judged`: how many held-out images were classified; `spread`: standard deviation of the score
      over draws, if there were several.
    - `evidence`: "true images", or "readers" where no combination has one true image; `reader`: what these rest on.
    """

    kind: str
    score: float | None
    shares: dict[str, float]
    classes: tuple[str, ...]
    residuals: dict[str, Float[Tensor, "heldout"]]
    without_dictionary: int
    interval: tuple[float, float] | None = None
    seen_shares: dict[str, float] = field(default_factory=dict)
    factors: dict[str, float] = field(default_factory=dict)
    within_one_step: dict[str, float] = field(default_factory=dict)
    seen_factors: dict[str, float] = field(default_factory=dict)
    confusion: dict[str, Int[Tensor, "true shown"]] = field(default_factory=dict)
    pairs: dict[tuple[str, str], Float[Tensor, "first second"]] = field(default_factory=dict)
    values: dict[str, tuple[float, ...]] = field(default_factory=dict)
    judged: int | None = None
    spread: float | None = None
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    evidence: str = "true images"
    reader: Calibration | None = None

    def label(self, factor: str, index: int) -> str:
        """A factor's value in words: its name if it has one, else the number."""
        return self.names[factor][index] if factor in self.names else f"{self.values[factor][index]:g}"

    @property
    def failing(self) -> list[str]:
        """Factors that are wrong in more than a tenth of the images that show some combination, the worst first."""
        wrong = {}
        for name, counts in self.confusion.items():
            if counts.is_meta:  # read back without arrays
                return []
            count = counts[:, :-1].sum().item()
            if count and counts.diagonal().sum().item() < 0.9 * count:
                wrong[name] = counts.diagonal().sum().item() / count
        return sorted(wrong, key=lambda name: wrong[name])


def classify(
    outputs: Images | Sequence[Images],
    truth: Pictures,
    latents: Latents,
    heldout: Bool[Tensor, "n"],
    factors: Sequence[Factor],
    cross: Pictures | None = None,
    seed: int = 0,
    classifiable: Bool[Tensor, "n"] | None = None,
) -> Verdict:
    """Place each held-out image among the references, and seen ones as a control.

    - `outputs`, `truth`: foregrounds over the same points; several draws of a random decoder may be given.
    - `cross`: the sum of the truth's stripes at each point, if the task has any; else that reference is left out.
    - `classifiable`: the points that may be classified, all by default.

    The references are drawn with the defect that the decoder has on seen images (see `defect.py`); an image belongs to
    the one with the least residual (see `placing.py`).
    """
    draws = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    if not heldout.any():
        raise ValueError("there are no held-out points to classify")
    if any(draw.shape != truth.shape for draw in draws) or len(latents) != len(truth):
        shapes = [tuple(draw.shape) for draw in draws], tuple(truth.shape), tuple(latents.shape)
        raise ValueError(f"outputs, truth and latents must be over the same points; got shapes {shapes}")
    truth = truth.float() if isinstance(truth, Tensor) else truth
    cross = cross.float() if isinstance(cross, Tensor) else cross
    index = grid_index(latents, factors)
    allowed = torch.ones_like(heldout) if classifiable is None else classifiable
    rows, controls, candidates = _chosen(index, heldout, allowed, truth.shape[1:].numel(), seed)
    held, seen = [], []
    combinations_seen = ~heldout & (index >= 0).all(1)
    for draw in draws:
        world = world_of(draw.float(), truth, index, combinations_seen, factors, cross, candidates)
        compared = to_combinations(world, torch.cat([rows, controls]))
        held.append(place(world, rows, compared[: len(rows)]))
        seen.append(place(world, controls, compared[len(rows) :]))
    learned = not len(controls) or any(
        _learned(draw, truth, ~heldout, control, factors) for draw, control in zip(draws, seen, strict=True)
    )
    adds = not learned and all(is_additive(draw, truth, index, combinations_seen, factors) for draw in draws)
    return _summed_up(held, seen, rows, heldout, factors, learned or (adds and _mostly_added(held)), seed)


def _mostly_added(draws: Sequence[Placed]) -> bool:
    """Whether held-out images are mostly sums, as the seen ones are: then that is what the decoder does everywhere."""
    return kind_of(_shares(draws)) == KINDS["additive"]


def _chosen(
    index: Int[Tensor, "n factors"], heldout: Bool[Tensor, "n"], allowed: Bool[Tensor, "n"], pixels: int, seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Which held-out and which seen images are classified, and among which combinations they are placed."""
    rng = torch.Generator().manual_seed(seed)
    on_grid = (index >= 0).all(1) | heldout  # a seen stripe lacks a factor: it is no combination
    candidates = some_rows(on_grid.nonzero()[:, 0], MAX_CANDIDATES, rng)
    most = max(MIN_CLASSIFIED, int(MAX_PRODUCTS / (len(candidates) * pixels)) - CONTROLS)
    rows = some_rows((heldout & allowed).nonzero()[:, 0], most, rng)
    controls = some_rows((~heldout & on_grid & allowed).nonzero()[:, 0], CONTROLS, rng)
    if len(candidates) < on_grid.sum():
        # Those that differ from a classified image in one factor are the likeliest mistakes: they are never left out.
        beside = torch.zeros(len(index), dtype=torch.bool)
        for row in torch.cat([rows, controls]).tolist():
            beside |= (index == index[row]).sum(1) >= index.shape[1] - 1
        candidates = torch.cat([candidates, (beside & on_grid).nonzero()[:, 0]]).unique()
    return rows, controls, candidates


def _learned(
    outputs: Images, truth: Pictures, seen: Bool[Tensor, "n"], control: Placed, factors: Sequence[Factor]
) -> bool:
    """Whether seen images are drawn, by `has_learned` with or without the decoder's defect, and recognised."""
    error, blank = 0.0, 0.0
    rows_seen = seen.nonzero()[:, 0]
    chosen = rows_seen[torch.linspace(0, len(rows_seen) - 1, min(len(rows_seen), MAX_SEEN)).long()]
    for rows in chosen.split(CHUNK):
        true = truth[rows]
        error += mse(outputs[rows], true).sum().item()
        blank += blank_mse(true).sum().item()
    plain = has_learned(error, blank)
    apart_from_defect = has_learned(control.error.sum().item(), control.energy.sum().item())
    return (plain or apart_from_defect) and recognised(control, factors).mean().item() >= MIN_RECOGNISED


def _summed_up(
    held: Sequence[Placed],
    seen: Sequence[Placed],
    rows: Int[Tensor, "classified"],
    heldout: Bool[Tensor, "n"],
    factors: Sequence[Factor],
    learned: bool,
    seed: int,
) -> Verdict:
    """The verdict from the placed images of every draw."""
    index, combination = (torch.cat([getattr(images, name) for images in held]) for name in ("index", "shown"))
    composed = torch.tensor([name == "composer" for images in held for name in images.classes]).double()
    shares = _shares(held)
    by_draw = composed.reshape(len(held), -1).mean(1)
    classes = [""] * int(heldout.sum())
    position = heldout.cumsum(0) - 1
    for row, name in zip(position[rows].tolist(), held[0].classes, strict=True):
        classes[row] = name
    right = index == combination
    return Verdict(
        kind=kind_of(shares) if learned else NOT_LEARNED,
        score=shares["composer"] if learned else None,
        shares=shares,
        classes=tuple(classes),
        residuals=held[0].residuals,
        without_dictionary=int(held[0].residuals["superposer"].isnan().sum()),
        interval=cluster_interval(composed, index, seed) if learned else None,
        seen_shares=_shares(seen),
        factors=_right(index, combination, factors),
        within_one_step={
            factor.name: within_one_step(index[:, axis], combination[:, axis], factor).double().mean().item()
            for axis, factor in enumerate(factors)
            if factor.kind != "categorical"
        },
        seen_factors=_right(
            torch.cat([images.index for images in seen]), torch.cat([images.shown for images in seen]), factors
        ),
        confusion={
            factor.name: _confusion(index[:, axis], combination[:, axis], factor.size)
            for axis, factor in enumerate(factors)
        },
        pairs={
            (factors[a].name, factors[b].name): _both_right(index[:, [a, b]], right[:, [a, b]], factors[a], factors[b])
            for a, b in combinations(range(len(factors)), 2)
        },
        values={factor.name: tuple(factor.values) for factor in factors},
        judged=len(rows),
        spread=by_draw.std().item() if len(held) > 1 else None,
        names={factor.name: factor.names for factor in factors if factor.names is not None},
    )


def _shares(draws: Sequence[Placed]) -> dict[str, float]:
    names = [name for images in draws for name in images.classes]
    return {name: names.count(name) / len(names) for name in KINDS} if names else {}


def kind_of(shares: Mapping[str, float]) -> str:
    """What the most images do; of equally many, the first in `KINDS`."""
    total = dict.fromkeys(KINDS.values(), 0.0)
    for name, kind in KINDS.items():
        total[kind] += shares[name]
    return max(total, key=lambda kind: total[kind])


def _right(
    index: Int[Tensor, "n factors"], combination: Int[Tensor, "n factors"], factors: Sequence[Factor]
) -> dict[str, float]:
    if not len(index):
        return {}
    return dict(zip((factor.name for factor in factors), (index == combination).double().mean(0).tolist(), strict=True))


def _confusion(true: Int[Tensor, "n"], other: Int[Tensor, "n"], size: int) -> Int[Tensor, "true shown"]:
    counts = torch.zeros(size, size + 1, dtype=torch.long)
    true, other = true[true >= 0], other[true >= 0]
    counts.index_put_((true, other.where(other >= 0, size)), torch.ones_like(true), accumulate=True)
    return counts


def _both_right(
    index: Int[Tensor, "n 2"], right: Bool[Tensor, "n 2"], first: Factor, second: Factor
) -> Float[Tensor, "first second"]:
    index, right = index[(index >= 0).all(1)], right[(index >= 0).all(1)]
    cells = index[:, 0] * second.size + index[:, 1]
    counts, sums = (torch.zeros(first.size * second.size, dtype=torch.float64) for _ in range(2))
    counts.index_add_(0, cells, torch.ones(len(cells), dtype=torch.float64))
    sums.index_add_(0, cells, right.all(1).double())
    return (sums / counts).reshape(first.size, second.size)
