"""``dc.program``: functions with types by annotation, compiled ahead of their calls for all sizes."""
