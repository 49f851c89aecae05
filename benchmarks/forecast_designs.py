"""Designs on which forecasts are compared with training, fixed before any of them was trained or forecast.

The method was chosen on 16 x 16 images with a centre hole, and then tried at sizes 10, 15, 20 and 28. These designs
have other sizes, other holes, other amounts of data, and some have a third factor.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import composcope as cs

CENTRE = {12: cs.Square(3, 8), 18: cs.Square(5, 12), 24: cs.Square(7, 16)}
SHADES = (0.4, 0.7, 1.0)
POLARITIES: tuple[Literal["bright", "dark"], ...] = ("bright", "dark")


@dataclass(frozen=True)
class Design:
    """What is drawn, withheld, encoded and shown; trained bright with seed 0 and dark with seed 1."""

    task: cs.BumpTask
    holdout: cs.Holdout
    encoding: cs.Encoding
    sampling: cs.Sampling

    def specs(self) -> Iterator[cs.Spec]:
        for seed, polarity in enumerate(POLARITIES):
            yield cs.Spec(
                replace(self.task, polarity=polarity),
                self.holdout,
                self.encoding,
                cs.CNN(depth=3, width=24),
                self.sampling,
                cs.Training(steps=1500, batch=16),
                seed=seed,
            )


def bumps_only(count: int) -> cs.Stripes:
    return cs.Stripes(stripes=0, bumps=count)


NEW = {
    "12, centre hole, bump code": Design(cs.BumpTask(12), CENTRE[12], cs.Bump(), cs.Everything()),
    "12, corner, one-hot": Design(cs.BumpTask(12), cs.Corner(7), cs.OneHot(), cs.Everything()),
    "14, off-centre hole, bump code": Design(
        cs.BumpTask(14), cs.Box({"x": (2, 6), "y": (6, 11)}), cs.Bump(), cs.Everything()
    ),
    "14, two holes, one-hot": Design(cs.BumpTask(14), cs.Square(2, 5) | cs.Square(8, 11), cs.OneHot(), cs.Everything()),
    "18, two holes, bump code": Design(
        cs.BumpTask(18), cs.Square(3, 6) | cs.Square(11, 14), cs.Bump(), cs.Everything()
    ),
    "18, centre hole, 50 bumps alone, bump code": Design(cs.BumpTask(18), CENTRE[18], cs.Bump(), bumps_only(50)),
    "18, centre hole, stripes + 20, one-hot": Design(cs.BumpTask(18), CENTRE[18], cs.OneHot(), cs.Stripes(bumps=20)),
    "18, corner, stripes + 50, bump code": Design(cs.BumpTask(18), cs.Corner(10), cs.Bump(), cs.Stripes(bumps=50)),
    "22, off-centre hole, stripes + 50, one-hot": Design(
        cs.BumpTask(22), cs.Box({"x": (3, 10), "y": (10, 18)}), cs.OneHot(), cs.Stripes(bumps=50)
    ),
    "24, centre hole, stripes + 20, bump code": Design(cs.BumpTask(24), CENTRE[24], cs.Bump(), cs.Stripes(bumps=20)),
    "12 with brightness, centre hole, bump code": Design(
        cs.BumpTask(12, brightness=SHADES), CENTRE[12], cs.Bump(), cs.Everything()
    ),
    "12 with brightness, centre hole, stripes + 50, one-hot": Design(
        cs.BumpTask(12, brightness=SHADES), CENTRE[12], cs.OneHot(), cs.Stripes(bumps=50)
    ),
}
