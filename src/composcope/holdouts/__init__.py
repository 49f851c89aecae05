"""Which combinations are held out, and the check that every value of every factor is still seen in training."""

from composcope.holdouts.given import Combinations, GivenHoldout, as_holdout
from composcope.holdouts.regions import (
    Box,
    Complement,
    Corner,
    Cross,
    Holdout,
    Intersection,
    Interval,
    Mask,
    Nothing,
    Square,
    Union,
)
from composcope.holdouts.splits import Certificate, Split, certify, split

__all__ = [
    "Box",
    "Certificate",
    "Combinations",
    "Complement",
    "Corner",
    "Cross",
    "GivenHoldout",
    "Holdout",
    "Intersection",
    "Interval",
    "Mask",
    "Nothing",
    "Split",
    "Square",
    "Union",
    "as_holdout",
    "certify",
    "split",
]
