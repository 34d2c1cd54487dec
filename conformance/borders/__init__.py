"""Scripts that pass arrays to other libraries and processes, and whose names other code looks up."""
