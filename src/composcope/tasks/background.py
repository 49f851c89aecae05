"""What an empty image looks like, learned from images with something in them."""

import torch
from torch import Tensor

from composcope.tasks.base import Images


def learned_background(images: Images, dark: bool = False) -> Tensor:
    """For each channel the median of the border pixels, (channels, 1, 1): objects seldom cover the border.

    0 (dark: 1) or the least (dark: greatest) value instead, if one of these is within 1 % of the images' range.
    """
    border = torch.ones(images.shape[2:], dtype=torch.bool)
    border[1:-1, 1:-1] = False
    median = images[:, :, border].transpose(0, 1).flatten(1).median(1).values
    # Objects that fade out, as bumps do, leave a little everywhere: an extreme value nearby is the background.
    # Channel by channel: all at once would copy the images.
    extreme = torch.stack([channel.amax() if dark else channel.amin() for channel in images.unbind(1)])
    nearby = 0.01 * (images.max() - images.min())
    usual = torch.full_like(median, 1.0 if dark else 0.0)
    for value in (extreme, usual):
        median = torch.where((median - value).abs() <= nearby, value, median)
    return median[:, None, None]
