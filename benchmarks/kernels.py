"""How much the convolution kernels bring: whole epochs, single layers, and growth with size and width.

Alternatives take turns within one run; medians of CPU time (and wall time beside it) are compared, so that a busy
machine slows both sides alike.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from composcope import kernels

CODE, SIZE, BATCH = 56, 28, 32


@dataclass(frozen=True)
class Times:
    """Medians of one alternative, in seconds."""

    cpu: float
    wall: float


def measure(alternatives: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Times]:
    """Median times of the alternatives, taking turns; each runs once beforehand to warm up."""
    cpu: dict[str, list[float]] = {name: [] for name in alternatives}
    wall: dict[str, list[float]] = {name: [] for name in alternatives}
    for turn in range(rounds + 1):
        for name, run in alternatives.items():
            starts = time.process_time(), time.perf_counter()
            run()
            if turn:
                cpu[name].append(time.process_time() - starts[0])
                wall[name].append(time.perf_counter() - starts[1])
    return {name: Times(statistics.median(cpu[name]), statistics.median(wall[name])) for name in alternatives}


def report(times: dict[str, Times], unit: float = 1e3, sign: str = "ms") -> None:
    """One line per alternative, with the ratio to the first."""
    first = next(iter(times.values()))
    for name, t in times.items():
        ratio = f"{first.cpu / t.cpu:5.2f}x cpu {first.wall / t.wall:5.2f}x wall"
        print(f"  {name:<34} {t.cpu * unit:9.2f} {sign} cpu {t.wall * unit:9.2f} {sign} wall  {ratio}")


# ---- whole epochs


def plain_cnn(depth: int, width: int) -> nn.Sequential:
    """The decoder as a user would write it: transposed convolutions everywhere."""
    layers: list[nn.Module] = [nn.Linear(CODE, width * 49), nn.Unflatten(1, (width, 7, 7)), nn.ReLU()]
    for _ in range(2):
        layers += [nn.ConvTranspose2d(width, width, 4, stride=2, padding=1), nn.ReLU()]
    for _ in range(depth - 2):
        layers += [nn.ConvTranspose2d(width, width, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(width, 1, 3, padding=1))


def our_cnn(depth: int, width: int, conv: bool = True, up: bool = True, last: bool = True) -> nn.Sequential:
    """The same decoder with the kernels' modules, or the library's for the kinds switched off."""
    layers: list[nn.Module] = [nn.Linear(CODE, width * 49), nn.Unflatten(1, (width, 7, 7)), nn.ReLU()]
    for _ in range(2):
        if up:
            layers.append(kernels.Upsample2x(width, width, relu=True))
        else:
            layers += [nn.ConvTranspose2d(width, width, 4, stride=2, padding=1), nn.ReLU()]
    for _ in range(depth - 2):
        if conv:
            layers.append(kernels.Conv3x3(width, width, relu=True))
        else:
            layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU()]
    layers.append(kernels.Conv3x3(width, 1) if last else nn.Conv2d(width, 1, 3, padding=1))
    return nn.Sequential(*layers)


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
    "our loop, library's convolutions": (False, False, False),
    "+ 3x3": (True, False, False),
    "+ 3x3, last": (True, False, True),
    "+ 3x3, upsampling": (True, True, False),
    "+ 3x3, upsampling, last": (True, True, True),
    "ours: all, and memory kept": (True, True, True),
}


def serve(name: str, depth: int, width: int, samples: int, threads: int) -> None:
    """In a process of its own: an epoch for every line read, answered with its CPU and wall time."""
    torch.set_num_threads(threads)
    if name.endswith("memory kept"):
        kernels.keep_memory()
    codes, images = torch.randn(samples, CODE), torch.rand(samples, 1, SIZE, SIZE)
    if name in LADDER:
        run = our_epoch(our_cnn(depth, width, *LADDER[name]), codes, images)
    else:
        run = plain_epoch(plain_cnn(depth, width), codes, images)
    for _ in sys.stdin:
        starts = time.process_time(), time.perf_counter()
        run()
        print(time.process_time() - starts[0], time.perf_counter() - starts[1], flush=True)


def ask(server: "subprocess.Popen[str]") -> Times:
    """One epoch of a serving process."""
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write("\n")
    server.stdin.flush()
    cpu, wall = server.stdout.readline().split()
    return Times(float(cpu), float(wall))


def epochs(depth: int, width: int, samples: int, rounds: int, names: list[str]) -> None:
    """Whole epochs, taking turns; each alternative in its own process, since they would share the memory's state."""
    size = [str(depth), str(width), str(samples), str(torch.get_num_threads())]
    command = [sys.executable, __file__, "--serve"]
    pipe = subprocess.PIPE
    servers = {name: subprocess.Popen([*command, name, *size], stdin=pipe, stdout=pipe, text=True) for name in names}
    taken: dict[str, list[Times]] = {name: [] for name in names}
    for turn in range(rounds + 1):
        for name, server in servers.items():
            times = ask(server)
            if turn:
                taken[name].append(times)
    for server in servers.values():
        server.communicate()
    print(f"epoch of {samples} samples, depth {depth}, width {width}")
    median = statistics.median
    report({n: Times(median(t.cpu for t in ts), median(t.wall for t in ts)) for n, ts in taken.items()}, 1.0, "s ")


