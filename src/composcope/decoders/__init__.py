"""Code -> image: what is learned; one file a decoder, found by being here."""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__, __name__ + "."):
    import_module(_module.name)
