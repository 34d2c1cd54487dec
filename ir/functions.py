"""Functions of regions: what they get, what each call of them has its own, and where they are called."""

from __future__ import annotations

from collections.abc import Iterable

from .nodes import Array, Call, Region, Stmt
from .statements import all_statements

__all__ = ["arrays_with", "function_calls", "is_own"]


def arrays_with(function: Region, *roles: str) -> list[Array]:
    """Return the arrays with some roles, those with the first role first, else in order."""
    return [array for role in roles for array in function.arrays if array.role == role]


def is_own(array: Array) -> bool:
    """Whether each call of a function has an array of its own: a number, or a temporary of known size."""
    return not array.shape or (array.role == "temp" and all(type(n) is int for n in array.shape))


def function_calls(body: Iterable[Stmt]) -> list[Call]:
    """Return the calls of functions in statements."""
    found = [stmt for stmt in all_statements(body) if isinstance(stmt, Call)]
    return [stmt for stmt in found if stmt.op == "function.call"]
