"""Which combinations are held out, and the check that every value of every factor is still seen in training."""

from composcope.holdouts.blocks import Orthotope, Pairs
from composcope.holdouts.cells import Cells
from composcope.holdouts.given import Combinations, GivenHoldout, as_holdout
from composcope.holdouts.leaks import Leaks, find_leaks
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
from composcope.holdouts.splits import (
    Certificate,
    Difficulty,
    Split,
    certify,
    certify_training,
    composed_at_once,
    split,
)

__all__ = [
    "Box",
    "Cells",
    "Certificate",
    "Combinations",
    "Complement",
    "Corner",
    "Cross",
    "Difficulty",
    "GivenHoldout",
    "Holdout",
    "Intersection",
    "Interval",
    "Leaks",
    "Mask",
    "Nothing",
    "Orthotope",
    "Pairs",
    "Split",
    "Square",
    "Union",
    "as_holdout",
    "certify",
    "certify_training",
    "composed_at_once",
    "find_leaks",
    "split",
]
