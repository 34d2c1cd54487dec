"""Exchanges of array blocks: which boxes go from whom to whom, planned by formula and run."""
