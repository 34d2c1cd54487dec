"""Functions and loops compiled from their source: ``dcarray.accelerate``."""
