"""The verdict on a generator without one true image per combination: from what readers see in its images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from composcope.factors import Factor, Latents
from composcope.verdict.classes import KINDS, NOT_LEARNED
from composcope.verdict.readings import (
    REAL,
    Calibration,
    Estimate,
    Readings,
    Shares,
    confusion,
    counted_pairs,
    shares_of,
)
from composcope.verdict.verdict import Verdict

CANNOT_TELL = "cannot tell"
"""The kind where the readers are too weak, or the interval too wide, to say whether a generator composes."""

READERS = "readers"
# A share is known too roughly to say anything if its interval is wider than this.
MAX_WIDTH = 0.4
# Below this share of its seen images, at best, a generator has not learned what it saw.
MIN_SEEN = 0.5
# Likenesses 1, 2 and 3, as the verdict's classes.
UNREAL = ("", "blank", "other", "superposer")


@dataclass(frozen=True)
class Drawn:
    """A generator's images: what was read in them, and which are copies of a training image."""

    readings: Readings
    copies: Bool[Tensor, "n"]


@dataclass(frozen=True)
class Tested:
    """The readers on real images that they were not trained on.

    - `by_combination`: whether they were tested on other combinations than those that they must read.
    """

    readings: Readings
    rests_on: str
    by_combination: bool
    widened: float


@dataclass(frozen=True)
class Pictures:
    """Held-out images to be looked at: their combinations, a few images of each, and these images' rows."""

    latents: Latents
    images: Float[Tensor, "shown few channels height width"]
    rows: Int[Tensor, "shown few"]


def verdict_by_readers(
    heldout: Drawn,
    seen: Drawn,
    tested: Tested,
    factors: Sequence[Factor],
    pictures: Pictures,
    mask: Bool[Tensor, "combinations"],
    examples: str,
    seed: int,
) -> Verdict:
    """Shares corrected by the readers' mistakes on real images, and the kind of what most held-out images are.

    - `heldout`: its groups are numbers among the held-out combinations. `mask`: which combinations of the grid these
      are; `examples`: a checksum of the real images.
    """
    accuracy = _accuracy(tested.readings, factors)
    weak = {
        factor.name: f"its reader reads {accuracy[factor.name]:.0%} of real ones right; chance is {1 / factor.size:.0%}"
        for factor in factors
        if accuracy[factor.name] < (1 + 1 / factor.size) / 2  # half-way from chance to perfect
    }
    readable = [factor.name for factor in factors if factor.name not in weak]

    def shares(drawn: Drawn) -> Shares:
        return shares_of(
            drawn.readings, tested.readings, factors, readable, seed, tested.by_combination, tested.widened
        )

    made = shares(heldout)
    control = shares(seen)
    wide = {
        name: f"its interval, {share.interval[0]:.0%} to {share.interval[1]:.0%}, is too wide"
        for name, share in made.factors.items()
        if share.width > MAX_WIDTH
    }
    told = {name: share for name, share in made.factors.items() if name not in wide}
    classes = classes_of(heldout, factors, readable)
    by_class = _corrected(classes, made.joint.share)
    kind = _kind(by_class, made.joint, list(told.values()), control, bool(weak))
    learned = kind != NOT_LEARNED
    right = tested.readings.right[:, [axis for axis, factor in enumerate(factors) if factor.name in readable]]
    calibration = Calibration(
        rests_on=tested.rests_on,
        images=len(right),
        widened=tested.widened,
        accuracy=accuracy,
        chance={factor.name: 1 / factor.size for factor in factors},
        joint=right.all(1).float().mean().item(),
        confusion=_confusions(tested.readings, factors),
        cannot_tell=weak | wide,
        intervals={name: share.interval for name, share in told.items()},
        seen_score=control.joint.share,
        seen_interval=control.joint.interval,
        rejected=(tested.readings.likeness != REAL).float().mean().item(),
        copies=heldout.copies.float().mean().item(),
        seen_copies=seen.copies.float().mean().item(),
        combinations=len(heldout.readings.group.unique()),
        samples=len(heldout.readings.group) // len(heldout.readings.group.unique()),
        heldout=mask,
        examples=examples,
        latents=pictures.latents,
        drawn=pictures.images,
        classes=tuple(tuple(classes[row] for row in rows) for rows in pictures.rows.tolist()),
    )
    return Verdict(
        kind=kind,
        score=made.joint.share if learned else None,
        shares=by_class,
        classes=_by_combination(classes, heldout.readings.group, int(mask.sum())),
        residuals={},
        without_dictionary=0,
        interval=made.joint.interval if learned else None,
        seen_shares=_corrected(classes_of(seen, factors, readable), control.joint.share),
        factors={name: share.share for name, share in told.items()},
        seen_factors={name: control.factors[name].share for name in told},
        confusion={name: _counts(made.drawn[name], heldout.readings, factors, name) for name in told},
        values={factor.name: tuple(factor.values) for factor in factors},
        judged=len(classes),
        names={factor.name: factor.names for factor in factors if factor.names is not None},
        evidence=READERS,
        reader=calibration,
    )


