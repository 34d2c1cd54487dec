"""The table of NumPy functions that have an implementation here, and how one enters it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.api.dispatch import DISPATCH
from dcarray.core.processes import communicator
from dcarray.recording.fast_path import again as short
from dcarray.recording.operands import learn
from dcarray.tiering import policy

from . import fallback
from .fallback import NOT_SMALL, quick

__all__ = ["IMPLEMENTATIONS", "Pending", "Unserved", "implements", "leave"]

Function = Callable[..., Any]

IMPLEMENTATIONS = DISPATCH.table


def _single(values: Any) -> bool:
    """Has every wrapped array among ``values`` (sequences looked into) one element, or is it small?"""
    for value in values:
        kind = type(value)
        if kind is ndarray:
            if value._small is None and value._shape:
                return False
        elif (kind is tuple or kind is list) and not _single(value):
            return False
    return True


def _opaque(value: Any) -> bool:
    """A wrapped array that kernels do not know, for its dtype or its place in memory?"""
    return type(value) is ndarray and value._small is None and not value._store.char


# What is recorded as several statements, each of which costs some microseconds more than by an operator.
_SEVERAL = """
allclose argmax argmin array_equal average clip count_nonzero cross delete diff ediff1d gradient insert
mean nanmean nansum norm ptp std trace trapezoid var
"""
_COMPOSED = frozenset(_SEVERAL.split())


def _little(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
    """The large arrays among arguments if NumPy is done with them before several statements are recorded."""
    large = [x for x in (*args, *kwargs.values()) if type(x) is ndarray and x._small is None]
    done = large and all([x._idle() and policy.eager(math.prod(x._shape), policy.PASS) for x in large])
    return large if done else None


def leave(arrays: Sequence[ndarray]) -> None:
    """Leave a call that is recorded as several statements to NumPy, here and from now on at this place in the
    user's code, if that is sooner: to record it takes longer than kernels gain.

    Parameters
    ----------
    arrays : sequence of ndarray
        The large ones that it is about.

    Raises
    ------
    Sooner
    """
    little = all([x._idle() and policy.eager(math.prod(x._shape), policy.SEVERAL) for x in arrays])
    if communicator() is None and arrays and little:
        learn(arrays, always=True)
        raise Sooner


class Unserved(Exception):
    """An implementation does not serve this call; NumPy computes the result or raises its own error."""


class Sooner(Unserved):
    """NumPy is done with this call sooner; no lowering is missing."""


class Pending(Unserved):
    """It will serve such calls when its code is compiled: nothing is learned of the place meanwhile."""


def implements(
    function: Function | str, *, views: bool = False, again: str = ""
) -> Callable[[Function], Function]:
    """Enter an implementation of a NumPy function into the table.

    An implementation takes the function's arguments, whose signature NumPy's dispatcher has already
    checked, and raises `Unserved`, before it changes anything, for any call that it does not serve,
    bad ones included.  Calls on small arrays alone do not get to it, but for ``views``.

    Parameters
    ----------
    function : callable or str
        The NumPy function; a name that this version of NumPy lacks is passed over.
    views : bool
        It asks about arrays or makes one view, which is quick and right for any array of ours; or it finds
        out for itself whether its result is small.
    again : str
        An operation of `dcarray.ir.ops` that it is of its arguments: what has been met is recorded the short
        way (`dcarray.recording.fast_path`).

    Returns
    -------
    callable
        Decorator; what it returns can be called like the NumPy function.
    """
    known: Any = getattr(np, function, None) if isinstance(function, str) else function

    def register(body: Function) -> Function:
        composed = getattr(known, "__name__", None) in _COMPOSED

        def entry(*args: Any, **kwargs: Any) -> Any:
            if again and not kwargs and (found := short(again, args)) is not None:
                return found
            if not views:
                result = quick(known, args, kwargs)
                if result is not NOT_SMALL:
                    return result
                if _single(args) and _single(kwargs.values()):
                    return fallback.direct(known, args, kwargs)
                if any(map(_opaque, args)):
                    return fallback.call(known, args, kwargs)
                little = _little(args, kwargs) if composed else None
                if little is not None:
                    learn(little)
                    return fallback.direct(known, args, kwargs)
            try:
                return body(*args, **kwargs)
            except (Sooner, Pending):
                return fallback.direct(known, args, kwargs)
            except Unserved:
                return fallback.call(known, args, kwargs, True)

        entry.__name__ = entry.__qualname__ = body.__name__
        entry.__doc__ = body.__doc__
        if known is not None:
            IMPLEMENTATIONS[known] = entry
        return entry

    return register
