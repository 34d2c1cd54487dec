"""Layouts: the rank of a process grid that owns each element of an array.  Pure functions, no messages."""
