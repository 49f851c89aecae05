"""What each convolution kernel brings: to whole epochs and to single layers, whose errors are shown too."""

import argparse
from collections.abc import Callable

import torch
from layers import Cell
from timing import compare, machine, measure, report, serve
from torch import Tensor, nn
from training import authors

from composcope import fastconv
from composcope.fastconv.functional import Layer

CODE, SIZE, BATCH = 56, 28, 32

# ---- whole epochs


def our_cnn(depth: int, width: int, conv: bool = True, up: bool = True, last: bool = True) -> nn.Sequential:
    """The same decoder with the kernels' modules, or PyTorch's for the kinds switched off."""
    layers: list[nn.Module] = [nn.Linear(CODE, width * 49), nn.Unflatten(1, (width, 7, 7)), nn.ReLU()]
    for _ in range(2):
        if up:
            layers.append(fastconv.Upsample2x(width, width, relu=True))
        else:
            layers += [nn.ConvTranspose2d(width, width, 4, stride=2, padding=1), nn.ReLU()]
    for _ in range(depth - 2):
        if conv:
            layers.append(fastconv.Conv3x3(width, width, relu=True))
        else:
            layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU()]
    layers.append(fastconv.Conv3x3(width, 1) if last else nn.Conv2d(width, 1, 3, padding=1))
    return nn.Sequential(*layers)


def our_epoch(model: nn.Module, codes: Tensor, images: Tensor) -> Callable[[], None]:
    """An epoch with batches by index and the fused optimiser."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def run() -> None:
        for chosen in torch.randperm(len(codes)).split(BATCH):
            optimiser.zero_grad()
            nn.functional.mse_loss(model(codes[chosen]), images[chosen]).backward()
            optimiser.step()

    return run


LADDER = {
    "our loop, PyTorch's convolutions": (False, False, False),
    "+ 3x3": (True, False, False),
    "+ 3x3, last": (True, False, True),
    "+ 3x3, upsampling": (True, True, False),
    "+ 3x3, upsampling, last": (True, True, True),
    "ours: all, and memory kept": (True, True, True),
}


def serve_epochs(name: str, depth: int, width: int, samples: int, threads: int) -> None:
    torch.set_num_threads(threads)
    if name.endswith("memory kept"):
        fastconv.keep_memory()
    codes, images = torch.randn(samples, CODE), torch.rand(samples, 1, SIZE, SIZE)
    if name in LADDER:
        serve(our_epoch(our_cnn(depth, width, *LADDER[name]), codes, images))
    else:
        serve(authors(depth, samples, width).plain_turn())


def epochs(depth: int, width: int, samples: int, rounds: int) -> None:
    """Whole epochs, one addition after the other."""
    print(f"epoch of {samples} samples, depth {depth}, width {width}")
    arguments = [depth, width, samples, torch.get_num_threads()]
    report(compare(__file__, ["plain eager loop", *LADDER], arguments, rounds), 1.0, "s ")


# ---- single layers

# of 64 channels to so many, at this size
SINGLE: tuple[tuple[Layer, int, int], ...] = (
    ("conv3x3", 64, 28),
    ("conv3x3", 1, 28),
    ("upsample2x", 64, 14),
    ("upsample2x", 64, 7),
)


def gemm_peak() -> float:
    """Floating-point operations per second of PyTorch's matrix product, 1024 a side."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    return 2 * 1024**3 / measure({"gemm": lambda: a @ b}, 9)["gemm"].wall


def layers(rounds: int) -> None:
    """The decoder's layers, and the rate at which a direct convolution would have to run to be as fast."""
    peak = gemm_peak()
    print(f"matrix product {peak / 1e9:.0f} GFLOP/s; layers forward and backward, batch {BATCH}")
    for kind, k, size in SINGLE:
        cell = Cell(kind, BATCH, 64, k, size)
        with cell.forced():
            times, errors = measure(cell.sides(*cell.tensors()), rounds), cell.errors()
        taps = 16 if kind == "upsample2x" else 9
        rate = 3 * 2 * BATCH * 64 * k * size * size * taps / times["ours"].wall
        print(f" {cell}: as if direct at {rate / 1e9:.0f} GFLOP/s, {rate / peak:.2f} of that peak")
        report(times)
        for name, (y, gx, gw) in errors.items():
            print(f"  {name:<20} relative errors: outputs {y:.1e}, input gradients {gx:.1e}, weight gradients {gw:.1e}")


def main() -> None:
    """Everything, or with --quick a little of everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a little of everything, in a minute")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--serve", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--only", choices=("epochs", "layers"))
    options = parser.parse_args()
    if options.serve:
        serve_epochs(options.serve[0], *map(int, options.serve[1:]))
        return
    torch.set_num_threads(options.threads)
    quick = options.quick
    print(machine(f"{torch.get_num_threads()} thread(s)"))
    if options.only in (None, "layers"):
        layers(5 if quick else 21)
    if options.only in (None, "epochs"):
        epochs(4, 64, 320 if quick else 2000, 3)


if __name__ == "__main__":
    main()
