"""Types of programs' arguments (`dcarray.program`): ``types.float64[N, N]`` is an array with these sizes.

There is one for each dtype that compiles, by NumPy's name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dcarray.core.store import COMPILED
from dcarray.jit.program.annotations import ElementType

__all__ = sorted({np.dtype(char).name for char in COMPILED} | {"bool"})


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = kind = ElementType(np.dtype(name))
    return kind


def __dir__() -> list[str]:
    return __all__
