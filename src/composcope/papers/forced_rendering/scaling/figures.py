"""Figure 4c: how many training images are needed as images grow, with stripes and with bumps alone."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache

from composcope.decoders.cnn import CNN
from composcope.encodings import Bump
from composcope.holdouts import Square
from composcope.papers.forced_rendering.base import PAPER_SEEDS, QUICK_SEEDS
from composcope.papers.forced_rendering.scaling.drawing import KINDS, draw_scaling
from composcope.papers.forced_rendering.scaling.search import (
    Cell,
    CountSearch,
    Scaling,
    all_counts,
    continued,
    over_seeds,
)
from composcope.runs.spec import Spec
from composcope.sampling import Draws, Sampling, Stripes
from composcope.store.store import Store
from composcope.study.evidence import Evidence, RunCache
from composcope.study.numbers import Numbers, Row, Rows
from composcope.study.panel import Panel, Search
from composcope.study.plan import Key, Plan, Preset, of_preset
from composcope.tasks.bump import BumpTask
from composcope.training import Training


@dataclass(frozen=True)
class Sizes:
    """What the searches are run at.

    - `sizes`: sides of the image; `counts`: numbers of bumps tried, each twice the one before, the last is the cap.
    - `bisections`: how often the interval between the last count that was not enough and the first that was is halved.
    - `fewest`: the smallest number of bumps tried, as a share of the side.
    """

    sizes: tuple[int, ...]
    counts: tuple[int, ...]
    bisections: int
    width: int
    training: Training
    seeds: tuple[int, ...]
    fewest: float = 0.5


SIZES = {
    "quick": Sizes(
        sizes=(10, 15, 20),
        counts=(8, 16, 32, 64, 128, 256, 512),
        bisections=0,
        width=16,
        training=Training(steps=600, batch=16),
        # One octave of sizes and counts that double leave a power of N open by two: more seeds would decide nothing.
        seeds=QUICK_SEEDS[:1],
    ),
    "paper": Sizes(
        sizes=(10, 15, 20, 25, 30),
        counts=(4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192),
        bisections=2,
        width=32,
        training=Training(steps=3000),
        # Eight, so that one seed on the other side does not leave a sign test open.
        seeds=tuple(range(PAPER_SEEDS[0], PAPER_SEEDS[0] + 8)),
        # If the smallest count were enough, a threshold would have no lower bound and the power of N no upper one. At
        # N = 10 the quick preset's networks, which are smaller, needed 16 in three of six seeds.
        fewest=0.4,
    ),
    "tiny": Sizes(
        sizes=(8, 10), counts=(4, 8), bisections=1, width=4, training=Training(steps=3, batch=4), seeds=(0, 1)
    ),
}


@cache
def scaling_spec(preset: Preset, size: int, sampling: Sampling, seed: int) -> Spec:
    """Bright bumps at real-valued centres, a hole of about 0.4 of the side in the middle, a fixed number of steps."""
    sizes = of_preset(SIZES, preset)
    return Spec(
        task=BumpTask(size, polarity="bright", continuous=True),
        holdout=Square(round(0.3 * size), round(0.7 * size) - 1),
        encoding=Bump(),
        decoder=CNN(depth=3, width=sizes.width),
        sampling=sampling,
        training=sizes.training,
        seed=seed,
    )


def doubling_counts(preset: Preset, size: int) -> dict[str, list[int]]:
    """What the doubling search tries at a size: bumps from a share of the side to the cap, stripes up to all 2N."""
    sizes = of_preset(SIZES, preset)
    return {
        "bumps": [count for count in sizes.counts if count >= sizes.fewest * size],
        "stripes": [2 * size // part for part in (8, 4, 2, 1)],
    }


def sampling_of(kind: str, count: int) -> Sampling:
    """This many bumps, or this many stripes."""
    return Draws(count) if kind == "bumps" else Stripes(stripes=count)


def cells(preset: Preset) -> Plan:
    """Every cell that may be tried, by size and kind, ascending; `needed` selects those that are."""
    sizes = of_preset(SIZES, preset)
    return {
        Cell(kind, size, count, bisection): tuple(
            scaling_spec(preset, size, sampling_of(kind, count), seed) for seed in sizes.seeds
        )
        for size in sizes.sizes
        for kind, doubled in doubling_counts(preset, size).items()
        for count, bisection in all_counts(doubled, sizes.bisections)
    }


def max_runs(preset: Preset) -> int:
    """How many runs the searches do at most: every doubling and all bisections."""
    sizes = of_preset(SIZES, preset)
    searches = [tried for size in sizes.sizes for tried in doubling_counts(preset, size).values()]
    return len(sizes.seeds) * sum(len(tried) + sizes.bisections for tried in searches)


def searches_of(keys: Iterable[Key]) -> dict[str, CountSearch]:
    """The searches of a plan before anything is tried, by their name; of seed 0."""
    groups: dict[str, list[Cell]] = {}
    for cell in keys:
        assert isinstance(cell, Cell)
        groups.setdefault(cell.search, []).append(cell)
    return {
        name: CountSearch(
            cells[0].kind,
            cells[0].size,
            0,
            tuple(cell.images for cell in cells if not cell.bisection),
            (),
            max(cell.bisection for cell in cells),
        )
        for name, cells in groups.items()
    }


def scaling(evidence: Evidence) -> Numbers:
    """The accuracy of every run that was done, and what the searches may try."""
    searches = searches_of(evidence)
    rows: Rows = [
        {"search": cell.search, "images": cell.images, "seed": run.spec.seed, "accuracy": float(run.error["accuracy"])}
        for cell, runs in evidence.items()
        if isinstance(cell, Cell)
        for run in runs
    ]
    common = {
        name: {"kind": each.kind, "size": each.size, "counts": list(each.counts), "bisections": each.bisections}
        for name, each in searches.items()
    }
    seeds = {name: tuple(sorted({row["seed"] for row in rows if row["search"] == name})) for name in searches}
    return Numbers(rows, common={"searches": common}, seeds=seeds)


def needed(plan: Plan, store: Store) -> list[Spec]:
    """The next runs: each search tries ascending counts until one is enough, and then counts in between."""
    cache = RunCache(store)
    specs: dict[tuple[str, int, int], Spec] = {}
    accuracies: dict[tuple[str, int], dict[int, float | None]] = {}
    for cell, row in plan.items():
        assert isinstance(cell, Cell)
        for spec in row:
            specs[cell.search, spec.seed, cell.images] = spec
            (accuracy,) = [run.error["accuracy"] for run in cache.runs([spec])] or [None]
            accuracies.setdefault((cell.search, spec.seed), {})[cell.images] = accuracy
    starts = searches_of(plan)
    return [
        specs[name, seed, images]
        for (name, seed), by_count in accuracies.items()
        for images in continued(replace(starts[name], seed=seed), by_count).next_counts
    ]


def search_name(key: Key, spec: Spec) -> str:
    """What the runs of one search have in common."""
    assert isinstance(key, Cell)
    return f"threshold of {key.search}, seed {spec.seed}"


def scaling_table(numbers: Numbers) -> Rows:
    """One row per kind of training set and size: the images needed, and the power of the size that they grow with."""
    scaling = Scaling.read(numbers)
    return [_table_row(scaling, kind, size) for kind in KINDS for size in scaling.sizes]


def _table_row(scaling: Scaling, kind: str, size: int) -> Row:
    count, power = scaling.threshold(kind, size), over_seeds(list(scaling.exponents(kind).values()))
    return {
        "training on": "bumps alone" if kind == "bumps" else kind,
        "N": size,
        "images needed": "-" if count.sign == "?" else f"{count.sign} {2**count.mean:.0f}".strip(),
        "low": "-" if count.sign else f"{2**count.low:.0f}",
        "high": "-" if count.sign else f"{2**count.high:.0f}",
        "by seed": ", ".join(search.text for search in scaling.of(kind, size)),
        "exponent": "-" if power.sign == "?" else f"{power.sign} {power.mean:.2f}".strip(),
        "exponent low": "-" if power.sign else f"{power.low:.2f}",
        "exponent high": "-" if power.sign else f"{power.high:.2f}",
    }


PANELS = (
    Panel(
        name="4c",
        title="Images needed against image size",
        see=(
            "How steeply each line rises: bumps alone against the dashed cube, stripes against the dashed straight"
            " line. Thin lines: between which counts each seed's threshold lies. Right: the accuracies behind it, one"
            " line per seed."
        ),
        plan=cells,
        numbers=scaling,
        table=scaling_table,
        draw=draw_scaling,
        diagnosed=False,
        search=Search(needed, max_runs, search_name),
    ),
)
