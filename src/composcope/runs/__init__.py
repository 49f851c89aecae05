"""A run as a value: its spec, the walk from spec to trained run, the opened run, sweeps, costs and plugins."""
