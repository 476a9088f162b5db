"""The rows of the benchmark, one file per subject; each measures with `tests.bench`'s tools."""
