"""The command line: parse, delegate, print. Torch is imported only where work begins, so that --help is instant."""

# these enter their commands by being imported
from composcope.cli import decoders, runs, starting, studies, sweeps  # noqa: F401
from composcope.cli.app import app, main

__all__ = ["app", "main"]
