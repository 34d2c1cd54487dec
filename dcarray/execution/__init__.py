"""From a plan to values in memory; without a plan, op by op in NumPy."""
