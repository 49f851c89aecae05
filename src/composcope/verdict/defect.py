"""What a decoder does to every image, right or wrong: blur, shift, fading and an offset, fitted on seen images.

Held-out images are compared with true images that went through the same defect, so that only what differs between seen
and held-out combinations counts. A convolution is the family that contains all of these and is the same for every
combination: it cannot turn one shape into another, or bring back a factor that is missing.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import conv2d, pad, unfold

from composcope.tasks.base import Images

# Shifts and blurs of up to this many pixels are recognised.
RADIUS = 4
# Images that the defect is fitted on, and their pixels in all: enough for the 82 unknowns of each channel.
MAX_IMAGES, MAX_PIXELS = 64, 2**17
# Seen images this close to the truth, as a share of the energy, have no defect worth removing.
NEGLIGIBLE = 1e-3
CHUNK = 512  # images at a time


@dataclass(frozen=True)
class Defect:
    """image = kernel * truth + offset for each channel, * a convolution; without a kernel, image = truth."""

    kernel: Float[Tensor, "channels 1 k l"] | None
    offset: Float[Tensor, "channels 1 1"]

    def drawn(self, truth: Images) -> Images:
        """True images as the decoder would draw them, its offset removed."""
        if self.kernel is None:
            return truth
        images = torch.empty_like(truth)
        for channel, kernel in enumerate(self.kernel[:, 0]):
            images[:, channel] = convolved(truth[:, channel], kernel)
        return images


def convolved(images: Float[Tensor, "n height width"], kernel: Float[Tensor, "k l"]) -> Float[Tensor, "n height width"]:
    """kernel * image, images continued beyond their border as in `_padded`.

    The images are the channels of one image, each convolved by itself: on processors that is several times faster than
    a convolution of many images with one channel.

    >>> image = torch.tensor([[[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 2.0]]])
    >>> convolved(image, torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]))[0].tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 2.0, 2.0]]
    """
    parts = [
        conv2d(_padded(some[None], kernel.shape), kernel.to(some).repeat(len(some), 1, 1, 1), groups=len(some))[0]
        for some in images.split(CHUNK)
    ]
    return torch.cat(parts) if parts else images


def fit_defect(outputs: Images, truth: Images) -> Defect:
    """argmin over kernels and offsets of sum |output - kernel * truth - offset|^2, channel by channel.

    >>> truth = torch.rand(8, 1, 9, 9)
    >>> defect = fit_defect(0.5 * truth.roll(1, 3) + 0.2, truth)
    >>> defect.offset.shape, round(defect.kernel.abs().max().item(), 1)
    (torch.Size([1, 1, 1]), 0.5)
    """
    channels, height, width = truth.shape[1:]
    none = Defect(None, torch.zeros(channels, 1, 1))
    if (outputs - truth).square().sum() <= NEGLIGIBLE * truth.square().sum():
        return none
    size = tuple(2 * min(RADIUS, (side - 1) // 2) + 1 for side in (height, width))
    kernels, offsets = [], []
    for output, true in zip(outputs.double().unbind(1), truth.double().unbind(1), strict=True):
        solution = _least_squares(output[:, None], true[:, None], size)
        kernels.append(solution[:-1].reshape(1, *size))
        offsets.append(solution[-1:, None])
    if torch.stack(kernels).sum() <= 0:  # dark for bright is no rendering of the truth
        return none
    return Defect(torch.stack(kernels).float(), torch.stack(offsets).reshape(channels, 1, 1).float())


def _padded(images: Images, size: tuple[int, ...]) -> Float[Tensor, "n channels tall wide"]:
    """Beyond its border an image goes on as it is there: a wall does not end where the picture does."""
    return pad(images, (size[1] // 2, size[1] // 2, size[0] // 2, size[0] // 2), mode="replicate")


def _least_squares(outputs: Images, truth: Images, size: tuple[int, ...]) -> Float[Tensor, "taps"]:
    """The kernel's taps and the offset, from sums over images, so that the windows of one image are held at a time."""
    taps = size[0] * size[1] + 1
    gram, right = torch.zeros(taps, taps).double(), torch.zeros(taps).double()
    for image, true in zip(outputs, truth, strict=True):
        windows = unfold(_padded(true[None], size), size)[0]
        windows = torch.cat([windows, torch.ones_like(windows[:1])])
        gram += windows @ windows.T
        right += windows @ image.flatten()
    # Smooth images leave fine details of the kernel undetermined; a little ridge keeps those at zero.
    ridge = 1e-6 * gram.diagonal().mean() * torch.eye(taps).double()
    return torch.linalg.solve(gram + ridge, right)
