"""The class of wrapped arrays: NumPy's operators, protocols and indexing on a handle."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from dcarray.core import config, floor, open_door
from dcarray.core.device_backend import device_backend
from dcarray.core.handle import AXES, Handle, NDArray, adopt, export, locate, register
from dcarray.core.native import BUILT
from dcarray.core.shard import gather_exported
from dcarray.core.store import FAMILIES, Store, compiles
from dcarray.core.ufunc_loops import UFUNCS
from dcarray.recording import recorder
from dcarray.recording.log import Recording
from dcarray.recording.operands import DTYPES
from dcarray.recording.session import flush_all, session

from . import buffers, indexing, protocols
from .dispatch import DISPATCH
from .methods import Methods

_new, _ndarray = object.__new__, np.ndarray
# Types of operands that an operator on a small array passes to NumPy as they are.
_PLAIN: frozenset[type] = frozenset({bool, int, float, complex, *[d.type for d in DTYPES.values()]})
_REDUCTION_ARGUMENTS = frozenset({"axis", "dtype", "keepdims"})
_WRAPPED: set[type] = set()  # the class of wrapped arrays and its subclasses
_LIMIT = 1 << 14  # elements; an array with as many or more may have to be large


def _wrap_eager(result: Any) -> Any:
    """Return NumPy's result on small arrays, wrapped, or a tuple of them."""
    if type(result) is not _ndarray:
        return protocols.rewrap(ndarray, result)
    if result.size >= _LIMIT:
        return wrap(result)
    x = _new(ndarray)
    x._small = result
    return x


def _at_once(op: Callable[..., Any], *operands: Any) -> Any:
    """Return NumPy's result, wrapped, for numbers and arrays that are small and wait for nothing; None for
    other operands, or if the result may be large."""
    plain: list[Any] = [
        (x._eager_view() if x._small is None else x._small) if type(x) is ndarray
        else x if type(x) in _PLAIN else None
        for x in operands
    ]  # fmt: skip
    if any(x is None for x in plain):
        return None
    shapes = {x.shape for x in plain if type(x) is _ndarray}
    if len(shapes) > 1 and prod(map(prod, shapes)) > 2 * _LIMIT:
        return None
    return _wrap_eager(op(*plain))


def _binary(name: str, op: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: ndarray, other: Any) -> Any:
        result = _at_once(op, self, other)
        return protocols.binary(name, op, self, other) if result is None else result

    return method


def _reflected(name: str, op: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: ndarray, other: Any) -> Any:
        result = _at_once(op, other, self)
        return protocols.reflected(name, op, other, self) if result is None else result

    return method


def _inplace(name: str, op: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: ndarray, other: Any) -> Any:
        return protocols.inplace(name, op, self, other) if _at_once(op, self, other) is None else self

    return method


