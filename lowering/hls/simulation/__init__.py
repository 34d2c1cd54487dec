"""Process networks in Python, cycle by cycle, and their kernels as programs."""
