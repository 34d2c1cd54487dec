"""Passes for CPUs: blocking for caches, vectors and registers, library calls, storage."""
