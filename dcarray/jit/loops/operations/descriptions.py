"""Descriptions of traced values, and of changes of their types in a loop, for the report: with advice."""

from __future__ import annotations

import numpy as np

from .values import Either, Value, is_array, is_number, kind_of

__all__ = ["change_of", "described"]


def described(value: Value) -> str:
    """Return a value's kind in words, such as "an array"; "" unless it is a number, an array or None."""
    if is_array(value):
        axes = len(value.shape)
        return f"an array of {value.dtype} with {axes} {'axis' if axes == 1 else 'axes'}"
    if value is None:
        return "None"
    name = _type_name(value)
    return name and f"a number of type {name}"


def _type_name(value: Value) -> str:
    kind = kind_of(value) if is_number(value) else None
    if kind is None or isinstance(kind, Either):
        return ""
    return kind.__name__ if isinstance(kind, type) else f"np.{np.dtype(kind)}"


def change_of(name: str, before: Value, after: Value) -> str:
    """Return a text: how the type of a name changes in a loop, and what to write instead."""
    was, becomes = described(before), described(after)
    if not was or not becomes or was == becomes:
        return f"{name} changes from one iteration to the next"
    start = "zeros" if is_array(after) else "" if after is None else _type_name(after)
    wanted = f"begin with {name} = np.zeros(...)" if start == "zeros" else f"begin with {name} = {start}(0)"
    wanted = wanted if start else "take another name for it"
    return f"{name} is {was} before the loop and {becomes} after an iteration: {wanted}"
