"""A forecast's images as a chart."""

from typing import TYPE_CHECKING

import torch
from matplotlib.axes import Axes as Axes
from torch import Tensor

from composcope.diagnosis.drawing import new_axes

if TYPE_CHECKING:
    from composcope.forecasts.forecast import Forecast


def draw_forecast(forecast: "Forecast", ax: Axes | None = None) -> Axes:
    """Some held-out images: the truth in the first row, below it what each method draws; the origin is lower left."""
    shown = forecast.prediction.diagnosis.samples
    assert shown is not None  # every diagnosis of a split has them
    drawn = {name: prediction.draw(shown.latents) for name, prediction in forecast.predictions.items()}
    rows = {"true": shown.truth, **{_label(forecast, name): images for name, images in drawn.items()}}
    count, (height, width) = len(shown.truth), shown.truth.shape[-2:]
    axes = ax or new_axes(count + 1.4, len(rows) + 0.6)
    lines = [torch.cat([_framed(image) for image in images], dim=2) for images in reversed(rows.values())]
    picture = torch.cat(lines, dim=1).permute(1, 2, 0).numpy()
    gray = picture.shape[2] != 3
    axes.imshow(picture[..., 0] if gray else picture.clip(0, 1), origin="lower", cmap="gray", vmin=0, vmax=1)
    axes.set_yticks([index * (height + 1) + height / 2 for index in range(len(rows))], list(reversed(rows)))
    labels = [", ".join(f"{value:g}" for value in point) for point in shown.latents.tolist()]
    axes.set_xticks([index * (width + 1) + width / 2 for index in range(count)], labels)
    axes.tick_params(length=0)
    axes.set_title("the forecast abstains" if forecast.abstains else f"forecast: {forecast.kind}")
    return axes


def _label(forecast: "Forecast", method: str) -> str:
    return f"{method} (used)" if method == forecast.method and not forecast.abstains else method


def _framed(image: Tensor) -> Tensor:
    """The image with a grey line at its right and its upper edge, to tell neighbours apart."""
    return torch.nn.functional.pad(image, (0, 1, 0, 1), value=0.5)
