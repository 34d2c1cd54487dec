"""Queries about the functions of a region: their arrays by role, and the calls of functions."""

from __future__ import annotations

from collections.abc import Iterable

from .nodes import Array, Call, Region, Stmt
from .statements import all_statements

__all__ = ["arrays_with", "function_calls", "is_own"]


def arrays_with(function: Region, *roles: str) -> list[Array]:
    """Return the arrays that have one of ``roles``, ordered by role as given, then as in the function."""
    return [array for role in roles for array in function.arrays if array.role == role]


def is_own(array: Array) -> bool:
    """Return whether each call of a function has its own copy of ``array``: if it has no axes, or is a
    temporary of known size."""
    return not array.shape or (array.role == "temp" and all(type(n) is int for n in array.shape))


def function_calls(body: Iterable[Stmt]) -> list[Call]:
    """Return the statements in ``body``, at any depth, that call a function of the region."""
    calls = [stmt for stmt in all_statements(body) if isinstance(stmt, Call)]
    return [stmt for stmt in calls if stmt.op == "function.call"]
