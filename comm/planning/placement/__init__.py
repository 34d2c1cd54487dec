"""Placement: the ranks that compute each statement, and the communication inserted before it."""
