"""Layouts, which say which rank of a process grid owns each element of an array: pure functions."""
