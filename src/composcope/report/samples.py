"""What a decoder draws at some held-out combinations, beside the truth."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d

from composcope.activations import Pick, Subject
from composcope.encodings import Encoding
from composcope.errors import BadInput
from composcope.experiments.run import build
from composcope.experiments.store import Store
from composcope.factors import Latents
from composcope.holdouts import Holdout, split
from composcope.measures.grid import grid_index
from composcope.report.maps import MOST, levels
from composcope.report.page import packed
from composcope.tasks.base import Images, Task


@dataclass(frozen=True)
class Samples:
    """What is held out, in the grid's order, and some held-out images beside the truth.

    - `rows`: which of the held-out points are shown, numbered among them; of all points where nothing is held out.
    """

    heldout: Bool[Tensor, "points"]
    rows: tuple[int, ...]
    latents: Float[Tensor, "shown factors"]
    truth: Float[Tensor, "shown channels height width"]
    images: Float[Tensor, "shown channels height width"]


def samples(task: Task, holdout: Holdout, draw: Callable[[Latents], Images], count: int = 6) -> Samples:
    """`count` held-out points, evenly along their list, as the task and as `draw` have them."""
    parts = split(task, holdout)
    place = grid_index(parts.latents, task.factors).numpy()
    order = torch.from_numpy(np.lexsort(place.T[::-1]))  # the first factor slowest, as in a diagnosis
    latents, mask = parts.latents[order], parts.mask[order]
    pool = latents[mask] if mask.any() else latents
    rows = torch.linspace(0, len(pool) - 1, min(count, len(pool))).round().long()
    shown = pool[rows]
    return Samples(mask, tuple(rows.tolist()), shown, task.render(shown).float(), draw(shown))


def module_samples(module: nn.Module, task: Task, holdout: Holdout, encoding: Encoding, pick: Pick = None) -> Samples:
    """Those of any module from codes to images."""

    def draw(latents: Latents) -> Images:
        codes = encoding.encode(latents, task.factors)
        return Subject(module, codes, pick).images(codes)

    return samples(task, holdout, draw)


def run_samples(store: Store, run_id: str) -> Samples:
    """Those of a stored run."""
    spec = store.spec(run_id)
    module = build(spec)
    module.load_state_dict(store.weights(run_id))
    drawer = spec.decoder.drawer(module)
    if drawer is None:
        raise BadInput(f"run {run_id}: {type(spec.decoder).__name__} draws no images")
    return module_samples(drawer, spec.task, spec.holdout, spec.encoding)


def packed_images(shown: Samples) -> dict[str, Any]:
    """Truth and drawn images, (2, images, height, width, channels), 0..1 as 0..254; averaged where they are large."""
    pair = torch.stack([shown.truth, shown.images]).flip(-2)
    height, width = pair.shape[-2:]
    if max(height, width) > MOST:
        pair = torch.stack([adaptive_avg_pool2d(one, (min(height, MOST), min(width, MOST))) for one in pair])
    if pair.shape[2] not in (1, 3):
        pair = pair.mean(2, keepdim=True)
    return packed(levels(pair.movedim(2, -1), 0.0, 1.0))
