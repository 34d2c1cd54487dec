"""Rewrites of a region, one file each; ``pipeline`` names their order."""
