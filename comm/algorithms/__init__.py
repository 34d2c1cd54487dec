"""Distributed algorithms on whole arrays, one a file: each process calls it with its part."""
