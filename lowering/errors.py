"""Errors of lowering."""


class Unsupported(Exception):
    """A target cannot run a kernel exactly; the text says why.  The interpreter runs it instead."""
