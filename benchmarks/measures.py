"""What the measures cost: against loops in Python, and as the grid grows.

    python benchmarks/measures.py [--repeats 5] [--sizes 16 28 56]

One thread. Alternatives take turns within one run, so that a busy machine slows both; medians and their ratio are
shown. A double loop over all pairs is timed on a share of its rows and scaled up.
"""

import argparse
import math
import time
from collections.abc import Callable, Sequence
from statistics import median

import torch
from timing import machine
from torch import Tensor

from composcope.factors import Factor, latent_grid
from composcope.measures import complexity, error, geometry, kernels, linear_factorization, manifold, probes, tuning
from composcope.measures.kernel_fits import fit_outputs
from composcope.measures.kernel_structure import block_score, kernel_terms, schmidt
from composcope.measures.kernels import gram_matrix
from composcope.verdict import classify

ROWS = 28


def world(size: int) -> tuple[list[Factor], Tensor, Tensor, Tensor]:
    """Factors, grid, hole and bright bumps, the hole at the same place relative to the size."""
    values = tuple(float(place) for place in range(size))
    factors = [Factor("x", values), Factor("y", values)]
    grid = latent_grid(factors)
    low, high = round(6 * size / 28), round(22 * size / 28)
    heldout = ((grid >= low) & (grid <= high)).all(1)
    profiles = torch.exp(-(torch.arange(size) - grid[:, :, None]).square() / 2)
    return factors, grid, heldout, torch.einsum("nu,nv->nvu", profiles[:, 0], profiles[:, 1])[:, None]


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def loop_over_pairs(pair: Callable[[Tensor, Tensor], object], items: Sequence[Tensor]) -> float:
    """Seconds of a double loop over all pairs, from the first rows."""
    rows = items[:ROWS]
    return seconds(lambda: [pair(a, b) for a in rows for b in items]) * len(items) / len(rows)


def gaussian(a: Sequence[float], b: Sequence[float], lengths: Sequence[float]) -> float:
    """One entry of a factorized Gaussian kernel, in plain Python."""
    return math.exp(-sum((p - q) ** 2 / (2 * length**2) for p, q, length in zip(a, b, lengths, strict=True)))


def looped_kernel(grid: Tensor) -> float:
    """Seconds of the kernel matrix by a double loop in plain Python."""
    points = grid.tolist()
    rows = points[:ROWS]
    return seconds(lambda: [[gaussian(a, b, (1.0, 2.0)) for b in points] for a in rows]) * len(points) / len(rows)


def against_loops(repeats: int) -> None:
    factors, grid, _, images = world(28)
    flat = list(images.double().flatten(1))
    points = grid.tolist()

    def looped_binary() -> float:
        rows = points[:ROWS]
        work = lambda: [[float(a[0] == b[0] or a[1] == b[1]) for b in points] for a in rows]  # noqa: E731
        return seconds(work) * len(points) / len(rows)

    contests: dict[str, tuple[Callable[[], object], Callable[[], float]]] = {
        "cosine Gram": (
            lambda: kernels.cosine_kernel(images),
            lambda: loop_over_pairs(lambda a, b: torch.dot(a, b) / (a.norm() * b.norm()), flat),
        ),
        "L2 Gram": (lambda: kernels.l2_distance(images), lambda: loop_over_pairs(lambda a, b: (a - b).norm(), flat)),
        "soft overlap Gram": (
            lambda: kernels.soft_overlap_kernel(images),
            lambda: loop_over_pairs(lambda a, b: torch.minimum(a, b).sum() / torch.maximum(a, b).sum(), flat),
        ),
        "binary kernel": (lambda: kernels.binary_kernel(grid, factors), looped_binary),
        "Gaussian kernel": (lambda: kernels.product_kernel(grid, factors, 1.0), lambda: looped_kernel(grid)),
    }
    print(f"{'784 points, N = 28':24}{'vectorised s':>14}{'double loop s':>15}{'ratio':>9}")
    for name, (fast, slow) in contests.items():
        fast()
        times = [(seconds(fast), slow()) for _ in range(repeats)]
        quick, looped = (median(column) for column in zip(*times, strict=True))
        print(f"{name:24}{quick:14.4f}{looped:15.2f}{looped / quick:9.0f}")


def against_size(sizes: Sequence[int], repeats: int) -> None:
    worlds = {size: world(size) for size in sizes}
    print(f"\n{'seconds (median)':28}" + "".join(f"{f'N = {size}':>10}" for size in sizes))
    print(f"{'held-out images':28}" + "".join(f"{int(worlds[size][2].sum()):>10}" for size in sizes))
    jobs = {size: costs(*worlds[size]) for size in sizes}
    for name in jobs[sizes[0]]:
        times: dict[int, list[float]] = {size: [] for size in sizes}
        for turn in range(repeats):
            for size in sizes:
                if turn == 0 or size < 40:  # once is enough for what takes long
                    times[size].append(seconds(jobs[size][name]))
        print(f"{name:28}" + "".join(f"{median(times[size]):10.3f}" for size in sizes), flush=True)


def costs(factors: list[Factor], grid: Tensor, heldout: Tensor, images: Tensor) -> dict[str, Callable[[], object]]:
    """Every measure of one decoder's images, and of a layer with 4096 features."""
    drawn = images + images.flip(0)  # sums of two true images, as a superposer draws
    layer = torch.randn(len(grid), 4096, generator=torch.Generator().manual_seed(0))
    gram = kernels.cosine_kernel(drawn)
    layer_gram = gram_matrix(layer)
    rng = torch.Generator().manual_seed(0)
    return {
        "verdict": lambda: classify(drawn, images, grid, heldout, factors, images),
        "SSIM": lambda: error.ssim_error(drawn, images),
        "cosine Gram": lambda: kernels.cosine_kernel(drawn),
        "soft overlap Gram": lambda: kernels.soft_overlap_kernel(drawn),
        "Schmidt values": lambda: schmidt(gram, factors),
        "PF_Coeff terms": lambda: kernel_terms(gram, factors),
        "block score": lambda: block_score(gram, grid, factors),
        "kernel fit to outputs": lambda: fit_outputs(drawn, grid, heldout, factors, "radial", rng),
        "pixel complexity": lambda: complexity.pixel_complexity(drawn, factors),
        "layer: Gram": lambda: gram_matrix(layer),
        "layer: probes from Gram": lambda: probes.probes_from_gram(layer_gram, grid, factors, heldout),
        "layer: PCA from Gram": lambda: manifold.pca_from_gram(layer_gram),
        "layer: metric by differences": lambda: geometry.grid_metric(layer, factors),
        "layer: tuning scores": lambda: tuning.unit_scores(layer, factors),
        "layer: effects": lambda: linear_factorization.effect_variances(layer, factors),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="What the measures cost.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 28, 56])
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(machine("one thread"))
    against_loops(options.repeats)
    against_size(options.sizes, options.repeats)


if __name__ == "__main__":
    main()
