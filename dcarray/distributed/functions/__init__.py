"""Distributed implementations of NumPy's functions; they enter themselves into tables of the dispatch."""
