"""Calibration of reference counts: what `sys.getrefcount` says for an object in only a list or an attribute.

The count includes variables of functions, and differs between versions of Python: from 3.14 on, passing an
object to a function adds no reference.
"""

from __future__ import annotations

from sys import getrefcount

__all__ = ["GIVEN", "LISTED"]


def _listed() -> int:
    held = [object()]
    value = held[0]
    return getrefcount(value)


def _count(value: object) -> int:
    return getrefcount(value)


def _given() -> int:
    held = [object()]
    value = held[0]
    return _count(value)


LISTED = _listed()
"""The count in a function that has the object in a variable."""
GIVEN = _given()
"""The count in a function that was given the object by one that has it in a variable."""
