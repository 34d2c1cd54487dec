"""Dispatch of NumPy's functions on distributed arrays to implementations that gather nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.api.array import ndarray, wrap
from dcarray.api.functions.registry import Unserved
from dcarray.comm.exchange.dist_array import DistArray
from dcarray.comm.layout.layouts import Whole
from dcarray.core.backend import NOT_DISTRIBUTED
from dcarray.core.errors import BAD_CALL
from dcarray.core.handle import Handle, large
from dcarray.core.own_files import is_of_caller
from dcarray.core.processes import communicating, communicator
from dcarray.core.shard import Shard, set_shard
from dcarray.core.store import Store, compiles

from .array_distribution import blocks_of, distribute

__all__ = [
    "DISTRIBUTED", "DISTRIBUTED_WRITES", "detach", "dist_array_of", "dist_operand", "is_distributed",
    "ndarray_of", "order_dependent", "require", "required_axis", "run_distributed", "try_call",
    "try_call_replicated",
]  # fmt: skip

_MAX_COMPARED = 16  # elements of a sequence that ranks compare
_PLAIN = (bool, int, str, type(None), type(...))  # types whose values ranks compare


def is_distributed(x: Any) -> bool:
    """Whether an array is distributed, once what is pending on it has run."""
    if type(x) is not ndarray or communicator() is None:
        return False
    return blocks_of(x)[0] is not None


def try_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return a NumPy function's result for distributed arrays; `NOT_DISTRIBUTED` if it has none."""
    if communicator() is None:
        return NOT_DISTRIBUTED
    if function in DISTRIBUTED_WRITES:
        return _try_write(function, args, kwargs)
    if function not in DISTRIBUTED or not any(map(_contains_distributed, (*args, *kwargs.values()))):
        return NOT_DISTRIBUTED
    return try_call_replicated(function, args, kwargs)


