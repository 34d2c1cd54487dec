"""Operations of a traced loop on values: NumPy's and Python's, as expressions over the region's memory."""