# ---- single layers


def step_of(module: nn.Module, x: Tensor) -> Callable[[], object]:
    """Forward and backward of one layer."""
    gy = torch.randn_like(module(x))
    inputs = [x, *module.parameters()]
    return lambda: torch.autograd.grad(module(x), inputs, gy)


def layer(kind: str, c: int, k: int, size: int, batch: int = BATCH) -> dict[str, Callable[[], object]]:
    """The library's layer with ReLU and ours."""
    x = torch.randn(batch, c, size, size, requires_grad=True)
    theirs: nn.Module
    ours: nn.Module
    if kind == "up":
        theirs, ours = nn.ConvTranspose2d(c, k, 4, stride=2, padding=1), kernels.Upsample2x(c, k, relu=True)
    else:
        theirs, ours = nn.Conv2d(c, k, 3, padding=1), kernels.Conv3x3(c, k, relu=True)
    return {"library": step_of(nn.Sequential(theirs, nn.ReLU()), x), "ours": step_of(ours, x)}


def gemm_peak() -> float:
    """Floating-point operations per second of the library's matrix product, 1024 a side."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    return 2 * 1024**3 / measure({"gemm": lambda: a @ b}, 9)["gemm"].wall


def layers(rounds: int) -> None:
    """The decoder's layers, and the rate at which a direct convolution would have to run to be as fast."""
    peak = gemm_peak()
    print(f"matrix product {peak / 1e9:.0f} GFLOP/s; layers forward and backward, batch {BATCH}")
    for kind, c, k, size in (("conv", 64, 64, 28), ("conv", 64, 1, 28), ("up", 64, 64, 14), ("up", 64, 64, 7)):
        times = measure(layer(kind, c, k, size), rounds)
        taps = 16 if kind == "up" else 9
        direct = 3 * 2 * BATCH * c * k * size * size * taps
        rate = direct / times["ours"].wall
        print(f" {kind} {c} -> {k} at {size}: as if direct at {rate / 1e9:.0f} GFLOP/s, {rate / peak:.2f} of that peak")
        report(times)


def growth(rounds: int, quick: bool) -> None:
    """Ratio to the library over sizes and widths; 1.00 where the rule leaves the layer to the library."""
    widths = (16, 64) if quick else (16, 24, 32, 64, 128)
    for kind, sizes in (("conv", (7, 14, 16, 28, 40, 56)), ("up", (7, 8, 14, 20, 28))):
        for batch in (BATCH,) if quick else (1, 8, BATCH):
            print(f"{kind}, batch {batch}: library / ours in CPU time; t = the rule takes the library")
            print("  size " + "".join(f"  width {width:<4}" for width in widths))
            for size in sizes[::2] if quick else sizes:
                cells = []
                for width in widths:
                    before = kernels.used()
                    times = measure(layer(kind, width, width, size, batch), rounds)
                    torch_only = set(kernels.used() - before) == {"torch"}
                    cells.append(f"  {times['library'].cpu / times['ours'].cpu:6.2f} {'t' if torch_only else ' '}   ")
                print(f"  {size:4} " + "".join(cells))


def main() -> None:
    """Everything, or with --quick a little of everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a little of everything, in a minute")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--serve", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--only", choices=("epochs", "layers", "growth"))
    options = parser.parse_args()
    if options.serve:
        serve(options.serve[0], *map(int, options.serve[1:]))
        return
    torch.set_num_threads(options.threads)
    quick = options.quick
    print(f"{torch.get_num_threads()} thread(s), kernels: {kernels.status()}")
    if options.only in (None, "layers"):
        layers(5 if quick else 21)
    if options.only in (None, "growth"):
        growth(3 if quick else 9, quick)
    if options.only in (None, "epochs"):
        epochs(4, 64, 320 if quick else 2000, 3, ["plain eager loop", *LADDER])
        epochs(10, 64, 160 if quick else 2000, 2, ["plain eager loop", *list(LADDER)[-2:]])


if __name__ == "__main__":
    main()
