"""Whole packages with `dcarray.accelerate`, and their own tests: ``python -m conformance.packages``."""
