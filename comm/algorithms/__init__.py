"""Distributed algorithms: NumPy's functions on distributed arrays, one family a file."""
