"""NumPy's functions on distributed arrays, by running NumPy's own Python source on wrapped arrays.

Many of NumPy's functions are written in Python in terms of others.  Where all of those have distributed
implementations, the function's source runs with global names that make and take wrapped arrays.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from dcarray.comm.transport.errors import CommError
from dcarray.core.backend import NOT_DISTRIBUTED
from dcarray.core.errors import StrictError
from dcarray.core.processes import communicator
from dcarray.distributed.function_dispatch import is_distributed
from dcarray.recording.operands import plain_of

__all__ = ["DECOMPOSITIONS", "call_numpy_source", "decomposition_of", "definition", "index_trick"]


def call_numpy_source(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a NumPy function by its source or decomposition, or `NOT_DISTRIBUTED`.

    It is `NOT_DISTRIBUTED` if the function has neither, if no argument is distributed, or if running it
    raises: NumPy is then called, and raises its own error.
    """
    if communicator() is None:
        return NOT_DISTRIBUTED
    if function not in DECOMPOSITIONS or not any(map(_contains_distributed, (*args, *kwargs.values()))):
        return NOT_DISTRIBUTED
    return _try(lambda: (DECOMPOSITIONS[function] or definition(function))(*args, **kwargs))


def index_trick(original: Any, key: Any) -> Any:
    """Return ``numpy.r_[key]`` or ``numpy.c_[key]`` of distributed arrays, or `NOT_DISTRIBUTED`."""
    if communicator() is None or original not in (np.r_, np.c_) or not _contains_distributed(key):
        return NOT_DISTRIBUTED
    return _try(lambda: _index_trick_stand_in(original).__getitem__(key))


def decomposition_of(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for the decomposition of NumPy's functions; NumPy is called where it raises."""

    def enter(body: Callable[..., Any]) -> Callable[..., Any]:
        DECOMPOSITIONS.update(dict.fromkeys(functions, body))
        return body

    return enter


def _try(call: Callable[[], Any]) -> Any:
    from dcarray.api.functions.fallback import wrap_results

    try:
        return wrap_results(call())
    except (CommError, StrictError):
        raise
    except Exception:  # the same on all ranks
        return NOT_DISTRIBUTED


def _contains_distributed(value: Any) -> bool:
    return (
        any(map(_contains_distributed, value)) if isinstance(value, (list, tuple)) else is_distributed(value)
    )


@cache
def definition(function: Any) -> Callable[..., Any]:
    """Return a copy of NumPy's Python function, whose global names mean the stand-ins for NumPy's."""
    body = function._implementation
    copy: Callable[..., Any] = _with_globals(body, _stand_ins(body.__module__))
    return copy


def _with_globals(body: Any, names: dict[str, Any]) -> Any:
    copy = FunctionType(body.__code__, names, body.__name__, body.__defaults__, body.__closure__)
    copy.__kwdefaults__ = body.__kwdefaults__
    return copy


@cache
def _index_trick_stand_in(original: Any) -> Any:
    """Return `numpy.r_` or `numpy.c_`, with global names that stand for NumPy's."""
    from dcarray.jit.numpy_proxy import counterpart

    kind: Any = type(original)
    base = kind.__mro__[1]
    members = {
        "__getitem__": _with_globals(base.__getitem__, _stand_ins(base.__module__)),
        "concatenate": staticmethod(counterpart(np.concatenate)),
    }
    return type(kind.__name__, (kind,), members)()


class _Converter:
    """A stand-in for NumPy's private array converter: arguments become arrays, results stay what they are."""

    def __init__(self, *values: Any) -> None:
        from dcarray.api.functions.creation import asarray

        self._arrays = tuple(map(asarray, values))

    def as_arrays(self, **_: Any) -> tuple[Any, ...]:
        return self._arrays

    def __getitem__(self, place: Any) -> Any:
        return self._arrays[place]

    def wrap(self, result: Any, **_: Any) -> Any:
        return result


@cache
def _stand_ins(module: str) -> dict[str, Any]:
    """Return stand-ins for the global names of one of NumPy's modules; its own functions see them too."""
    from dcarray.jit.numpy_proxy import counterpart

    numpy_names = vars(sys.modules[module])
    names: dict[str, Any] = {}
    for name, value in numpy_names.items():
        own = type(value) is FunctionType and value.__globals__ is numpy_names and name not in _PLAIN_TUPLES
        names[name] = _with_globals(value, names) if own else counterpart(value)
    names["_array_converter"] = _Converter
    if "_unsigned_subtract" in numpy_names:
        names["_unsigned_subtract"] = _unsigned_difference(
            numpy_names["_unsigned_subtract"], names["_unsigned_subtract"]
        )
    return names


def _unsigned_difference(original: Callable[..., Any], stand_in: Callable[..., Any]) -> Callable[..., Any]:
    """Return NumPy's private unsigned difference: its own for scalars, the stand-in for arrays."""

    def difference(high: Any, low: Any) -> Any:
        if np.ndim(high) or np.ndim(low):
            return stand_in(high, low)
        return original(plain_of(high), plain_of(low))[()]

    return difference


_PLAIN_TUPLES = frozenset(["_as_pairs"])  # private functions of plain tuples, which stay NumPy's
_SETS = """
ediff1d intersect1d setdiff1d setxor1d union1d unique_all unique_counts unique_inverse unique_values
"""
_SHAPES = """
apply_over_axes delete insert ix_ meshgrid pad resize trim_zeros tril_indices_from triu_indices_from
"""
_VALUES = """
angle average corrcoef cov gradient histogram2d histogram_bin_edges i0 median nan_to_num nanargmax nanargmin
nanmedian nanpercentile nanquantile percentile piecewise quantile real_if_close sort_complex unwrap
"""
_POLYNOMIALS = " polyadd polyder polyfit polyint polysub polyval vander "
_ALGEBRA = """
cond cross matrix_norm matrix_power matrix_rank multi_dot norm outer tensorinv tensorsolve trace vecdot
vector_norm
"""
_COMPLEX = " arccos arcsin log power sqrt "
# Functions that use only public attributes of arrays.
_OF_NUMPY: list[Any] = [
    *(getattr(np, name) for name in (_SETS + _SHAPES + _VALUES + _POLYNOMIALS).split()),
    *(getattr(np.linalg, name) for name in _ALGEBRA.split()),
    *(getattr(np.emath, name) for name in _COMPLEX.split()),
]
# By NumPy function: its decomposition, or None for NumPy's own source.
DECOMPOSITIONS: dict[Any, Callable[..., Any] | None] = dict.fromkeys(_OF_NUMPY)
