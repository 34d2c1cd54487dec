"""NumPy's dispatch protocols: from operators and ufuncs to the recorder, or back to NumPy."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from dcarray.core.backend import NOT_DISTRIBUTED, backend, try_call
from dcarray.core.config import current
from dcarray.core.devices import common_device
from dcarray.core.errors import BAD_CALL
from dcarray.core.handle import Handle, export
from dcarray.core.processes import communicator
from dcarray.core.store import COMPILED
from dcarray.core.ufunc_loops import ALIASES, UFUNCS, short_power
from dcarray.recording import masked_ufuncs, multi_output, products, recorder, reductions, scans
from dcarray.recording.operands import SCALARS, note_fallback, plain_of, shape_of, wrap_result

from .indexing import plain_key

_PLAIN = frozenset({type(None), bool, int, float, complex, str, type, *np.sctypeDict.values()})
_NUMPYS = np.ndarray.__array_ufunc__
_PAIRS = frozenset({np.divmod, np.modf})
_SWAPPED = {"lt": "__gt__", "le": "__ge__", "gt": "__lt__", "ge": "__le__", "eq": "__eq__", "ne": "__ne__"}
_KNOWN = (Handle, np.generic, bool, int, float, complex)


def _known(x: Any) -> bool:
    return isinstance(x, _KNOWN) or type(x) is np.ndarray


def _defers(other: Any) -> bool:
    """Whether an operator defers to ``other``, by the rules of NumPy's arrays."""
    if hasattr(type(other), "__array_ufunc__"):
        return type(other).__array_ufunc__ is None
    try:
        return float(getattr(other, "__array_priority__", -1.0)) > 0.0
    except TypeError:  # of a class the attribute is its instances'
        return False


def _call_other_operator(op: Callable[[Any, Any], Any], x: Any, other: Any) -> Any:
    """Return the result of ``other``'s own operator for ``x``.  If that does not accept wrapped arrays, such
    as for sparse matrices, it gets the plain array."""
    name = op.__name__.strip("_")
    method = getattr(type(other), _SWAPPED.get(name, f"__r{name}__"), None)
    result = NotImplemented if method is None else method(other, x)
    return rewrap(type(x), op(plain_of(x), other)) if result is NotImplemented else result


def binary(name: str, op: Callable[[Any, Any], Any], x: Any, other: Any) -> Any:
    """Run or record ``x op other`` of a wrapped array ``x``."""
    if not _known(other):
        if isinstance(other, np.ndarray):
            return NotImplemented  # a subclass of ndarray may define its own
        if _defers(other):
            return _call_other_operator(op, x, other)
        if name in ("equal", "not_equal") or name not in UFUNCS:
            # NumPy compares arrays with any object
            return wrap_result(type(x), op(plain_of(x), other))
        return getattr(np, name)(x, other)
    if name == "power":
        fast = _fast_power(x, other)
        if fast is not None:
            return fast
    if _uncompiled(x) or _uncompiled(other):  # NumPy's operators support more of such dtypes than its ufuncs
        note_fallback(name, (x, other))
        return rewrap(type(x), op(plain_of(x), plain_of(other)))
    if name == "matmul":
        return np.matmul(x, other)
    if name not in UFUNCS:
        return getattr(np, name)(x, other)
    return recorder.elementwise(name, (x, other))


def reflected(name: str, op: Callable[[Any, Any], Any], other: Any, x: Any) -> Any:
    """Run or record ``other op x`` for a wrapped array ``x``, after ``other`` itself has not handled it."""
    if not _known(other):
        if isinstance(other, np.ndarray) or _defers(other):
            # operators that others define for arrays only, like `*`, the product of `np.matrix`
            return rewrap(type(x), op(other, plain_of(x)))
        return getattr(np, name)(other, x)
    if name == "matmul" or name not in UFUNCS:
        return getattr(np, name)(other, x)
    return recorder.elementwise(name, (other, x))


def inplace(name: str, op: Callable[[Any, Any], Any], x: Any, other: Any) -> Any:
    """Run or record ``x op= other``, which writes to the memory of ``x``."""
    if name == "power" and type(other) in (int, float):
        fast = _fast_power(x, other, out=x)
        if fast is not None:
            return fast
    if isinstance(other, Handle) and other._device is not x._device:
        common_device(None, x, other)
        other = other._evaluated()
    if not _known(other) and not hasattr(type(other), "__array_ufunc__") and _defers(other):
        return NotImplemented
    if name == "matmul" and (x.ndim == 0 or np.ndim(other) < 2):
        return op(plain_of(x), plain_of(other))  # NumPy's error: `x` would have to be broadcast
    if name == "matmul" or not _known(other):
        return getattr(np, name)(x, other, out=(x,))
    return recorder.elementwise(name, (x, other), out=x)


