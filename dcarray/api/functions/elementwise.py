"""Element-wise functions that are no ufuncs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dcarray.core.strides import columns_first, order_of, strides_of
from dcarray.recording import masked_assignment
from dcarray.recording.recorder import assign_where, elementwise

from .common import NOTHING, is_array, is_wrapped, maximum, minimum, new_array, new_array_like, operand, rint
from .registry import Unserved, implements, prefer_numpy

_PYTHON = (bool, int, float, complex)
_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


@implements(np.where, operation="where")
def where(condition: Any, x: Any = NOTHING, y: Any = NOTHING, /) -> Any:
    """Choose between ``x`` and ``y``; with the condition alone, its non-zero positions."""
    if x is NOTHING or y is NOTHING:
        raise Unserved
    values = [v if is_array(v) or type(v) in _PYTHON else operand(v) for v in (condition, x, y)]
    if all(v.ndim == 0 for v in values if is_array(v)):
        raise Unserved  # NumPy's answer is a 0-d array, not a scalar
    return elementwise("where", tuple(values))


def _bounds(a: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Return the bounds of a clip, without Python integers beyond the range of the array's integer dtype."""
    if a.dtype.kind in "iu":
        limits = np.iinfo(a.dtype)
        if type(low) is int and low <= limits.min:
            low = None
        if type(high) is int and high >= limits.max:
            high = None
    return low, high


def _number(bound: Any) -> bool:
    """Whether a bound is one value that is known and not NaN."""
    if is_wrapped(bound) or np.ndim(bound):
        return False
    return bool(bound == bound)


@implements(np.clip)
def clip(a: Any, a_min: Any = NOTHING, a_max: Any = NOTHING, out: Any = None, **kwargs: Any) -> Any:
    """Limit values to an interval."""
    low, high = kwargs.pop("min", NOTHING), kwargs.pop("max", NOTHING)
    if (low is not NOTHING or high is not NOTHING) and not (a_min is NOTHING and a_max is NOTHING):
        raise Unserved
    if a_min is NOTHING and a_max is NOTHING:
        low, high = (None if v is NOTHING else v for v in (low, high))
    elif a_min is NOTHING or a_max is NOTHING:
        raise Unserved
    else:
        low, high = a_min, a_max
    if kwargs or not is_wrapped(a) or not a.ndim or (out is not None and out.shape != a.shape):
        raise Unserved
    low, high = _bounds(a, low, high)
    if low is None and high is None:
        return np.positive(a, out=out)
    if low is None:
        return minimum(a, high, out=out)
    if high is None:
        return maximum(a, low, out=out)
    low, high = (v if type(v) in _PYTHON else operand(v) for v in (low, high))
    dtype = np.result_type(*(v.dtype if is_array(v) else v for v in (a, low, high)))
    if dtype.kind not in "iuf":
        raise Unserved
    if out is not None and not (is_wrapped(out) and np.can_cast(dtype, out.dtype, "same_kind")):
        raise Unserved
    prefer_numpy([v for v in (a, low, high, out) if is_wrapped(v) and v._small is None])
    a, low, high = (v.astype(dtype, copy=False) if is_array(v) else v for v in (a, low, high))
    if dtype.kind != "f":
        return minimum(maximum(a, low), high, out=out)
    # each is used twice, but NumPy warns once of a value too large for the dtype
    low, high = (dtype.type(v) if type(v) is float else v for v in (low, high))
    if _number(low) and _number(high):
        # NumPy with constant bounds: an element equal to one (a zero of the other sign) stays
        x = elementwise("where", (a < low, low, a))
        x = elementwise("where", (x > high, high, x))
    else:
        # and with arrays: an equal element becomes the bound; NaNs of both stay
        x = elementwise("where", ((a > low) | (a != a), a, low))
        x = elementwise("where", ((x < high) | (x != x), x, high))
    if out is None:
        return x
    if out.shape != x.shape:
        raise Unserved
    out[...] = x
    return out


@implements(np.angle)
def angle(z: Any, deg: bool = False) -> Any:
    """Return the argument of a complex number."""
    z = operand(z)
    complex_ = z.dtype.kind == "c"
    a = np.arctan2(z.imag, z.real) if complex_ else np.arctan2(0, z)
    if deg:
        a *= 180 / np.pi
    return a


