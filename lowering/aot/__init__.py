"""Ahead of time: regions as functions of a shared library for C, which needs neither Python nor NumPy."""
