"""The registry of implementations of NumPy functions, and the exceptions by which they refuse a call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.api.dispatch import DISPATCH
from dcarray.core.errors import BAD_CALL
from dcarray.core.own_files import is_of_caller
from dcarray.core.processes import communicator
from dcarray.execution.routines import Compiled
from dcarray.recording.fast_path import elementwise as record_again
from dcarray.tiering import policy

from . import fallback
from .fallback import NOT_SMALL, call_small

Function = Callable[..., Any]

IMPLEMENTATIONS = DISPATCH.table


def _are_single_elements(values: Any) -> bool:
    """Whether each wrapped array among ``values``, also in sequences, is small or has one element."""
    for value in values:
        kind = type(value)
        if kind is ndarray:
            if value._small is None and value._shape:
                return False
        elif (kind is tuple or kind is list) and not _are_single_elements(value):
            return False
    return True


# Functions that are recorded as several statements: NumPy does little work in less time than recording takes.
_NAMES = """
allclose argmax argmin array_equal average clip count_nonzero cross delete diff ediff1d gradient insert
mean nan_to_num nanmean nansum norm ptp std trace trapezoid var
"""
_COMPOSED = frozenset(_NAMES.split())


def _small_arrays(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
    """Return the large arrays among the arguments of a composed call if NumPy is to run it, else None.  It is
    if nothing is pending on the arrays and reading each once is little work."""
    large = [x for x in (*args, *kwargs.values()) if type(x) is ndarray and x._small is None]
    done = large and all([x._idle() and policy.eager(math.prod(x._shape), policy.PASS) for x in large])
    return large if done else None


def prefer_numpy(arrays: Sequence[ndarray], count: int | None = None) -> None:
    """Have NumPy run a call that is recorded as several statements, if recording it takes longer than kernels
    gain.

    Parameters
    ----------
    arrays : sequence of ndarray
        The large arrays among the arguments.
    count : int, optional
        How many elements of each are read; by default all.

    Raises
    ------
    NumpyIsFaster
    """
    counts = [math.prod(x._shape) if count is None else count for x in arrays]
    little = all([x._idle() and policy.eager(n, policy.SEVERAL) for x, n in zip(arrays, counts, strict=True)])
    if communicator() is None and arrays and little:
        raise NumpyIsFaster


class Unserved(Exception):
    """Raised when an implementation does not support a call; NumPy then computes it, or raises its own
    error."""


class NumpyIsFaster(Unserved):
    """Raised when NumPy is to run a call that has a compiled form: it is faster, or the code is not ready."""


def launch_of(routine: Compiled, seconds: float) -> Any:
    """Return a routine's compiled code; raise `NumpyIsFaster` before it is ready.  NumPy would take
    ``seconds``."""
    launch = routine.launch(seconds)
    if launch is None:
        raise NumpyIsFaster
    return launch


def implements(
    function: Function | str, *, views: bool = False, operation: str = ""
) -> Callable[[Function], Function]:
    """Register an implementation of a NumPy function.

    An implementation takes the function's arguments, whose signature NumPy's dispatcher has checked.  It
    raises `Unserved`, before it changes anything, for each call that it does not support, or for bad calls
    any error of `BAD_CALL`: then NumPy runs the call, or raises its own error.  Calls with small arrays only
    do not reach it, except with ``views``.

    Parameters
    ----------
    function : callable or str
        The NumPy function; a name that this version of NumPy lacks is ignored.
    views : bool
        Whether it queries arrays or makes one view, which is fast for any wrapped array, or decides itself
        whether its result is small.
    operation : str
        The operation of `dcarray.ir.ops` that it applies to its arguments: later calls take the fast path
        (`dcarray.recording.fast_path`).

    Returns
    -------
    callable
        A decorator, whose result can be called like the NumPy function.
    """
    known: Any = getattr(np, function, None) if isinstance(function, str) else function

    def register(body: Function) -> Function:
        composed = getattr(known, "__name__", None) in _COMPOSED

        def entry(*args: Any, **kwargs: Any) -> Any:
            if operation and not kwargs and (array := record_again(operation, args)) is not None:
                return array
            if not views:
                result = call_small(known, args, kwargs)
                if result is not NOT_SMALL:
                    return result
                if _are_single_elements(args) and _are_single_elements(kwargs.values()):
                    return fallback.call_numpy(known, args, kwargs)
                # kernels cannot handle the memory: its dtype does not compile, or it is misaligned
                if any(type(a) is ndarray and a._small is None and not a._store.char for a in args):
                    return fallback.call(known, args, kwargs)
                little = _small_arrays(args, kwargs) if composed else None
                if little is not None:
                    return fallback.call_numpy(known, args, kwargs)
            try:
                return body(*args, **kwargs)
            except NumpyIsFaster:
                run: Function = fallback.call_numpy
            except (Unserved, *BAD_CALL) as error:
                if is_of_caller(error):
                    raise
                run = partial(fallback.call, tried=True)
            return run(known, args, kwargs)

        entry.__name__ = entry.__qualname__ = body.__name__
        entry.__doc__ = body.__doc__
        if known is not None:
            IMPLEMENTATIONS[known] = entry
        return entry

    return register