def classes_of(drawn: Drawn, factors: Sequence[Factor], readable: Sequence[str]) -> list[str]:
    """The class of each image, by the names of `KINDS`, as the readers have it."""
    columns = [axis for axis, factor in enumerate(factors) if factor.name in readable]
    right = drawn.readings.right[:, columns].all(1)
    return [
        UNREAL[likeness] or ("composer" if composed else "nearest seen" if copy else "wrong combination")
        for likeness, composed, copy in zip(
            drawn.readings.likeness.tolist(), right.tolist(), drawn.copies.tolist(), strict=True
        )
    ]


def _corrected(classes: Sequence[str], composed: float) -> dict[str, float]:
    """The share of every class; that of the composer is given, and wrong combinations make up for the difference."""
    shares = {name: classes.count(name) / len(classes) for name in KINDS}
    others = 1 - shares["composer"]
    # A weak reader sees wrong combinations where there are none: these shrink first, and the others only if they must.
    wrong = shares["wrong combination"] + shares["nearest seen"]
    left = max(0.0, 1 - composed - (others - wrong))
    for name in ("wrong combination", "nearest seen"):
        shares[name] = left * shares[name] / wrong if wrong else 0.0
    shares["composer"] = max(0.0, 1 - sum(share for name, share in shares.items() if name != "composer"))
    return shares


def _kind(shares: Mapping[str, float], joint: Estimate, factors: Sequence[Estimate], seen: Shares, weak: bool) -> str:
    """What most images are; "composes" only if that is beyond the interval's doubt."""
    if seen.joint.interval[1] < MIN_SEEN:
        return NOT_LEARNED
    total = dict.fromkeys(KINDS.values(), 0.0)
    for name, kind in KINDS.items():
        total[kind] += shares[name]
    del total["composes"]
    failing = max(total, key=lambda kind: total[kind])
    if failing not in ("mixes up factors", "composes") and total[failing] > 0.5:
        return failing  # no reader of a factor is needed to see that
    if any(share.interval[1] < 0.5 for share in factors):
        return failing  # one factor that is mostly wrong is enough
    if joint.width > MAX_WIDTH:
        return CANNOT_TELL
    if joint.interval[0] > 0.5:
        return CANNOT_TELL if weak else "composes"
    return failing


def _accuracy(real: Readings, factors: Sequence[Factor]) -> dict[str, float]:
    """The mean over a factor's values of the share of its real images that are read right."""
    found = {}
    for axis, factor in enumerate(factors):
        each = [
            (real.read[:, axis] == value)[real.true[:, axis] == value].float().mean().item()
            for value in real.true[:, axis].unique().tolist()
        ]
        found[factor.name] = sum(each) / len(each)
    return found


def _confusions(real: Readings, factors: Sequence[Factor]) -> dict[str, Tensor]:
    once = torch.ones(1, len(real.true))
    return {
        factor.name: confusion(counted_pairs(real.true[:, axis], real.read[:, axis], factor.size, once))[0]
        for axis, factor in enumerate(factors)
    }


def _counts(
    drawn: Float[Tensor, "true drawn"], readings: Readings, factors: Sequence[Factor], name: str
) -> Int[Tensor, "true shown"]:
    """How many images of each intended value show which; the last column counts those that show none."""
    axis = [factor.name for factor in factors].index(name)
    intended = readings.true[:, axis].bincount(minlength=len(drawn))
    shown = drawn.round().long()
    return torch.cat([shown, (intended - shown.sum(1)).clamp(min=0)[:, None]], 1)


def _by_combination(classes: Sequence[str], group: Int[Tensor, "n"], combinations: int) -> tuple[str, ...]:
    """The most common class of each held-out combination; "" if it was not drawn."""
    found = [""] * combinations
    for number in group.unique().tolist():
        own = [name for name, other in zip(classes, group.tolist(), strict=True) if other == number]
        found[number] = max(KINDS, key=own.count)
    return tuple(found)