def try_call_replicated(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a function as `try_call` does, for arguments that every rank has as a whole."""
    called = args[0] if args and isinstance(args[0], np.ufunc) else function
    try:
        return run_distributed(DISTRIBUTED[function], args, kwargs, called.__name__)
    except (Unserved, *BAD_CALL) as error:
        if is_of_caller(error):
            raise
    return NOT_DISTRIBUTED


def _contains_distributed(value: Any) -> bool:
    """Whether a value is a distributed array, or an index with one."""
    return any(map(is_distributed, value)) if type(value) is tuple else is_distributed(value)


def run_distributed(
    implementation: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str
) -> Any:
    """Return the result of a distributed implementation, as wrapped arrays.

    Raises
    ------
    Unserved
        If the implementation does not handle these arguments.
    """
    for value in (*args, *kwargs.values()):  # objects are not sent
        require(value is not object and not (isinstance(value, (str, np.dtype)) and value in ("O", "object")))
    args, kwargs = tuple(map(detach, args)), {name: detach(a) for name, a in kwargs.items()}
    with communicating():
        _check_same_call(name, args, kwargs)
        result = implementation(*args, **kwargs)
    if isinstance(result, tuple):
        arrays = map(ndarray_of, result)
        return type(result)(*arrays) if hasattr(result, "_fields") else tuple(arrays)
    return None if result is None else ndarray_of(result)


def _check_same_call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Compare the call on all ranks, before a message of one call can be taken for another's."""
    comm = communicator()
    assert comm is not None
    comm.step((name, *map(_signature, args), *((k, _signature(kwargs[k])) for k in sorted(kwargs))))


def _signature(value: Any) -> Any:
    """Return the properties of an argument that have to be the same on all ranks and are cheap to compare."""
    if isinstance(value, (Handle, np.ndarray)):
        return value.shape, value.dtype.str
    if isinstance(value, (list, tuple)):
        return tuple(map(_signature, value)) if len(value) <= _MAX_COMPARED else len(value)
    if type(value) is slice:
        return "slice", *map(_signature, (value.start, value.stop, value.step))
    return value if isinstance(value, _PLAIN) else type(value).__name__


def _try_write(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a function that writes into an array, where the array, its indices or its values are distributed.

    Return `NOT_DISTRIBUTED` for a call without implementation.
    """
    position = 1 if function is np.ufunc.at else 0  # of the array that is written
    x: Any = args[position] if len(args) > position else None
    is_whole = not is_distributed(x)
    if is_whole and not (type(x) is ndarray and any(map(_contains_distributed, (*args, *kwargs.values())))):
        return NOT_DISTRIBUTED
    if x._readonly or not x.ndim or not x.size or not compiles(x.dtype):
        return NOT_DISTRIBUTED
    args = tuple([a if k == position else detach(a) for k, a in enumerate(args)])
    kwargs = {name: detach(a) for name, a in kwargs.items()}
    with communicating():
        _check_same_call(args[0].__name__ if position else function.__name__, args[position:], kwargs)
        try:
            write = DISTRIBUTED_WRITES[function](*args, **kwargs)
        except (Unserved, *BAD_CALL):
            return NOT_DISTRIBUTED
    target = distribute(x) if is_whole else detach(x)
    head = x._store.family
    reshaped = target is x and x._store is not head  # the distributed store has another shape
    with communicating():
        before = dist_array_of(target)
        assert before is not None
        try:
            after = write(before)
        except BAD_CALL:  # before anything is written
            return NOT_DISTRIBUTED
        if reshaped:
            after = after.reshape(head.shape)
    if after is before and target is x:
        head.remote.filled = None
    else:
        destination = large(ndarray, head, head.shape, None) if reshaped else x
        destination[...] = ndarray_of(after)
    return None


def detach(x: Any) -> Any:
    """Return a view of a part of a distributed array as an array of its own; any other value itself."""
    if type(x) is tuple:
        return tuple(map(detach, x))
    if type(x) is not ndarray:
        return x
    head, window = blocks_of(x)
    return x if head is None or window is None or _reshapes(x, head) else x.copy()


def _reshapes(x: Any, head: Store) -> bool:
    """Whether an array is a reshape of the whole head of its storage family."""
    store = x._store
    return (
        x._index is None and store.strides is None and store.dtype == head.dtype and store.size == head.size
    )


def dist_array_of(x: Any) -> DistArray | None:
    """Return the argument of a distributed implementation for an array; None for other values."""
    comm = communicator()
    assert comm is not None
    if type(x) is ndarray:
        head, window = blocks_of(x)
        if head is not None:
            held = DistArray(comm, head.remote.layout, head.remote.block)
            if window is None:
                return held
            return held.reshape(x.shape) if _reshapes(x, head) else None
    elif type(x) is not np.ndarray:
        return None
    return DistArray.replicated(np.asarray(x), comm)


def ndarray_of(piece: DistArray) -> Any:
    """Return the wrapped array of a distributed implementation's result."""
    if not piece.ndim:
        return piece.block[()]
    whole = all(isinstance(spec, Whole) for spec in piece.layout.axes)
    if whole or not compiles(piece.dtype):
        return wrap(piece.gather())
    store = Store(piece.shape, piece.dtype)
    set_shard(store, Shard(piece.layout, np.ascontiguousarray(piece.block), piece.comm))
    return large(ndarray, store, piece.shape, None)


# ---- arguments of implementations --------------------------------------------------------------------
def require(condition: object) -> None:
    """Decline a call, so that NumPy runs it, unless ``condition`` is true.

    Raises
    ------
    Unserved
        If the condition is false.
    """
    if not condition:
        raise Unserved


def dist_operand(value: Any, convert: type | tuple[type, ...] = ()) -> DistArray:
    """Return the distributed form of an array, or of a value of the types to ``convert``.

    Raises
    ------
    Unserved
        For other values.
    """
    x = dist_array_of(np.asarray(value) if isinstance(value, convert) else value)
    if x is None:
        raise Unserved
    return x


def required_axis(axis: Any, ndim: int) -> int:
    """Return ``axis`` as a non-negative number; decline an invalid one, for NumPy's error."""
    require(isinstance(axis, (int, np.integer)) and type(axis) is not bool and -ndim <= axis < ndim)
    return int(axis) % ndim


def order_dependent(ufunc: np.ufunc, dtype: Any) -> bool:
    """Whether the last bits of a reduction depend on the order of its elements."""
    return ufunc in (np.add, np.multiply) and np.dtype(dtype).kind in "fc"


# Each gives a function that writes into the first argument's array, and returns it or what replaces it.
DISTRIBUTED_WRITES: dict[Any, Callable[..., Any]] = {}
DISTRIBUTED: dict[Any, Callable[..., Any]] = {}
