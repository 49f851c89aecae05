"""What does runs: local processes, Dask, parts of a job array; its journal and limits."""
