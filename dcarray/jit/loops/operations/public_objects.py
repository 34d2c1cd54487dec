"""The objects with public names: functions and classes of NumPy, Python and dcarray."""

from __future__ import annotations

import builtins
import cmath
import functools
import math
import random
from types import SimpleNamespace
from typing import Any

import numpy as np

from dcarray.jit import parallel_map

__all__ = ["public_object"]

_NAMESPACES: dict[str, Any] = {
    "numpy": np, "builtins": builtins, "math": math, "cmath": cmath, "random": random,
    "functools": SimpleNamespace(reduce=functools.reduce),
    "dcarray": SimpleNamespace(map=parallel_map.map),
}  # fmt: skip


def public_object(name: str) -> Any:
    """Return the object with a public name; None if there is none."""
    module, _, rest = name.partition(".")
    value: Any = _NAMESPACES.get(module)
    for part in rest.split(".") if rest else ():
        value = getattr(value, part, None)
    return value
