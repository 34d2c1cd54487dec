"""Passes for every target: simplification, fusion, splitting, removal of copies."""