def _fast_power(x: Any, exponent: Any, out: Any = None) -> Any:
    """Return NumPy's ``**`` for some scalar exponents, for which it is exact and ``power`` is not; else
    None."""
    if type(exponent) not in (int, float) or not isinstance(x, Handle):
        return None
    name = short_power(x.dtype.kind, exponent)
    return recorder.elementwise(name, (x,), out=out) if name else None


def rewrap(cls: type[Handle], result: Any) -> Any:
    """Return plain arrays as wrapped ones, also in tuples."""
    if type(result) is tuple:
        return tuple(wrap_result(cls, r) for r in result)
    return wrap_result(cls, result)


def ufunc(
    cls: type[Handle], function: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Serve NumPy's ``__array_ufunc__``; NumPy runs what the code here does not expect."""
    if "array" in kwargs:  # NumPy passes operands that have names by position, too
        kwargs = {k: v for k, v in kwargs.items() if k not in ("array", "indices")}
    with suppress(*BAD_CALL):
        return _serve(cls, function, method, inputs, kwargs)
    return _run_in_numpy(cls, function, method, inputs, kwargs)


def _serve(
    cls: type[Handle], function: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    outs = kwargs.get("out", ())
    plain = _small(cls, (*inputs, *outs, *(v for k, v in kwargs.items() if k != "out")))
    if plain is not None:
        n, m = len(inputs), len(inputs) + len(outs)
        options = dict(zip((k for k in kwargs if k != "out"), plain[m:], strict=True))
        if outs:
            options["out"] = tuple(plain[n:m])
        return _wrapped_result(cls, getattr(function, method)(*plain[:n], **options), outs, tuple(plain[n:m]))
    for x in (*inputs, *outs):
        override = getattr(type(x), "__array_ufunc__", None)
        if override is None and x is not None and hasattr(type(x), "__array_ufunc__"):
            return NotImplemented
        if override is not None and not isinstance(x, (Handle, np.ndarray, np.generic)):
            return _call_override(function, method, inputs, kwargs)
        if override is not None and override is not _NUMPYS and isinstance(x, np.ndarray):
            # NumPy calls the method of this subclass
            return _run_in_numpy(cls, function, method, inputs, kwargs)
    name = ALIASES.get(function.__name__, function.__name__)
    known = UFUNCS.get(function.__name__) is function
    if method in ("at", "reduceat"):
        return _run_in_numpy(cls, function, method, inputs, kwargs)
    inputs = tuple(np.asarray(x) if isinstance(x, (list, tuple)) else x for x in inputs)
    if method == "__call__":
        return _call(cls, name if known else "", function, inputs, kwargs)
    if method == "reduce" and known and isinstance(inputs[0], Handle):
        return _reduce(name, *inputs, **kwargs)
    if method == "accumulate" and known and isinstance(inputs[0], Handle):
        result = _on_blocks(function, method, inputs, kwargs)
        if result is NotImplemented and communicator() is not None and len(kwargs.get("out", ())) == 1:
            result = _scan_into(kwargs["out"][0], function, inputs, kwargs)
        if result is not NotImplemented:
            return result
        result = _accumulate(name, *inputs, **kwargs)
        if result is not NotImplemented:
            return result
    if method == "outer" and known and not kwargs and all(_known(x) for x in inputs):
        a, b = (np.asarray(x) if type(x) in SCALARS else x for x in inputs)  # scalars count as arrays here
        return function(a[(..., *(None,) * b.ndim)], b)
    return _run_in_numpy(cls, function, method, inputs, kwargs)


def _small(cls: type[Handle], values: tuple[Any, ...]) -> list[Any] | None:
    """Return the plain values, if all arrays among them are small and of types known here; else None."""
    plain = []
    for value in values:
        kind = type(value)
        if kind is cls:
            value = value._small
            if value is None:
                return None
        elif kind not in _PLAIN:
            return None
        plain.append(value)
    return plain


def _wrapped_result(cls: type[Handle], result: Any, outs: tuple[Any, ...], plain: tuple[Any, ...]) -> Any:
    """Return NumPy's result, wrapped; a result in ``out`` is the array passed, found by its plain one.

    A subclass of ndarray may have its own ufuncs, with any results.
    """
    results = result if isinstance(result, tuple) else (result,)
    by_plain = {id(p): o for o, p in zip(outs, plain, strict=True) if o is not None}
    final = tuple(by_plain[id(r)] if id(r) in by_plain else wrap_result(cls, r) for r in results)
    return final if isinstance(result, tuple) else final[0]


def _call_override(function: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the ufunc in the way that operands override it; those that do not accept wrapped arrays get plain
    ones."""
    outs = kwargs.get("out", ())
    for x in (*inputs, *outs):
        override = getattr(type(x), "__array_ufunc__", None)
        if override is not None and not isinstance(x, (Handle, np.ndarray, np.generic)):
            result = override(x, function, method, *inputs, **kwargs)
            if result is not NotImplemented:
                return result
    known = {k: _exported(v) for k, v in kwargs.items() if k != "out"}
    if outs:
        known["out"] = tuple(map(_exported, outs))
    return getattr(function, method)(*map(_exported, inputs), **known)


def _exported(x: Any) -> Any:
    return export(x) if isinstance(x, Handle) else x


def _uncompiled(x: Any) -> bool:
    if isinstance(x, Handle):
        return x._small is None and not x._store.char
    return isinstance(x, (np.ndarray, np.generic)) and x.dtype.char not in COMPILED


def _call(
    cls: type[Handle], name: str, function: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    options = dict(kwargs)
    (out,) = options.pop("out", (None,)) if function.nout == 1 else (None,)
    if function is np.matmul and set(kwargs) <= {"out"}:
        a, b = inputs
        return products.matmul(a, b, out=out)
    if function in _PAIRS and not kwargs and all(_known(x) or type(x) is np.ndarray for x in inputs):
        both = multi_output.pair(function.__name__, inputs)
        if both is not NotImplemented:
            return both
    usual = set(options) <= {"dtype", "casting"}
    if name and usual and all(_known(x) or type(x) is np.ndarray for x in inputs):
        return recorder.elementwise(name, inputs, out=out, **options)
    known = name and options.keys() == {"where"} and all(map(_known, inputs))
    if known and masked_ufuncs.record_masked(name, function, inputs, options["where"], out):
        return out
    return _run_in_numpy(cls, function, "__call__", inputs, kwargs)


def _reduce(
    name: str, x: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, **rest: Any
) -> Any:
    if isinstance(out, tuple):
        (out,) = out
    initial, where = rest.get("initial", np._NoValue), rest.get("where", True)
    if out is not None or initial is not np._NoValue or where is not True:
        result = reductions.reduce(name, x, axis, dtype, out, keepdims, initial, where)
        if result is not NotImplemented:
            return result
    return recorder.reduce(name, x, axis, dtype=dtype, out=out, keepdims=keepdims, **rest)


def _accumulate(name: str, x: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    if isinstance(out, tuple):
        (out,) = out
    shape = shape_of(x)
    if type(axis) is not int or not -len(shape) <= axis < len(shape):
        return NotImplemented
    return scans.accumulate(name, x, axis % len(shape), dtype, out)


def _on_blocks(function: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the ufunc's result on distributed arrays; NotImplemented if no array is, or it has no
    distributed form."""
    if communicator() is None:
        return NotImplemented
    if method == "__call__":
        result = backend().call_numpy_source(function, inputs, kwargs)
        if result is NOT_DISTRIBUTED and "out" not in kwargs:
            result = try_call(np.ufunc.__call__, (function, *inputs), kwargs)
    else:
        result = try_call(getattr(np.ufunc, method), (function, *inputs), kwargs)
        if result is NOT_DISTRIBUTED and method == "accumulate" and _is_large(inputs[0]):
            result = backend().try_call_replicated(np.ufunc.accumulate, (function, *inputs), kwargs)
    return NotImplemented if result is NOT_DISTRIBUTED else result


def _is_large(x: Any) -> bool:
    return isinstance(x, Handle) and x._small is None and bool(x.size > current().distribute_above)


def _scan_into(out: Any, function: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return a scan of a distributed array into ``out``; NotImplemented if it has no distributed form."""
    dtype = kwargs.get("dtype") or (out.dtype if isinstance(out, Handle) else None)
    if dtype is None:
        return NotImplemented
    options = {k: v for k, v in kwargs.items() if k != "out"} | {"dtype": dtype}
    scan = _on_blocks(function, "accumulate", inputs, options)
    if scan is NotImplemented or scan.shape != out.shape or scan.dtype != out.dtype:
        return NotImplemented
    out[...] = scan
    return out


def _run_in_numpy(
    cls: type[Handle], function: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return the ufunc run by NumPy on the evaluated memory."""
    blocks = _on_blocks(function, method, inputs, kwargs)
    if blocks is not NotImplemented:
        return blocks
    label = function.__name__ if method == "__call__" else f"{function.__name__}.{method}"
    note_fallback(label, inputs)
    options = {k: plain_of(v) for k, v in kwargs.items() if k != "out"}
    outs = kwargs.get("out")
    if outs:
        options["out"] = tuple(x._writable() if isinstance(x, Handle) else x for x in outs)
    if method == "at":
        plain = [inputs[0]._writable() if isinstance(inputs[0], Handle) else inputs[0]]
        plain += [plain_key(inputs[1]), *map(plain_of, inputs[2:])]
    else:
        plain = [plain_of(x) for x in inputs]
    result = getattr(function, method)(*plain, **options)
    return _wrapped_result(cls, result, outs, options["out"]) if outs else rewrap(cls, result)
