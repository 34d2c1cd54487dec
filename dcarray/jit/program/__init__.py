"""``dc.program``: functions with annotated types, compiled ahead of their calls for all sizes."""
