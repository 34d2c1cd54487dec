"""`numpy.strings`, giving wrapped arrays."""

from .functions.namespace import delegate

__getattr__, __dir__ = delegate("strings")
