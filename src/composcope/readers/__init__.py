"""Readers: small networks that say which value of each factor an image shows, and whether it is like a real image."""

from composcope.readers.factor_readers import GivenReader
from composcope.readers.ready import Readers, train_readers

__all__ = ["GivenReader", "Readers", "train_readers"]
