"""Training speed: whole epochs against a plain PyTorch loop, sweeps by workers, and what the depth experiment takes."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import plain
import torch
from timing import compare, machine, report, serve
from torch import Tensor, nn

import composcope as cs
from composcope import fastconv
from composcope.papers.forced_rendering.base import QUICK
from composcope.papers.forced_rendering.lowrank.figures import lowrank_spec
from composcope.papers.forced_rendering.rotation.figures import gap
from composcope.runs.run import build
from composcope.runs.spec import training_latents

OURS = {"composcope, PyTorch's convolutions": "torch", "composcope": "auto"}
PARTS = ("main", "lowrank", "rotation", "depth 4", "depth 10", "sweeps")
PLAIN, COMPILED = "plain eager loop", "torch.compile of the plain network"
# A part of our speed is memory that is kept for the next step instead of being returned to the system. A plain loop
# has it too where the process has freed something large before, after which the C library keeps more.
KEPT = "plain eager loop, memory kept"


@dataclass(frozen=True)
class Network:
    """What is trained: ours by its spec, whose training is that of one turn, and the same network in plain PyTorch."""

    title: str
    spec: cs.Spec
    plain: Callable[[], nn.Module]

    def __str__(self) -> str:
        training, (codes, _) = self.spec.training, self.data()
        side = self.spec.task.image_shape[-1]
        return f"{self.title}, {side} x {side}, batch {training.batch}, {len(codes)} samples, {training.epochs} epochs"

    def data(self) -> tuple[Tensor, Tensor]:
        """As many codes and images as an epoch has, of random numbers: rendering would leave a warm memory behind."""
        spec = self.spec
        count = len(training_latents(spec.task, spec.holdout, spec.sampling, spec.seed))
        codes = torch.randn(count, sum(spec.encoding.code_sizes(spec.task.factors)))
        return codes, torch.rand(count, *spec.task.image_shape)

    @property
    def samples(self) -> int:
        """Samples of one turn."""
        return len(self.data()[0]) * (self.spec.training.epochs or 1)

    def plain_turn(self, compiled: bool = False) -> Callable[[], None]:
        """Epochs as a user would write them."""
        return plain.epochs(self.plain(), *self.data(), self.spec.training, compiled)

    def our_turn(self) -> Callable[[], object]:
        """Epochs of ours: the project's own decoder and training."""
        module, (codes, images) = build(self.spec), self.data()
        return lambda: cs.train(module, codes, images, self.spec.training, penalties=self.spec.penalties)


def bump_cnn(title: str, size: int, decoder: cs.CNN, sampling: cs.Sampling, training: cs.Training) -> Network:
    """A bump-coded CNN; a quarter of the plane is held out."""
    task, holdout = cs.BumpTask(size), cs.Square(size // 4, size // 4 + size // 2 - 1)
    spec = cs.Spec(task, holdout, cs.Bump(), decoder, sampling, training)
    return Network(title, spec, lambda: plain.cnn(2 * size, size, decoder.depth, decoder.width))


def authors(depth: int, samples: int, width: int = 64) -> Network:
    """The authors' CNN, 28 x 28, trained on so many draws."""
    title = f"CNN of the authors' size: depth {depth}, width {width}"
    return bump_cnn(title, 28, cs.CNN(depth, width), cs.Draws(samples), cs.Training(epochs=1, batch=32))


def networks(samples: int) -> dict[str, Network]:
    """By a short name; `samples` are those of the authors' size."""
    lowrank, rotation = lowrank_spec(QUICK, "both", QUICK.first_seed), gap(QUICK)["rotation"][0]
    lowrank = replace(lowrank, training=replace(lowrank.training, epochs=20))
    rotation = replace(rotation, training=replace(rotation.training, epochs=5))
    main = bump_cnn(
        "the quick preset's main network: CNN of depth 3, width 24",
        16,
        cs.CNN(depth=3, width=24),
        cs.Everything(),
        cs.Training(epochs=8, batch=16),
    )
    return {
        "main": main,
        "lowrank": Network(
            "the quick preset's low-rank network with both penalties",
            lowrank,
            lambda: plain.LowRank(16),
        ),
        "rotation": Network(
            "the quick preset's rotation network: CNN of depth 2, width 24, batch norm",
            rotation,
            lambda: plain.rotation_cnn(2, 28, 24),
        ),
        "depth 4": authors(4, samples),
        "depth 10": authors(10, samples),
    }


def serve_epochs(name: str, net: Network) -> None:
    torch.set_num_threads(1)
    if name in (KEPT, *OURS):
        fastconv.keep_memory()
    if name not in OURS:
        serve(net.plain_turn(compiled=name == COMPILED))
    else:
        with fastconv.using("auto" if OURS[name] == "auto" else "torch"):
            serve(net.our_turn())


def epochs(name: str, samples: int, rounds: int, compiled: bool) -> float:
    """Print the comparison and return our seconds of CPU time for a sample."""
    net = networks(samples)[name]
    print(f"{net}; one thread")
    alternatives = [PLAIN, KEPT, *OURS, *([COMPILED] if compiled else [])]
    times = compare(__file__, alternatives, [name, samples], rounds)
    report(times, 1.0, "s ")
    if compiled:
        taken = times[COMPILED].first - times[COMPILED].wall
        print(f"  compiling took {taken:.0f} s by the clock, in the first turn, which is not counted")
    sys.stdout.flush()
    return times["composcope"].cpu / net.samples


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


def depth_experiment(seconds: dict[str, float]) -> None:
    """What the paper's depth experiment would take, from our seconds for a sample at two depths."""
    a_layer = (seconds["depth 10"] - seconds["depth 4"]) / 6
    total = sum(50 * 2000 * (seconds["depth 4"] + (depth - 4) * a_layer) for depth in range(2, 7))
    print("the paper's depth experiment (depths 2-6, 50 epochs of 2000 draws, one code, one seed), from these:")
    print(f"  {total / 60:.0f} minutes on one core, {total / 60 / (os.cpu_count() or 1):.0f} on {os.cpu_count()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer samples and rounds, in two minutes")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        alternative, name, samples = options.serve
        serve_epochs(alternative, networks(int(samples))[name])
        return
    print(machine())
    samples, rounds = (96, 3) if options.quick else (320, 5)
    chosen = [name for name in networks(samples) if name in options.only]
    compiled = () if options.quick else ("main", "depth 4", "depth 10")  # a minute or two each
    seconds = {name: epochs(name, samples, rounds, name in compiled) for name in chosen}
    if {"depth 4", "depth 10"} <= set(chosen):
        depth_experiment(seconds)
    if "sweeps" in options.only:
        sweeps(400 if options.quick else 2000)


if __name__ == "__main__":
    main()
