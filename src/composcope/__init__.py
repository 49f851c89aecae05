"""composcope: does this generative decoder compose?

The public names are listed in `__init__.pyi`. Each is loaded from its module on first use, so that `composcope --help`
does not wait for torch.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
