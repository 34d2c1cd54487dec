"""Direct calls of NumPy for small arrays: which functions and methods the C module passes on."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from operator import attrgetter
from pickle import PicklingError
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from dcarray.api.array import ndarray
from dcarray.core.native import BUILT
from dcarray.core.processes import is_launched

from .fallback import wrap_results_of
from .numpy_served import served_by_numpy
from .registry import IMPLEMENTATIONS

_MODULES: tuple[ModuleType, ...] = (np, np.linalg, np.fft, np.emath, np.lib.stride_tricks)

_METHODS = """
all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy cumprod cumsum
diagonal dot fill flatten item max mean min nonzero partition prod ravel repeat reshape round searchsorted
sort squeeze std sum swapaxes take tolist trace transpose var
"""

# Functions that may make large arrays of small ones, and of how many: outer products, and repetitions by the
# numbers among the arguments.  Or of none: a square (`like` calls these functions).
_GROWING: dict[Any, int] = {np.outer: 2, np.repeat: 1, np.tile: 1, np.eye: -1, np.identity: -1, np.tri: -1}
# Functions that read only the shape and dtype of an array, and return no array.
_SHAPES = "shape ndim size result_type iscomplexobj isrealobj"
# Functions that return views or no arrays: of any memory, of memory in C order only, and of matrices only.
_VIEWS = """
transpose moveaxis swapaxes rollaxis squeeze expand_dims atleast_1d atleast_2d atleast_3d flip fliplr flipud
rot90 diagonal real broadcast_to broadcast_arrays split array_split hsplit vsplit dsplit matrix_transpose
permute_dims unstack
"""
_VIEWS_OF_ROWS = "reshape ravel"
_VIEWS_OF_MATRICES = "diag"
_METHODS_THAT_VIEW = "swapaxes transpose squeeze diagonal item"
# Functions and methods that go over an array once, and give no views (`dcarray.tiering.policy.PASS`).
_PASSES = "all any argmax argmin max mean min prod std sum var"
_FUNCTIONS_OF_A_PASS = "amax amin count_nonzero ptp roll"


def viewing() -> dict[Any, Any]:
    """Return the functions and methods that run at once also on large arrays, if nothing is pending on
    these.  The value says whether the arrays must be in C order (None: must be matrices), or is an ellipsis
    where they must have few elements.  There are none where there are several ranks, which have to record
    the same calls."""
    if is_launched():
        return {}
    routes: dict[Any, Any] = {}
    for names, rows in ((_VIEWS, False), (_VIEWS_OF_ROWS, True), (_VIEWS_OF_MATRICES, None)):
        routes.update((function, rows) for name in names.split() if (function := getattr(np, name, None)))
    routes.update(dict.fromkeys(_METHODS_THAT_VIEW.split(), False))
    routes.update(dict.fromkeys(_VIEWS_OF_ROWS.split(), True))
    passes = [*_PASSES.split(), *_FUNCTIONS_OF_A_PASS.split()]
    routes.update(dict.fromkeys([getattr(np, name) for name in passes] + _PASSES.split(), ...))
    return routes


def functions() -> frozenset[Any]:
    """Return the dispatched functions of NumPy with an implementation here, or by intention NumPy's own."""
    served: set[Any] = set()
    for module in _MODULES:
        for value in vars(module).values():  # an attribute access may import a module
            if not hasattr(value, "_implementation"):
                continue
            if value in IMPLEMENTATIONS or served_by_numpy(value):
                served.add(value)
    return frozenset(served)


def shortened(function: Callable[..., Any], slow: Callable[..., Any]) -> Callable[..., Any]:
    """Return the wrapper of a NumPy function in `functions` that calls it directly with small arrays."""
    return slow


def shorten_calls(cls: type, name: str, method: str = "__call__") -> None:
    """Have instances' calls, or one method, call the NumPy function in the slot ``name`` for small arrays."""


def made_small(function: Any, slow: Any) -> Any:
    """Return the wrapper of a creation function that calls NumPy's directly for small arrays of numbers."""
    return slow


def made_by_generator(function: Any, slow: Any) -> Any:
    """Return a wrapper of a generator's method that calls NumPy's directly if no arrays are passed."""
    return slow


def _reduced(function: Any) -> tuple[Any, tuple[str, str]]:
    """Return the pickle of a route of the C module, which stands for a function or method.

    Raises
    ------
    pickle.PicklingError
        If the name leads to something else.
    """
    name = function.__qualname__ if function.__name__ in vars(ndarray) else function.__name__
    place = str(function.__module__).replace("numpy", "dcarray", 1)
    for module in (place, "dcarray", "dcarray.emath"):
        with suppress(ImportError, AttributeError):
            if _member(module, name) is function:
                return _member, (module, name)
    raise PicklingError(f"can't pickle {function!r}: it is not found as {place}.{name}")


def _member(module: str, name: str) -> Any:
    return attrgetter(name)(import_module(module))


if BUILT:  # else `fallback.call_small` and the methods themselves do
    from dcarray._native import extension
    from dcarray._native.extension import make_creation_route, make_route, route_instances, set_routes

    # plain arrays need no dispatch
    _behind = {function: function._implementation for function in functions()}
    _behind |= {f: (getattr(f, "_implementation", f), arrays) for f, arrays in _GROWING.items()}
    _questions = frozenset(getattr(np, name) for name in _SHAPES.split())
    _answered = tuple(getattr(np, name) for name in extension.ANSWERED)
    set_routes(_behind, tuple(_METHODS.split()), _questions, viewing(), _answered, wrap_results_of)
    _makers: dict[Any, int] = {
        np.zeros: extension.SHAPED, np.ones: extension.SHAPED, np.full: extension.FILLED,
        np.arange: extension.RANGED, np.eye: extension.SQUARE, np.identity: extension.SQUARE,
        np.array: extension.LISTED, np.empty: extension.UNWRITTEN, np.asarray: extension.ITSELF,
        np.asanyarray: extension.ITSELF, np.ascontiguousarray: extension.ROWWISE,
    }  # fmt: skip
    shortened = make_route
    shorten_calls = route_instances

    def made_small(function: Any, slow: Any) -> Any:
        kind = _makers.get(function) if callable(function) else None
        return slow if kind is None else make_creation_route(function, slow, kind)

    def made_by_generator(function: Any, slow: Any) -> Any:
        return make_creation_route(function, slow, extension.DRAWN)

    for _route in (ndarray.sum, made_small(np.zeros, _reduced)):
        if not isinstance(_route, FunctionType):  # as they are where NumPy is not known to the C module
            copyreg.pickle(type(_route), _reduced)
