"""Training speed: whole epochs against a plain PyTorch loop, sweeps by workers, and what the depth experiment takes."""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace

import torch
from timing import compare, machine, report, serve
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import composcope as cs
from composcope import fastconv

CODE, SIZE, BATCH = 56, 28, 32
OURS = {"composcope, library's convolutions": "torch", "composcope": "auto"}


def plain_cnn(depth: int, width: int) -> nn.Sequential:
    """The decoder as a user would write it from the paper: transposed convolutions everywhere, from a 1 x 1 map on."""
    layers: list[nn.Module] = [nn.Unflatten(1, (CODE, 1, 1)), nn.ConvTranspose2d(CODE, width, 7), nn.ReLU()]
    for _ in range(2):
        layers += [nn.ConvTranspose2d(width, width, 4, stride=2, padding=1), nn.ReLU()]
    for _ in range(depth - 2):
        layers += [nn.ConvTranspose2d(width, width, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(width, 1, 3, padding=1))


def plain_epoch(model: nn.Module, codes: Tensor, images: Tensor) -> Callable[[], None]:
    """An epoch as a user would write it."""
    loader = DataLoader(TensorDataset(codes, images), batch_size=BATCH, shuffle=True)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def run() -> None:
        for code, image in loader:
            optimiser.zero_grad()
            nn.functional.mse_loss(model(code), image).backward()
            optimiser.step()

    return run


def our_epoch(depth: int, width: int, codes: Tensor, images: Tensor) -> Callable[[], object]:
    """An epoch of ours: the project's own decoder and training."""
    module = cs.CNN(depth=depth, width=width).build((SIZE, SIZE), (1, SIZE, SIZE))
    settings = cs.Training(epochs=1, batch=BATCH)
    return lambda: cs.train(module, codes, images, settings)


def serve_epochs(name: str, depth: int, width: int, samples: int) -> None:
    torch.set_num_threads(1)
    codes, images = torch.randn(samples, CODE), torch.rand(samples, 1, SIZE, SIZE)
    if name not in OURS:
        serve(plain_epoch(plain_cnn(depth, width), codes, images))
    else:
        fastconv.keep_memory()
        with fastconv.using("auto" if OURS[name] == "auto" else "torch"):
            serve(our_epoch(depth, width, codes, images))


def epochs(depth: int, samples: int, rounds: int) -> float:
    """Print the comparison and return our seconds of CPU time for an epoch of 2000."""
    print(f"epoch of {samples} samples, depth {depth}, width 64, {SIZE} x {SIZE}, batch {BATCH}, one thread")
    times = compare(__file__, ["plain eager loop", *OURS], [depth, 64, samples], rounds)
    report(times, 1.0, "s ")
    return times["composcope"].cpu * 2000 / samples


def sweeps(steps: int) -> None:
    """Runs an hour with one and with two workers."""
    base = cs.Spec(
        task=cs.BumpTask(16),
        holdout=cs.Square(4, 11),
        encoding=cs.Bump(),
        decoder=cs.CNN(depth=3, width=24),
        sampling=cs.Everything(),
        training=cs.Training(steps=steps, batch=16),
    )
    specs = [replace(base, seed=seed) for seed in range(4)]
    print(f"sweep of {len(specs)} runs, 16 x 16, depth 3, width 24, {steps} steps of 16")
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            cs.run_all(specs, cs.Store(folder), workers=workers)
            taken = time.perf_counter() - start
        print(f"  {workers} worker(s): {taken:6.1f} s, {3600 * len(specs) / taken:6.0f} runs an hour")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer samples and rounds, in two minutes")
    parser.add_argument("--serve", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve_epochs(options.serve[0], *map(int, options.serve[1:]))
        return
    samples, rounds = (320, 3) if options.quick else (1000, 3)
    print(f"{machine()}; kernels: {'compiled' if fastconv.status().available else fastconv.status().reason}")
    seconds = {depth: epochs(depth, samples, rounds) for depth in (4, 10)}
    a_layer = (seconds[10] - seconds[4]) / 6
    depths = range(2, 7)
    total = sum(50 * (seconds[4] + (depth - 4) * a_layer) for depth in depths)
    print("the paper's depth experiment (depths 2-6, 50 epochs of 2000 draws, one code, one seed), from these epochs:")
    print(f"  {total / 60:.0f} minutes on one core, {total / 60 / (os.cpu_count() or 1):.0f} on {os.cpu_count()}")
    sweeps(400 if options.quick else 2000)


if __name__ == "__main__":
    main()
