"""What a verdict costs: time beside that of drawing the images, and the memory of a whole diagnosis.

Four factors of ten values, 64 x 64 RGB: ten thousand combinations, drawn by the usual decoder of a variational
autoencoder for such images. One thread; seconds of CPU time, and the most memory of a process of its own. The table of
images is one half gigabyte of its own, which is named beside the peak.
"""

import argparse
import subprocess
import sys
import time
from itertools import pairwise

import torch
from diagnosis import peak_memory
from timing import machine
from torch import Tensor, nn

import composcope as cs
from composcope.activations import Subject
from composcope.factors import latent_grid

HUES = torch.tensor([[1.0, 0.2, 0.2], [0.2, 1.0, 0.2], [0.3, 0.3, 1.0], [1.0, 1.0, 0.2], [0.2, 1.0, 1.0]])


class Decoder(nn.Module):
    """Two linear layers and four transposed convolutions, to 64 x 64 RGB."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.dense = nn.Sequential(nn.Linear(code, 256), nn.ReLU(), nn.Linear(256, 1024), nn.ReLU())
        widths = (64, 64, 32, 32)
        layers: list[nn.Module] = []
        for inner, outer in pairwise(widths):
            layers += [nn.ConvTranspose2d(inner, outer, 4, 2, 1), nn.ReLU()]
        self.convolutions = nn.Sequential(*layers, nn.ConvTranspose2d(widths[-1], 3, 4, 2, 1))

    def forward(self, code: Tensor) -> Tensor:
        images: Tensor = self.convolutions(self.dense(code).reshape(-1, 64, 4, 4))
        return images


def setting(values: int, side: int) -> cs.TableTask:
    """A disc of five hues and two brightnesses, of many sizes, at many positions."""
    names = ("x", "y", "radius", "hue")
    numbers = tuple(map(float, range(values)))
    factors = tuple(cs.Factor(name, numbers, "categorical" if name == "hue" else "continuous") for name in names)
    grid = latent_grid(factors)
    rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    images = torch.empty(len(grid), 3, side, side)
    for index, (x, y, radius, hue) in enumerate(grid.tolist()):
        centre = [side * (0.2 + 0.6 * place / (values - 1)) for place in (x, y)]
        distance = ((columns - centre[0]).square() + (rows - centre[1]).square()).sqrt()
        disc = (side * (0.05 + 0.015 * radius) + 0.5 - distance).clamp(0, 1)
        images[index] = disc * (HUES[int(hue) % 5] * (1.0 if hue < 5 else 0.5))[:, None, None]
    return cs.TableTask(grid, images, factors)


def cost(what: str, values: int, side: int) -> None:
    """One of the three figures; called in a process of its own, since peak memory is a process's."""
    torch.manual_seed(0)
    task = setting(values, side)
    holdout = cs.Box({"x": (2, values - 4), "y": (2, values - 4), "hue": (0, values // 2)})
    encoding = cs.PerFactor({**{name: cs.Bump() for name in ("x", "y", "radius")}, "hue": cs.OneHot()})
    codes = encoding.encode(task.grid(), task.factors)
    # Trained enough that there is something to judge: main effects of the images as the last layer's bias will not do.
    module = Decoder(codes.shape[1])
    optimizer = torch.optim.Adam(module.parameters(), 2e-3)
    for _ in range(60 if side > 32 else 5):
        chosen = torch.randint(len(codes), (32,))
        optimizer.zero_grad()
        (module(codes[chosen]) - task.render(task.grid()[chosen])).square().mean().backward()
        optimizer.step()
    before, start = peak_memory(), time.process_time()
    if what == "images":
        Subject(module, codes).images(codes)
    else:
        found = cs.diagnose(module, task, holdout, encoding, only="verdict" if what == "verdict" else None)
        print(f"  {found.verdict.kind if found.verdict else ''}: {sorted(found.notes)}", file=sys.stderr)
    seconds = time.process_time() - start
    peak, table = peak_memory(), 4 * task.images.numel() / 2**20
    print(f"{what:<10} {seconds:7.1f} s cpu   peak {peak:6.0f} MB, before {before:6.0f} MB (table {table:.0f} MB)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--what", choices=("images", "verdict", "whole"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    values, side = (6, 64) if chosen.quick else (10, 64)
    if chosen.what is not None:
        cost(chosen.what, values, side)
        return
    print(machine("one thread"))
    print(f"four factors of {values} values, {side} x {side} RGB: goals are a verdict below 15 s, a whole diagnosis")
    print("below 90 s and 2048 MB")
    sys.stdout.flush()
    for what in ("images", "verdict", "whole"):
        again = [sys.executable, __file__, "--what", what, *(["--quick"] if chosen.quick else [])]
        subprocess.run(again, check=True)


if __name__ == "__main__":
    main()
