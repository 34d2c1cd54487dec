"""Distributed arrays: NumPy on arrays whose elements lie in blocks over MPI ranks; `dcarray.comm` moves
them."""