@implements(np.sinc)
def sinc(x: Any) -> Any:
    """Return ``sin(pi x) / (pi x)``."""
    x = operand(x)
    if x.dtype.kind not in "fiub":
        raise Unserved
    x = np.pi * x
    y = elementwise("where", (x != 0, x, np.finfo(x.dtype).eps))
    return np.sin(y) / y


_NUMPY = np.lib.NumpyVersion(np.__version__)
_FIX_WARNS = _NUMPY >= "2.5.0.dev0"
_ROUND_COPIES = _NUMPY >= "2.4.0.dev0"  # rounded integers were the array itself


@implements(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    """Round towards zero; NumPy 2.5 warns of it."""
    if operand(x).dtype.kind != "f" or _FIX_WARNS:
        raise Unserved
    return np.trunc(x, out=out)


def _is_infinite(negative: bool) -> Callable[..., Any]:
    """Return an implementation of `numpy.isposinf` or `numpy.isneginf`."""

    def test(x: Any, out: Any = None) -> Any:
        if operand(x).dtype.kind not in "fiu":
            raise Unserved
        return np.logical_and(np.isinf(x), np.signbit(x) if negative else ~np.signbit(x), out)

    return test


implements(np.isposinf)(_is_infinite(False))
implements(np.isneginf)(_is_infinite(True))


def _round(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    """Round to the given number of decimals."""
    if not is_wrapped(a) or type(decimals) is not int or not (out is None or is_wrapped(out)):
        raise Unserved
    kind = a.dtype.kind
    if kind == "f" and decimals == 0:
        return rint(a, out=out)
    if kind in "iu" and 0 <= decimals < 2**31 and out is None:
        return a.astype(a.dtype) if _ROUND_COPIES else a
    if kind != "f" or out is not None or not -300 < decimals < 300:
        raise Unserved
    scale = 10.0 ** abs(decimals)
    if order_of((a,), a.shape) is not None and not columns_first(a):
        out = new_array(a.shape, a.dtype)  # NumPy's is in C order, too
    if decimals > 0:
        return np.divide(rint(np.multiply(a, scale)), scale, out=out)
    return np.multiply(rint(np.divide(a, scale)), scale, out=out)


for _function in (np.round, np.around):
    implements(_function)(_round)


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Return the mask of elements that agree within a tolerance."""
    x, y = (v if type(v) in _PYTHON else operand(v) for v in (a, b))
    if not all(type(t) in _PYTHON and np.isfinite(t) for t in (rtol, atol)):
        raise Unserved
    if any(is_array(v) and v.dtype.kind not in "biufc" for v in (x, y)):
        raise Unserved
    if is_array(y):
        y = y.astype(np.result_type(y.dtype, 1.0), copy=False)
    elif isinstance(y, int):
        y = float(y)
    with np.errstate(invalid="ignore"):
        result = np.less_equal(abs(x - y), atol + rtol * abs(y)) & np.isfinite(y) | (x == y)
        if equal_nan:
            result |= np.isnan(x) & np.isnan(y)
    return result


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool:
    """Whether two arrays agree within a tolerance in all elements."""
    return bool(np.all(isclose(a, b, rtol, atol, equal_nan)))


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether two arrays have the same shape and elements."""
    a1, a2 = operand(a1), operand(a2)
    if a1.shape != a2.shape:
        return False
    if equal_nan and a1.dtype.kind in "fc" and a2.dtype.kind in "fc":
        return bool(np.all((a1 == a2) | (np.isnan(a1) & np.isnan(a2))))
    if a1.dtype.kind not in "biufc" or a2.dtype.kind not in "biufc":
        raise Unserved
    return bool(np.all(np.equal(a1, a2)))


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether two arrays are equal after broadcasting."""
    a1, a2 = operand(a1), operand(a2)
    try:
        np.broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return False
    return bool(np.all(np.equal(a1, a2)))


@implements(np.iscomplex)
def iscomplex(x: Any) -> Any:
    """Return the mask of elements with an imaginary part."""
    if x.dtype.kind != "c":
        raise Unserved
    return np.not_equal(x.imag, 0)


@implements(np.isreal)
def isreal(x: Any) -> Any:
    """Return the mask of elements without an imaginary part."""
    if x.dtype.kind != "c":
        raise Unserved
    return np.equal(x.imag, 0)


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """Return a polynomial's values, by Horner's rule."""
    if isinstance(x, np.poly1d) or isinstance(p, np.poly1d):
        raise Unserved
    x, coefficients = operand(x), np.asarray(p)
    if coefficients.ndim != 1 or coefficients.size > 64 or coefficients.dtype.kind not in "biufc":
        raise Unserved
    y = np.zeros_like(x)
    for c in coefficients:
        y = y * x + c
    return y


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Replace NaN and infinities by numbers."""
    limits = (nan, posinf, neginf)
    if not is_wrapped(x) or x.dtype.kind not in "biuf" or x.ndim == 0 or not x.dtype.isnative:
        raise Unserved
    if nan is None or any(v is not None and type(v) not in (int, float) for v in limits):
        raise Unserved
    if x.dtype.kind != "f":
        return x.copy() if copy else x
    if copy and 0 in strides_of(x):
        x = x.astype(x.dtype)  # in the memory order of NumPy's copy
    info = np.finfo(x.dtype)
    posinf = info.max if posinf is None else posinf
    neginf = info.min if neginf is None else neginf
    with np.errstate(over="ignore"):
        none, high, low = (x.dtype.type(v) for v in (nan, posinf, neginf))
    y = elementwise("where", (np.isnan(x), none, x))
    y = elementwise("where", (x == np.inf, high, y))
    y = elementwise("where", (x == -np.inf, low, y))
    if copy:
        return y
    x[...] = y
    return x


@implements(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Return the choice of the first condition that holds, element by element."""
    if len(condlist) != len(choicelist) or not len(condlist):
        raise Unserved
    conditions = [operand(c) for c in condlist]
    choices: list[Any] = [
        c if type(c) in (int, float, complex) else operand(c) for c in (*choicelist, default)
    ]
    if any(c.dtype != np.bool_ for c in conditions):
        raise Unserved
    dtype = np.result_type(*(c.dtype if is_array(c) else c for c in choices))
    shape = np.broadcast_shapes(*(c.shape for c in conditions), *(c.shape for c in choices if is_array(c)))
    if dtype.kind not in "biufc" or not shape:
        raise Unserved
    if not all(is_array(c) or np.can_cast(np.result_type(c), dtype, "same_kind") for c in choices[:-1]):
        raise Unserved
    result = new_array(shape, dtype)
    result[...] = choices[-1]
    for condition, choice in zip(conditions[::-1], choices[-2::-1], strict=True):
        choice = choice.astype(dtype, copy=False) if is_array(choice) else choice
        result = elementwise("where", (condition, choice, result))
    return result


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Copy values into an array, where a mask allows."""
    if not is_wrapped(dst):
        raise Unserved
    source = src if type(src) in _PYTHON else operand(src)
    if type(source) is complex and dst.dtype.kind != "c":
        source = np.asarray(source)
    if is_array(source):
        if casting not in _CASTINGS or not np.can_cast(source.dtype, dst.dtype, casting):
            raise Unserved
    else:
        one = np.empty((), dst.dtype)
        np.copyto(one, source, casting=casting)  # NumPy raises the error
        source = one[()]
    if where is True:
        dst[...] = source
    elif not _copied_where(dst, source, where):
        raise Unserved


def _copied_where(dst: Any, source: Any, mask: Any) -> bool:
    """Record ``np.copyto(dst, source, where=mask)``; False if it cannot be recorded."""
    if dst._small is not None or not is_array(mask) or mask.dtype != np.bool_:
        return False
    if not np.can_cast(source.dtype, dst.dtype, "safe"):
        return False  # elements that are not selected might raise floating-point exceptions in a cast
    try:
        fits = np.broadcast_shapes(dst.shape, source.shape, mask.shape) == dst.shape
    except ValueError:
        fits = False
    return fits and assign_where(dst, mask, source)


@implements(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    """Set elements that a mask selects to a value."""
    single = type(values) in _PYTHON or isinstance(values, np.generic)
    if not is_wrapped(a) or a._small is not None or not single:
        raise Unserved
    if not is_array(mask) or mask.shape != a.shape or not masked_assignment.assign(a, mask, values):
        raise Unserved


@implements("astype")
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """Convert to another dtype."""
    if not is_wrapped(x) or device not in (None, "cpu"):
        raise Unserved
    return x.astype(dtype, copy=copy)


@implements(np.copy)
def copy(a: Any, order: Any = "K", subok: bool = False) -> Any:
    """Return a copy in fresh memory."""
    if not is_wrapped(a) or a.ndim == 0 or order not in ("C", "F", "A", "K"):
        raise Unserved
    result = new_array_like(a, order=order)
    result[...] = a
    return result
