"""Kernels printed in languages of the C family."""
