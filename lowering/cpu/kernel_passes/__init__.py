"""Passes over kernels: unroll-and-jam, strip fusion, prefetch, streaming stores, blocks for NumPy's loops."""
