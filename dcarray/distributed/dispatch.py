"""NumPy's functions whose arguments lie in blocks over many ranks: forms that gather nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from dcarray.api.array import ndarray, wrap
from dcarray.core.backend import NO_FORM
from dcarray.core.handle import Handle, large
from dcarray.core.processes import communicating, communicator
from dcarray.core.shard import Shard, set_shard
from dcarray.core.store import Store, compiles

if TYPE_CHECKING:
    from dcarray.comm.exchange.dist_array import DistArray

__all__ = [
    "FORMS",
    "WRITES",
    "alone",
    "array_of",
    "complete",
    "factored",
    "formed",
    "is_distributed",
    "piece_of",
    "rounds",
    "try_call",
    "try_whole",
]  # fmt: skip

_FEW = 16  # elements of a sequence that ranks compare
_PLAIN = (bool, int, str, type(None), type(...))  # values that they do


def is_distributed(x: Any) -> bool:
    """Do the elements of an array lie in blocks?  What is pending on it is run."""
    if type(x) is not ndarray or communicator() is None:
        return False
    from .layouts import blocks_of

    return blocks_of(x)[0] is not None


def try_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a NumPy function over all ranks, or `NO_FORM` if this call has none."""
    if communicator() is None:
        return NO_FORM
    complete()
    if function in WRITES:
        return _written(function, args, kwargs)
    form = FORMS.get(function)
    if form is None or not any(map(_anywhere, (*args, *kwargs.values()))):
        return NO_FORM
    asked = args[0] if args and isinstance(args[0], np.ufunc) else function
    return formed(form, args, kwargs, asked.__name__)


