"""Run-time support of compiled programs, without the compiler: memory, NumPy's loops, libraries, the disk
cache."""
