"""How a combination of factor values becomes an image: one file per task; every file here is imported."""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__, __name__ + "."):
    import_module(_module.name)
