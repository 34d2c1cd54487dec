"""The base of all other packages: options, counters, stores and windows, floating-point state, ranks."""
