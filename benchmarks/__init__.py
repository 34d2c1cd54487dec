"""Benchmarks of dcarray, with NumPy, Numba and JAX for comparison: ``python -m benchmarks``."""
