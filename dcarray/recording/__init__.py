"""Recording: calls on large arrays become entries of a log, which runs later."""
