"""What each NumPy function means on lazy arrays."""
