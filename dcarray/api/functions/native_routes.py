"""What small arrays take straight to NumPy: the functions that are served, and most methods."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from dcarray.core.native import BUILT
from dcarray.core.processes import launched

from .numpy_served import served_by_numpy
from .registry import IMPLEMENTATIONS
from .triangles import TRIL, TRIU

_MODULES: tuple[ModuleType, ...] = (np, np.linalg, np.fft, np.emath, np.lib.stride_tricks)

_METHODS = """
all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy cumprod cumsum
diagonal dot fill flatten item max mean min nonzero partition prod ravel repeat reshape round searchsorted
sort squeeze std sum swapaxes take tolist trace transpose var
"""

# What may make large arrays of small ones, and of how many: each element of one with each of another, and as
# often as the numbers among the arguments say.  Or of none: a square (`like` is what calls us).
_GROWING: dict[Any, int] = {np.outer: 2, np.repeat: 1, np.tile: 1, np.eye: -1, np.identity: -1, np.tri: -1}
# What looks at no more of an array than its shape and dtype, and gives no array.
_SHAPES = "shape ndim size result_type iscomplexobj isrealobj"
# What gives views of its arguments, or no arrays at all; of memory in C's order alone; and of matrices alone.
_VIEWS = """
transpose moveaxis swapaxes rollaxis squeeze expand_dims atleast_1d atleast_2d atleast_3d flip fliplr flipud
rot90 diagonal real broadcast_to broadcast_arrays split array_split hsplit vsplit dsplit matrix_transpose
permute_dims unstack
"""
_VIEWS_OF_ROWS = "reshape ravel"
_VIEWS_OF_MATRICES = "diag"
_METHODS_THAT_VIEW = "swapaxes transpose squeeze diagonal item"


def viewing() -> dict[Any, bool | None]:
    """The functions and names of methods that NumPy does at once on large arrays on which nothing is pending,
    and whether these must lie in C's order, or None if they must be matrices; none where several ranks may
    have to record the same."""
    if launched():
        return {}
    found: dict[Any, bool | None] = {}
    for names, rows in ((_VIEWS, False), (_VIEWS_OF_ROWS, True), (_VIEWS_OF_MATRICES, None)):
        found.update((function, rows) for name in names.split() if (function := getattr(np, name, None)))
    found.update(dict.fromkeys(_METHODS_THAT_VIEW.split(), False))
    found.update(dict.fromkeys(_VIEWS_OF_ROWS.split(), True))
    return found


def functions() -> frozenset[Any]:
    """The dispatched functions of NumPy that have an implementation, or NumPy's own as the intended one."""
    found: set[Any] = set()
    for module in _MODULES:
        for value in vars(module).values():  # to ask for an attribute may import a module
            if not hasattr(value, "_implementation"):
                continue
            if value in IMPLEMENTATIONS or served_by_numpy(value):
                found.add(value)
    return frozenset(found)


def shortened(function: Callable[..., Any], slow: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ours that goes straight to NumPy's with small arrays, if NumPy's is one of those."""
    return slow


def shorten_calls(cls: type, name: str, method: str = "__call__") -> None:
    """Let calls of instances, which hold a function of NumPy's as ``name``, go straight to it likewise, or
    those of this method of theirs."""


def made_small(function: Any, slow: Any) -> Any:
    """A function of ours that makes arrays, and goes straight to NumPy's for small ones of numbers."""
    return slow


def made_by_generator(function: Any, slow: Any) -> Any:
    """A method of ours of a generator, which goes straight to that of NumPy's where no arrays are given."""
    return slow


if BUILT:  # else `fallback.quick` and the methods themselves do it
    from dcarray._native import extension
    from dcarray._native.extension import serve, short, short_call, short_maker

    # on plain arrays there is nothing to dispatch
    _behind = {function: function._implementation for function in functions()}
    _behind |= {f: (getattr(f, "_implementation", f), arrays) for f, arrays in _GROWING.items()}
    _behind |= {np.tril: TRIL, np.triu: TRIU}
    _questions = frozenset(getattr(np, name) for name in _SHAPES.split())
    _answered = tuple(getattr(np, name) for name in extension.ANSWERED)
    serve(_behind, tuple(_METHODS.split()), _questions, viewing(), _answered)
    _makers: dict[Any, int] = {
        np.zeros: extension.SHAPED, np.ones: extension.SHAPED, np.full: extension.FILLED,
        np.arange: extension.RANGED, np.eye: extension.SQUARE, np.identity: extension.SQUARE,
        np.array: extension.LISTED, np.empty: extension.UNWRITTEN, np.asarray: extension.ITSELF,
        np.asanyarray: extension.ITSELF, np.ascontiguousarray: extension.ROWWISE,
    }  # fmt: skip
    shortened = short
    shorten_calls = short_call

    def made_small(function: Any, slow: Any) -> Any:
        kind = _makers.get(function) if callable(function) else None
        return slow if kind is None else short_maker(function, slow, kind)

    def made_by_generator(function: Any, slow: Any) -> Any:
        return short_maker(function, slow, extension.DRAWN)
