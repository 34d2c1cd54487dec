"""Layouts: which process of a grid has which elements of an array.  Pure functions, no messages."""
