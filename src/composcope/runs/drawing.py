"""A spec's split and a run's images as charts, from tensors."""

from collections.abc import Sequence

import torch
from matplotlib.axes import Axes as Axes
from torch import Tensor

from composcope.diagnosis.drawing import HELDOUT, SEEN, new_axes
from composcope.factors import Factor


def draw_split(factors: Sequence[Factor], latents: Tensor, mask: Tensor, ax: Axes | None = None) -> Axes:
    """The grid over the first two factors: seen and held-out combinations. Of further factors, any that is held out."""
    axes = ax or new_axes(3.2, 3.2)
    names = [factor.name for factor in factors]
    second = latents[:, 1] if len(names) > 1 else torch.zeros(len(latents))
    first, second_values, heldout = latents[:, 0].numpy(), second.numpy(), mask.numpy()
    for rows, colour, label in ((~heldout, SEEN, "seen"), (heldout, HELDOUT, "held-out")):
        axes.scatter(first[rows], second_values[rows], s=12, color=colour, label=label)
    axes.set(xlabel=names[0], ylabel=names[1] if len(names) > 1 else "", aspect="equal" if len(names) > 1 else "auto")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return axes


def draw_images(truth: Tensor, outputs: Tensor, labels: Sequence[str], ax: Axes | None = None) -> Axes:
    """True images above drawn ones, side by side in one picture, with the origin at the lower left."""
    axes = ax or new_axes(1.0 * len(truth) + 0.6, 2.4)
    height, width = truth.shape[-2:]
    rows = [torch.cat([_framed(image) for image in images], dim=2) for images in (outputs, truth)]
    picture = torch.cat(rows, dim=1).permute(1, 2, 0).numpy()
    gray = picture.shape[2] != 3
    axes.imshow(picture[..., 0] if gray else picture.clip(0, 1), origin="lower", cmap="gray", vmin=0, vmax=1)
    axes.set_yticks([height / 2, height + 1 + height / 2], ["drawn", "true"])
    axes.set_xticks([index * (width + 1) + width / 2 for index in range(len(truth))], labels)
    axes.tick_params(length=0)
    return axes


def _framed(image: Tensor) -> Tensor:
    """The image with a grey line at its right and its upper edge, to tell neighbours apart."""
    return torch.nn.functional.pad(image, (0, 1, 0, 1), value=0.5)
