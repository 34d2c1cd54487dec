"""``dcarray.accelerate``: loops and runs of statements, compiled from their source."""
