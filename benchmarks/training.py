"""Training speed: whole epochs against a plain PyTorch loop, sweeps by workers, and what the depth experiment takes."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace

import torch
from timing import compare, machine, report, serve
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import composcope as cs
from composcope import fastconv

OURS = {"composcope, PyTorch's convolutions": "torch", "composcope": "auto"}
PLAIN, COMPILED = "plain eager loop", "torch.compile of the plain network"


@dataclass(frozen=True)
class Network:
    """A bump-coded CNN and what it is trained on."""

    depth: int
    width: int = 64
    size: int = 28
    batch: int = 32
    samples: int = 320
    epochs: int = 1

    def data(self) -> tuple[Tensor, Tensor]:
        return torch.randn(self.samples, 2 * self.size), torch.rand(self.samples, 1, self.size, self.size)


def plain_cnn(net: Network) -> nn.Sequential:
    """The decoder as a user would write it from the paper: transposed convolutions everywhere, from a 1 x 1 map on."""
    code, width = 2 * net.size, net.width
    layers: list[nn.Module] = [nn.Unflatten(1, (code, 1, 1)), nn.ConvTranspose2d(code, width, net.size // 4), nn.ReLU()]
    for _ in range(2):
        layers += [nn.ConvTranspose2d(width, width, 4, stride=2, padding=1), nn.ReLU()]
    for _ in range(net.depth - 2):
        layers += [nn.ConvTranspose2d(width, width, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(width, 1, 3, padding=1))


def plain_epochs(net: Network, compiled: bool = False) -> Callable[[], None]:
    """Epochs as a user would write them."""
    model: nn.Module = plain_cnn(net)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    call = torch.compile(model) if compiled else model
    loader = DataLoader(TensorDataset(*net.data()), batch_size=net.batch, shuffle=True)

    def run() -> None:
        for _ in range(net.epochs):
            for code, image in loader:
                optimiser.zero_grad()
                nn.functional.mse_loss(call(code), image).backward()
                optimiser.step()

    return run


def our_epochs(net: Network) -> Callable[[], object]:
    """Epochs of ours: the project's own decoder and training."""
    module = cs.CNN(depth=net.depth, width=net.width).build((net.size, net.size), (1, net.size, net.size))
    settings = cs.Training(epochs=net.epochs, batch=net.batch)
    codes, images = net.data()
    return lambda: cs.train(module, codes, images, settings)


def serve_epochs(name: str, net: Network) -> None:
    torch.set_num_threads(1)
    if name not in OURS:
        serve(plain_epochs(net, compiled=name == COMPILED))
    else:
        fastconv.keep_memory()
        with fastconv.using("auto" if OURS[name] == "auto" else "torch"):
            serve(our_epochs(net))


def epochs(net: Network, rounds: int, compiled: bool = False) -> float:
    """Print the comparison and return our seconds of CPU time for a sample."""
    print(f"{net}, one thread")
    names = [PLAIN, *OURS, *([COMPILED] if compiled else [])]
    times = compare(__file__, names, astuple(net), rounds)
    report(times, 1.0, "s ")
    sys.stdout.flush()
    return times["composcope"].cpu / (net.samples * net.epochs)


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
    parser.add_argument("--only", choices=("epochs", "sweeps"))
    parser.add_argument("--serve", nargs=7, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve_epochs(options.serve[0], Network(*map(int, options.serve[1:])))
        return
    print(machine())
    if options.only != "sweeps":
        samples = 96 if options.quick else 320
        # compiling takes a minute or two, which the first turn, not counted, pays
        compiled, rounds = not options.quick, 3 if options.quick else 5
        quick_preset = Network(3, width=24, size=16, batch=16, samples=192, epochs=8)  # its main network
        epochs(quick_preset, rounds, compiled)
        seconds = {depth: epochs(Network(depth, samples=samples), rounds, compiled) for depth in (4, 10)}
        a_layer = (seconds[10] - seconds[4]) / 6
        total = sum(50 * 2000 * (seconds[4] + (depth - 4) * a_layer) for depth in range(2, 7))
        print("the paper's depth experiment (depths 2-6, 50 epochs of 2000 draws, one code, one seed), from these:")
        print(f"  {total / 60:.0f} minutes on one core, {total / 60 / (os.cpu_count() or 1):.0f} on {os.cpu_count()}")
    if options.only != "epochs":
        sweeps(400 if options.quick else 2000)


if __name__ == "__main__":
    main()
