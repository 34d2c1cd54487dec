"""Run-time support of compiled plans, which imports no compiler: memory, NumPy's loops, libraries, disk
cache."""
