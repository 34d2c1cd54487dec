"""The arrays of users: class, methods, operators and indexing, NumPy's protocols and functions."""
