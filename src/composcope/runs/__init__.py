"""A run as a value: its spec, the walk from spec to trained run, the opened run, sweeps and plugins."""

# Of what is measured on runs: raised when a definition changes, so that stored numbers are made again.
ERROR_VERSION = 2  # 2: a table's background is learned or given
DIAGNOSIS_VERSION = 6  # of the diagnosis, and of the verdict that is stored by itself
