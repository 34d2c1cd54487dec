"""Runs the tests of whole packages accelerated by dcarray: ``python -m conformance.packages``."""
