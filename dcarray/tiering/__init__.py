"""Run eagerly or record: decided by amount of work, call sites and costs.

With the C extension, its calls on small arrays and the table of call sites are in `_native` (`operators.h`,
`call_sites.h`).
"""
