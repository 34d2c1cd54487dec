"""Tiering: whether a call runs in NumPy at once or is recorded, by its size, call site and cost.

With the C extension, its calls on small arrays and the table of call sites are in `_native` (`operators.h`,
`call_sites.h`).
"""
