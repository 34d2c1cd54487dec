"""What a running program needs, without what makes one: memory, NumPy's loops, libraries, the disk cache."""
