"""Tiering: whether a call runs in NumPy at once or is recorded, by its size; which code runs compiled."""
