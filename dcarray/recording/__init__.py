"""From calls on large arrays to entries of a log, which is what is run later."""