def try_whole(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same for arguments that are whole on every rank as yet."""
    complete()
    asked = args[0] if args and isinstance(args[0], np.ufunc) else function
    return formed(FORMS[function], args, kwargs, asked.__name__)


def _anywhere(value: Any) -> bool:
    """Is it an array in blocks, or a key with one?"""
    return any(map(is_distributed, value)) if type(value) is tuple else is_distributed(value)


def formed(
    form: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str = "function"
) -> Any:
    """What a form gives, as arrays of the user's; `NO_FORM` if it serves no such call."""
    if any(map(_of_objects, (*args, *kwargs.values()))):
        return NO_FORM
    args, kwargs = tuple(map(alone, args)), {name: alone(a) for name, a in kwargs.items()}
    with communicating():
        _tell(name, args, kwargs)
        found = form(*args, **kwargs)
    if isinstance(found, tuple):
        made = map(array_of, found)
        return type(found)(*made) if hasattr(found, "_fields") else tuple(made)
    return found if found is NO_FORM or found is None else array_of(found)


def _tell(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Have ranks compare what they call: a message of another call would be taken for one of this."""
    comm = communicator()
    assert comm is not None
    comm.step((name, *map(_described, args), *((k, _described(kwargs[k])) for k in sorted(kwargs))))


def _described(value: Any) -> Any:
    """What has to be the same of an argument, as far as that is cheaply told."""
    if isinstance(value, (Handle, np.ndarray)):
        return value.shape, value.dtype.str
    if isinstance(value, (list, tuple)):
        return tuple(map(_described, value)) if len(value) <= _FEW else len(value)
    if type(value) is slice:
        return "slice", *map(_described, (value.start, value.stop, value.step))
    return value if isinstance(value, _PLAIN) else type(value).__name__


def _of_objects(value: Any) -> bool:
    """Is it a dtype of objects, which do not travel?"""
    return value is object or (isinstance(value, (str, np.dtype)) and value in ("O", "object"))


def _written(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Have a function write into an array that lies in blocks, or whose places or values do; `NO_FORM` if
    this call has no such form."""
    at = 1 if function is np.ufunc.at else 0
    x: Any = args[at] if len(args) > at else None
    whole = not is_distributed(x)
    if whole and not (type(x) is ndarray and any(map(_anywhere, (*args, *kwargs.values())))):
        return NO_FORM
    if x._readonly or not x.ndim or not compiles(x.dtype):
        return NO_FORM
    from .layouts import distribute

    given = [a if k == at else alone(a) for k, a in enumerate(args)]
    named = {name: alone(a) for name, a in kwargs.items()}
    with communicating():
        _tell(args[0].__name__ if at else function.__name__, tuple(given[at:]), named)
        write = WRITES[function](*given, **named)
    if write is NO_FORM:
        return NO_FORM
    target = distribute(x) if whole else alone(x)
    head = x._store.family
    reshaped = target is x and x._store is not head  # what lies in blocks has another shape
    with communicating():
        piece = piece_of(target)
        assert piece is not None
        found = write(piece)
        if reshaped:
            found = found.reshaped(head.shape)
    if found is piece and target is x:
        head.shard.filled = None
    else:
        into = large(ndarray, head, head.shape, None) if reshaped else x
        into[...] = array_of(found)
    return None


def alone(x: Any) -> Any:
    """An array in blocks that is but part of one as an array of its own; all else as it is."""
    if type(x) is tuple:
        return tuple(map(alone, x))
    if type(x) is not ndarray:
        return x
    from .layouts import blocks_of

    head, window = blocks_of(x)
    return x if head is None or window is None or _reshapes(x, head) else x.copy()


def _reshapes(x: Any, head: Store) -> bool:
    """Is an array all elements of the head of its family, in the order in which these lie?"""
    store = x._store
    return (
        x._index is None and store.strides is None and store.dtype == head.dtype and store.size == head.size
    )


def piece_of(x: Any) -> DistArray | None:
    """An array as the forms take it; None for what they do not take."""
    from dcarray.comm.exchange.dist_array import DistArray

    from .layouts import blocks_of

    comm = communicator()
    assert comm is not None
    if type(x) is ndarray:
        head, window = blocks_of(x)
        if head is not None:
            held = DistArray(comm, head.shard.layout, head.shard.block)
            if window is None:
                return held
            return held.reshaped(x.shape) if _reshapes(x, head) else None
    elif type(x) is not np.ndarray:
        return None
    return DistArray.replicated(np.asarray(x), comm)


def array_of(piece: DistArray) -> Any:
    """What a form has made, as an array of the user's."""
    from dcarray.comm.layout.layouts import Whole

    if not piece.ndim:
        return piece.block[()]
    whole = all(isinstance(spec, Whole) for spec in piece.layout.axes)
    if whole or not compiles(piece.dtype):
        return wrap(piece.gathered())
    store = Store(piece.shape, piece.dtype)
    set_shard(store, Shard(piece.layout, np.ascontiguousarray(piece.block), piece.comm))
    return large(ndarray, store, piece.shape, None)


# ---- forms -------------------------------------------------------------------------------------------
def _solve(a: Any, b: Any) -> Any:
    from dcarray.comm.algorithms import factorisations

    matrix, sides = piece_of(a), piece_of(b)
    if matrix is None or sides is None or matrix.ndim != 2 or sides.ndim > 2:
        return NO_FORM
    return factorisations.solve(matrix, sides) if factored(matrix, sides) else NO_FORM


def _cholesky(a: Any, *, upper: bool = False) -> Any:
    from dcarray.comm.algorithms import factorisations

    matrix = piece_of(a)
    if matrix is None or matrix.ndim != 2 or upper or not factored(matrix):
        return NO_FORM
    return factorisations.cholesky(matrix)


def factored(*pieces: DistArray) -> bool:
    """Whether dtypes and shapes are such that NumPy has no complaint."""
    n = pieces[0].shape[0]
    dtypes = all(x.dtype.char in "fdFDbBhHiIlLqQ?" and x.dtype.isnative for x in pieces)
    return dtypes and pieces[0].shape == (n, n) and all(x.ndim and x.shape[0] == n for x in pieces)


def _trace(
    a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None
) -> Any:
    from dcarray.comm.algorithms import diagonals

    matrix = piece_of(a)
    if matrix is None or matrix.ndim < 2 or out is not None or axis1 == axis2:
        return NO_FORM
    return diagonals.trace(matrix, offset, axis1, axis2, dtype)


def rounds(ufunc: np.ufunc, dtype: Any) -> bool:
    """Do the last bits of a fold depend on the order of what is folded?"""
    return ufunc in (np.add, np.multiply) and np.dtype(dtype).kind in "fc"


@cache
def complete() -> None:
    """Have all forms in the tables: a single process needs none of them, and imports them not."""
    for topic in _TOPICS:
        import_module(f"{__package__}.functions.{topic}")


# In the order in which they enter their forms: some replace others, and ask those for what they leave.
_TOPICS = (
    "per_line", "ordering", "counting", "numpy_source", "files", "joining", "lines", "order_statistics",
    "places", "restated", "stacked", "ufuncs", "writes",
)  # fmt: skip
# From the arguments what writes into the piece of the first one, and gives it back or what it has become.
WRITES: dict[Any, Callable[..., Any]] = {}
FORMS: dict[Any, Callable[..., Any]] = {
    np.linalg.solve: _solve,
    np.linalg.cholesky: _cholesky,
    np.trace: _trace,
}
