"""The beginning of every program: functions that print values exactly, with the warnings since the last."""

from __future__ import annotations

__all__ = ["PRELUDE"]

# `rough` marks a number whose last bits depend on the order of additions.  `settle` waits for plans, so that
# what comes after it runs compiled; where nothing is accelerated it does nothing.  `hot` counts the
# calls that make code hot.
PRELUDE = """\
import cmath
import hashlib
import sys
import warnings
from types import SimpleNamespace

import numpy as np

HEARD, LOG, BOX, ITEMS, HOLD = [], [], {}, [None], SimpleNamespace()


def heard(message, category, *place):
    HEARD.append(f"{category.__name__}: {message}")


warnings.simplefilter("always")
warnings.showwarning = heard


def digest(value):
    if isinstance(value, np.ndarray):
        exact = value.dtype.kind in "biu"
        elements = value.tobytes() if exact else np.ndarray.tolist(value)
        first = np.ndarray.tolist(value.reshape(-1)[:4])
        bits = hashlib.sha1(repr(elements).encode()).hexdigest()[:10]
        kind = f"{type(value).__module__}.{type(value).__name__}".replace("__main__", "program")
        steps = [step for n, step in zip(value.shape, value.strides) if n > 1 and value.size]
        return f"{kind} {value.dtype} {value.shape} {steps} {bits} {first}"
    if isinstance(value, np.generic):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} [{', '.join(map(digest, value))}]"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"{type(value).__name__} {hashlib.sha1(bytes(value)).hexdigest()[:10]}"
    return f"{type(value).__name__} {value!r}"


def show(tag, *values):
    print(tag, *map(digest, values), sep=" | ")
    for line in dict.fromkeys(HEARD):
        print(tag, "warned", line, sep=" | ")
    HEARD.clear()


def rough(value):
    return f"~{float(value)!r}~"


def hot(n):
    return range(n)


def settle():
    if "dcarray" in sys.modules:
        sys.modules["dcarray"].wait()


def shown(tag, function, *args, **kwargs):
    try:
        show(tag, function(*args, **kwargs))
    except Exception as error:
        show(tag, type(error).__name__, str(error))
"""
