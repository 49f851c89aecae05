"""Which runs: the base run trained longer for figure 1d and for less time for figures 1e and 8, as the authors did."""

from dataclasses import dataclass, replace

from composcope.holdouts import Square
from composcope.papers.forced_rendering.codes.plan import all_codes, bump_alone, bump_and_rate
from composcope.sampling import Draws, Sampling
from composcope.study.plan import Plan
from composcope.study.preset import Preset
from composcope.training import Training


@dataclass(frozen=True)
class Sizes:
    """What differs from the base run.

    - `inner`: the part of the hole in which held-out images are compared with sums.
    - `sums_sampling`, `sums_training`: of figure 1d; None for the base run's own.
    - `short_training`, `short_rate_training`: of figures 1e and 8.
    - `short_seeds`: seeds of figures 1e and 8, `sums_seeds`: of figure 1d; None for the base run's.
    """

    inner: Square
    sums_sampling: Sampling | None
    sums_training: Training | None
    short_training: Training
    short_rate_training: Training
    short_seeds: tuple[int, ...] | None = None
    sums_seeds: tuple[int, ...] | None = None


SIZES = {
    # The base run has seen every combination, as 20000 draws have. The authors' 15 of 50 epochs would be 450 steps,
    # after which two of the seeds 0 to 5 have not learned their training images; after 750 all have.
    "quick": Sizes(
        inner=Square(6, 9),
        sums_sampling=None,
        sums_training=None,
        short_training=Training(steps=750, batch=16),
        short_rate_training=Training(steps=1200, batch=16),
        short_seeds=tuple(range(25, 30)),  # the length was changed after a look at 20 to 24
    ),
    "paper": Sizes(
        inner=Square(10, 18),
        sums_sampling=Draws(20000),
        # The sign of the gap in volume changes with training: claim 33 follows it.
        sums_training=Training(epochs=20, snapshots=tuple(625 * epoch for epoch in (1, 2, 3, 4, 6, 8, 10, 13, 16, 20))),
        sums_seeds=tuple(range(20, 30)),
        short_training=Training(epochs=15),
        short_rate_training=Training(epochs=15),
    ),
    "tiny": Sizes(
        inner=Square(3, 4),
        sums_sampling=None,
        sums_training=None,
        short_training=Training(steps=3, batch=8),
        short_rate_training=Training(steps=3, batch=8),
    ),
}


def sizes_of(preset: Preset) -> Sizes:
    """The sizes of a preset; seeds are those of the base run."""
    return SIZES[preset.name]


def sums(preset: Preset) -> Plan:
    """The bump code with many draws."""
    sizes = sizes_of(preset)
    plain = bump_alone(replace(preset, seeds=preset.seeds or sizes.sums_seeds))["bump"]
    return {
        "bump": tuple(
            replace(
                spec,
                sampling=sizes.sums_sampling or spec.sampling,
                training=sizes.sums_training or spec.training,
            )
            for spec in plain
        )
    }


def all_sums(preset: Preset) -> Plan:
    """The bump code with many draws and, for comparison, the base runs of the other codes."""
    return {**all_codes(preset), **sums(preset)}


def short(preset: Preset) -> Plan:
    """The paper's two codes, trained for less time."""
    sizes = sizes_of(preset)
    plain = bump_and_rate(replace(preset, seeds=preset.seeds or sizes.short_seeds))
    lengths = {"bump": sizes.short_training, "rate": sizes.short_rate_training}
    return {code: tuple(replace(spec, training=lengths[code]) for spec in plain[code]) for code in lengths}


def short_bump(preset: Preset) -> Plan:
    """The bump code, trained for less time."""
    return {"bump": short(preset)["bump"]}
