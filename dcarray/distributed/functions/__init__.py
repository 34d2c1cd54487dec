"""Distributed forms of NumPy's functions, one topic a module, entered into the table of
`dcarray.distributed.dispatch`."""
