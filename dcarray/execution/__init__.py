"""Execution: recordings run by their plans, or op by op in NumPy."""
