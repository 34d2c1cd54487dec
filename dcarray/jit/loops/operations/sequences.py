"""Comparisons of tuples and lists with items that only the run knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .values import PYTHON, Data, Value, kind_of

if TYPE_CHECKING:
    from .arithmetic import Arithmetic

__all__ = ["compared_sequences", "is_constant"]


def is_constant(value: Value) -> bool:
    """Whether a value of Python is the same in each run."""
    if type(value) in (tuple, list):
        return all(map(is_constant, value))
    return type(value) in (*PYTHON, str, type(None)) or isinstance(value, np.dtype)


def compared_sequences(math: Arithmetic, op: str, a: Value, b: Value) -> bool | Data:
    """Trace ``==`` or ``!=`` of tuples or lists of ints; Python finds other items by their identity first."""
    if op == "!=":
        return math.negation(compared_sequences(math, "==", a, b))
    if op != "==" or type(a) not in (tuple, list):
        raise math.scope.fail(f"{op} of values that are not understood")
    if type(a) is not type(b) or len(a) != len(b):
        return False
    equal: bool | Data = True
    for x, y in zip(a, b, strict=True):
        if kind_of(x) is not int or kind_of(y) is not int:
            raise math.scope.fail(f"{op} of sequences of other items than ints")
        one = math.truth(math.binary("==", x, y))
        if one is False:
            return False
        if isinstance(one, Data):
            equal = math.both("logical_and", equal, one) if isinstance(equal, Data) else one
    return equal
