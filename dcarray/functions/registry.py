"""The table of NumPy functions that have an implementation here, and how one enters it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.array import ndarray

from . import fallback

__all__ = ["IMPLEMENTATIONS", "Unserved", "implements", "small"]

Function = Callable[..., Any]

IMPLEMENTATIONS: dict[Function, Function] = {}


def small(values: Any) -> bool:
    """Are all wrapped arrays among ``values`` (sequences looked into) for NumPy: small, or one element?"""
    for value in values:
        kind = type(value)
        if kind is ndarray:
            if value._small is None and value._shape:
                return False
        elif (kind is tuple or kind is list) and not small(value):
            return False
    return True


class Unserved(Exception):
    """An implementation does not serve this call; NumPy computes the result or raises its own error."""


def implements(function: Function | str, *, composite: bool = True) -> Callable[[Function], Function]:
    """Enter an implementation of a NumPy function into the table.

    An implementation takes the function's arguments, whose signature NumPy's dispatcher has already
    checked, and raises `Unserved`, before it changes anything, for any call that it does not serve,
    bad ones included.

    Parameters
    ----------
    function : callable or str
        The NumPy function; a name that this version of NumPy lacks is passed over.
    composite : bool
        It makes several calls of its own, so that on small arrays NumPy's own code is faster.

    Returns
    -------
    callable
        Decorator; what it returns can be called like the NumPy function.
    """
    known: Any = getattr(np, function, None) if isinstance(function, str) else function

    def register(body: Function) -> Function:
        if composite:

            def entry(*args: Any, **kwargs: Any) -> Any:
                if small(args) and (not kwargs or small(kwargs.values())):
                    return fallback.direct(known, args, kwargs)
                try:
                    return body(*args, **kwargs)
                except Unserved:
                    return fallback.call(known, args, kwargs, True)
        else:

            def entry(*args: Any, **kwargs: Any) -> Any:
                try:
                    return body(*args, **kwargs)
                except Unserved:
                    return fallback.call(known, args, kwargs, True)

        entry.__name__ = entry.__qualname__ = body.__name__
        entry.__doc__ = body.__doc__
        if known is not None:
            IMPLEMENTATIONS[known] = entry
        return entry

    return register
