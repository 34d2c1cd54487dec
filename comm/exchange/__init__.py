"""Exchanges of array blocks: the boxes that ranks send to each other, computed by formula and run."""
