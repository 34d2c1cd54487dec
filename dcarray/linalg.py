"""`numpy.linalg`, giving wrapped arrays."""

from dcarray.api.functions.namespace import delegate

__getattr__, __dir__ = delegate("linalg")
