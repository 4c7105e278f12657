"""Measurements of the boundary against the physical limit, all taken in one run (docs: benchmarks/README.md)."""
