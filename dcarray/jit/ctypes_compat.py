"""`ctypes` pointer types that take wrapped arrays like plain ones."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.core.handle import export


def ndpointer(*args: Any, **kwargs: Any) -> Any:
    """Return a type for ``argtypes`` that takes plain and wrapped arrays; see `numpy.ctypeslib.ndpointer`."""
    return _taking(np.ctypeslib.ndpointer(*args, **kwargs))


@cache
def _taking(kind: Any) -> Any:
    class Pointer(kind):  # type: ignore[misc]
        @classmethod
        def from_param(cls, obj: Any) -> Any:
            """The argument that `ctypes` passes: evaluated memory, which the C function may write to."""
            return super().from_param(export(obj) if type(obj) is ndarray else obj)

    Pointer.__name__ = Pointer.__qualname__ = kind.__name__
    return Pointer
