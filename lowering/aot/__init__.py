"""Ahead-of-time compilation: regions become C functions of a shared library that needs no Python."""
