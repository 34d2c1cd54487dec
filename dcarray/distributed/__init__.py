"""Distributed arrays: NumPy on arrays whose elements lie in blocks over the ranks of an MPI job."""
