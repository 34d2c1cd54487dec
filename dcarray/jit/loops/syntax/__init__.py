"""Analysis of a function's syntax: its verified source, eligible loops, names that are read and bound."""
