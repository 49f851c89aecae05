"""Readers: small networks that say which value of each factor an image shows, and whether it is like a real image."""

from composcope.readers.factor_readers import FactorReaders, GivenReader, OwnReader, Reading, train_readers
from composcope.readers.likeness import Likeness, train_likeness

__all__ = ["FactorReaders", "GivenReader", "Likeness", "OwnReader", "Reading", "train_likeness", "train_readers"]