def _unary(name: str, op: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def method(self: ndarray) -> Any:
        result = _at_once(op, self)
        return recorder.elementwise(name, (self,)) if result is None else result

    return method


class ndarray(Methods):
    """An array whose operations are recorded, and computed together when a value is needed.

    It is made by `asarray` or by a creation function such as `zeros`, and used as a `numpy.ndarray`: it has
    its methods, attributes and operators, with NumPy's results, dtypes, errors and warnings.

    Examples
    --------
    >>> import numpy as np, dcarray as dc
    >>> np.sqrt(dc.asarray([4.0, 9.0])) + 1
    array([3., 4.])
    """

    __slots__ = ()
    __array_priority__ = 1000.0
    __hash__ = None  # type: ignore[assignment]

    def __init_subclass__(cls) -> None:
        _WRAPPED.add(cls)

    def __new__(cls, shape: Any, dtype: Any = float, *args: Any, **kwargs: Any) -> Any:
        # its memory is nobody else's; `empty` makes dtypes without width wider
        if not args and kwargs.keys() <= {"order"} and np.dtype(dtype).itemsize:
            return DISPATCH(np.empty, (shape, dtype), kwargs)
        plain: list[Any] = [export(v) if isinstance(v, Handle) else v for v in args]  # the buffer
        named: dict[str, Any] = {k: export(v) if isinstance(v, Handle) else v for k, v in kwargs.items()}
        return placed_by_option(np.ndarray(shape, dtype, *plain, **named))

    # ---- protocols ---------------------------------------------------------------------------------
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs:
            result = _at_once(ufunc, *inputs)
            if result is not None:
                return result
        elif method == "outer" and not kwargs and UFUNCS.get(ufunc.__name__) is ufunc:
            p, q = inputs
            if type(p) is type(q) is ndarray and p._small is q._small is None and p._shape and q._shape:
                return recorder.elementwise(ufunc.__name__, (p[(..., *(None,) * len(q._shape))], q))
        elif method == "reduce" and type(inputs[0]) is ndarray and kwargs.keys() <= _REDUCTION_ARGUMENTS:
            known = UFUNCS.get(ufunc.__name__)
            if known is ufunc:
                return recorder.reduce(ufunc.__name__, inputs[0], *inputs[1:], **{"axis": 0, **kwargs})
        return protocols.ufunc(ndarray, ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return DISPATCH(func, args, kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        self._raise_buffer_error()
        a = self._elements_now() if copy else export(self)
        if dtype is None and not copy:
            return a
        if copy is False and np.dtype(dtype) != a.dtype:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        return np.array(a, dtype=dtype, copy=copy)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
            raise ValueError(f"unknown version of the array API standard: {api_version!r}")
        return open_door("array_api")

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        a = export(self)
        return a.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    # ---- indexing ----------------------------------------------------------------------------------
    def __getitem__(self, key: Any) -> Any:
        a = self._small
        if a is not None:
            t = type(key)  # NumPy takes an empty wrapped mask for a sequence
            if t in _WRAPPED or (t is tuple and not _WRAPPED.isdisjoint(map(type, key))):
                key = indexing.evaluated_key(self, key)
            try:
                r = a[key]
            except IndexError:
                r = a[indexing.plain_key(key)]
            return _wrap_eager(r) if type(r) is _ndarray else r
        return indexing.get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        a = self._small
        if a is not None:
            t = type(value)
            b = value._small if t is ndarray else value if t in _PLAIN else None
            t = type(key)
            wrapped = t in _WRAPPED or (t is tuple and not _WRAPPED.isdisjoint(map(type, key)))
            if b is not None and not wrapped:
                try:
                    a[key] = b
                except IndexError:
                    a[indexing.plain_key(key)] = b
                return
        indexing.put(self, key, value)

    def __delitem__(self, key: Any) -> None:
        raise ValueError("cannot delete array elements")

    # ---- operators ---------------------------------------------------------------------------------
    __add__ = _binary("add", operator.add)
    __radd__ = _reflected("add", operator.add)
    __iadd__ = _inplace("add", operator.iadd)
    __sub__ = _binary("subtract", operator.sub)
    __rsub__ = _reflected("subtract", operator.sub)
    __isub__ = _inplace("subtract", operator.isub)
    __mul__ = _binary("multiply", operator.mul)
    __rmul__ = _reflected("multiply", operator.mul)
    __imul__ = _inplace("multiply", operator.imul)
    __truediv__ = _binary("divide", operator.truediv)
    __rtruediv__ = _reflected("divide", operator.truediv)
    __itruediv__ = _inplace("divide", operator.itruediv)
    __floordiv__ = _binary("floor_divide", operator.floordiv)
    __rfloordiv__ = _reflected("floor_divide", operator.floordiv)
    __ifloordiv__ = _inplace("floor_divide", operator.ifloordiv)
    __mod__ = _binary("remainder", operator.mod)
    __rmod__ = _reflected("remainder", operator.mod)
    __imod__ = _inplace("remainder", operator.imod)
    __pow__ = _binary("power", operator.pow)
    __rpow__ = _reflected("power", operator.pow)
    __ipow__ = _inplace("power", operator.ipow)
    __matmul__ = _binary("matmul", operator.matmul)
    __rmatmul__ = _reflected("matmul", operator.matmul)
    __imatmul__ = _inplace("matmul", operator.imatmul)
    __and__ = _binary("bitwise_and", operator.and_)
    __rand__ = _reflected("bitwise_and", operator.and_)
    __iand__ = _inplace("bitwise_and", operator.iand)
    __or__ = _binary("bitwise_or", operator.or_)
    __ror__ = _reflected("bitwise_or", operator.or_)
    __ior__ = _inplace("bitwise_or", operator.ior)
    __xor__ = _binary("bitwise_xor", operator.xor)
    __rxor__ = _reflected("bitwise_xor", operator.xor)
    __ixor__ = _inplace("bitwise_xor", operator.ixor)
    __lshift__ = _binary("left_shift", operator.lshift)
    __rlshift__ = _reflected("left_shift", operator.lshift)
    __ilshift__ = _inplace("left_shift", operator.ilshift)
    __rshift__ = _binary("right_shift", operator.rshift)
    __rrshift__ = _reflected("right_shift", operator.rshift)
    __irshift__ = _inplace("right_shift", operator.irshift)
    __divmod__ = _binary("divmod", divmod)
    __rdivmod__ = _reflected("divmod", divmod)
    __lt__ = _binary("less", operator.lt)
    __le__ = _binary("less_equal", operator.le)
    __gt__ = _binary("greater", operator.gt)
    __ge__ = _binary("greater_equal", operator.ge)
    __eq__ = _binary("equal", operator.eq)
    __ne__ = _binary("not_equal", operator.ne)
    __neg__ = _unary("negative", operator.neg)
    __pos__ = _unary("positive", operator.pos)
    __abs__ = _unary("absolute", abs)
    __invert__ = _unary("invert", operator.invert)


_WRAPPED.add(ndarray)
buffers.enable(ndarray)


def wrap(value: Any) -> Any:
    """Return a plain array as a wrapped one that shares its memory; anything else as it is."""
    if type(value) is _ndarray:
        below = config.current().eager_below
        if value.base is None and value.size < below and compiles(value.dtype):  # the same as `adopt`
            x = _new(ndarray)
            x._small = value
            return x
        return adopt(ndarray, value, below)
    return value


def placed_by_option(a: NDArray) -> Any:
    """Return a plain array, made from no wrapped one, as a wrapped array on the device of the option
    ``device``."""
    x, name = wrap(a), config.current().device
    return x if name == "cpu" or session().device is not None else device_backend().place(name, x)


def unwrap(value: Any) -> Any:
    """Return the memory of a wrapped array as a plain one that may be written; any other value itself."""
    if not isinstance(value, ndarray):
        return value
    a = value._writable()
    if value._small is None:
        register(value._store)
    return a


_ALL: Any = object()


def evaluate(x: Any = _ALL, /, *more: Any) -> Any:
    """Run the recorded operations that arrays still wait for.

    Parameters
    ----------
    x, *more : object, optional
        Arrays to be computed, or tuples, lists and dicts of arrays; anything else is passed on.  Without
        arguments all that this thread has recorded is run.

    Returns
    -------
    object
        The argument itself, or a tuple of the arguments; an empty tuple where there are none.

    Examples
    --------
    >>> import numpy as np, dcarray as dc
    >>> x = dc.asarray(a := np.zeros(100_000))
    >>> x += 1
    >>> dc.evaluate(x) is x, float(a[0])
    (True, 1.0)
    """
    if more:
        return tuple([evaluate(y) for y in (x, *more)])
    if isinstance(x, ndarray):
        if x._small is None:
            x._compute()
    elif isinstance(x, (tuple, list)):
        for y in x:
            evaluate(y)
    elif isinstance(x, dict):
        evaluate(list(x.values()))
    elif x is _ALL:
        flush_all()
        gather_exported()
        return ()
    return x


floor.install()
if BUILT:  # `_native/` serves most calls; without it, the methods above serve every call
    from dcarray._native.extension import install, make_evaluate_route, set_families
    from dcarray._native.extension import wrap as _wrap

    rewrapped = partial(protocols.rewrap, ndarray)
    parts: tuple[Any, ...] = Store, Recording, config.current, tuple(DTYPES.values())
    parts += AXES, vars(config), locate
    _SCALARS = (*_PLAIN, np.datetime64, np.timedelta64)  # dates make arrays that are not compiled
    if install(ndarray, _ndarray, rewrapped, _LIMIT, _SCALARS, *parts):
        evaluate = make_evaluate_route(evaluate)
        if set_families(FAMILIES.families, FAMILIES.forget, wrap):
            wrap = _wrap
