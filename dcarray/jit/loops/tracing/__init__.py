"""The tracer: from the statements of a loop to a region."""
