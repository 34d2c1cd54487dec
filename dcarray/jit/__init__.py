"""``dcarray.accelerate``: loops and runs of statements of functions and modules, compiled from their source."""
