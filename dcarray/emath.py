"""`numpy.emath` with wrapped arrays as results."""

from dcarray.api.functions.namespace import delegate

__getattr__, __dir__ = delegate("emath")
