"""A diagnosis as a chart, and held-out images as rows of pictures."""

import torch
from matplotlib.axes import Axes as Axes
from torch import Tensor

from composcope.diagnosis.diagnosis import Diagnosis
from composcope.diagnosis.summary import headline
from composcope.factors import Latents
from composcope.tasks.base import Images

HELDOUT, SEEN = "#D55E00", "#0072B2"


def draw_shares(diagnosis: Diagnosis, ax: Axes | None = None) -> Axes:
    """What the held-out images are, class by class, beside the same classification of seen images."""
    axes = ax or new_axes(4.5, 2.6)
    verdict = diagnosis.verdict
    if verdict is None:
        raise ValueError("nothing is held out, so there is no verdict to plot")
    kinds = [kind for kind in verdict.shares if verdict.shares[kind] or verdict.seen_shares.get(kind)]
    for offset, shares, colour, label in (
        (-0.2, verdict.shares, HELDOUT, "held-out"),
        (0.2, verdict.seen_shares, SEEN, "seen"),
    ):
        rows = [index + offset for index in range(len(kinds))]
        axes.barh(rows, [100 * shares.get(kind, 0.0) for kind in kinds], 0.4, color=colour, label=label)
    axes.set_yticks(range(len(kinds)), kinds)
    axes.invert_yaxis()
    axes.set(xlim=(0, 100), xlabel="% of images", title=headline(verdict))
    axes.legend()
    return axes


def draw_images(rows: dict[str, Images], latents: Latents, title: str, ax: Axes | None = None) -> Axes:
    """Images of the same combinations, one labelled row above the other; the origin of each is lower left."""
    first = next(iter(rows.values()))
    count, (height, width) = len(first), first.shape[-2:]
    axes = ax or new_axes(count + 1.4, len(rows) + 0.6)
    lines = [torch.cat([_framed(image) for image in images], dim=2) for images in reversed(rows.values())]
    picture = torch.cat(lines, dim=1).permute(1, 2, 0).numpy()
    gray = picture.shape[2] != 3
    axes.imshow(picture[..., 0] if gray else picture.clip(0, 1), origin="lower", cmap="gray", vmin=0, vmax=1)
    axes.set_yticks([index * (height + 1) + height / 2 for index in range(len(rows))], list(reversed(rows)))
    labels = [", ".join(f"{value:g}" for value in point) for point in latents.tolist()]
    axes.set_xticks([index * (width + 1) + width / 2 for index in range(count)], labels)
    axes.tick_params(length=0)
    axes.set_title(title)
    return axes


def _framed(image: Tensor) -> Tensor:
    """The image with a grey line at its right and its upper edge, to tell neighbours apart."""
    return torch.nn.functional.pad(image, (0, 1, 0, 1), value=0.5)


def new_axes(width: float, height: float) -> Axes:
    """Axes in a new figure of pyplot's, which notebooks show by themselves."""
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]
