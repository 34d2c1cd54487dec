"""Passes over kernels: unroll-and-jam, strip fusion, streaming stores, blocks for NumPy's loops."""
