"""Terms added to the loss: one file per idea; every file here is imported."""

from importlib import import_module
from pkgutil import iter_modules

from composcope.penalties.base import Batch, Penalty, Step, TrainingData
from composcope.penalties.embeddings import Entropy, Variance

__all__ = ["Batch", "Entropy", "Penalty", "Step", "TrainingData", "Variance"]

for _module in iter_modules(__path__, __name__ + "."):
    import_module(_module.name)
