"""Distributed implementations of NumPy's functions, which enter themselves into the tables of
`dcarray.distributed.function_dispatch`."""
