"""dcarray beside NumPy, Numba and JAX, in one run: ``python -m benchmarks``."""
