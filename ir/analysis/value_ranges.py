"""Interval analysis of magnitudes: from which inputs a region raises no floating-point exception.

For each real value the analysis knows an upper and a lower bound of its magnitude, and perhaps that it is not
negative; for a complex one an upper bound of both parts.  Loops are interpreted iteration by iteration, so
that a value that grows in each has a bound after the last one.  Operations that raise an exception for small
values, like a division, need a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dcarray.ir import dims
from dcarray.ir.nodes import (
    Apply,
    Array,
    Call,
    Compute,
    Const,
    Expr,
    Iota,
    Load,
    Loop,
    Nest,
    Region,
    Size,
    Stmt,
    Symbol,
    Window,
)
from dcarray.ir.ops import const
from dcarray.ir.windows import covers, identity, walk

# Bounds of the inputs, in the order in which they are tried.
_BOUNDS = tuple([2.0**k for k in (512, 256, 128, 64, 32)])
_NODES = 100_000  # the most that are evaluated for one bound; longer loops are given up
# More than an operation's rounding adds, to normal numbers and others.
_SLACK, _TINY = 1 + 2.0**-22, 2.0**-125
_MARGIN = 4.0  # between a bound and the largest number of a dtype, or the smallest normal one
_LARGER = frozenset({"maximum", "minimum", "fmax", "fmin"})
_SAME = frozenset({"negative", "positive", "absolute", "fabs", "copy"})
_PARTS = frozenset({"negative", "positive", "copy", "conjugate", "real", "imag"})  # of its operand's parts
_TRUTHS = frozenset({"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}) | frozenset(
    {"logical_and", "logical_or", "logical_xor", "logical_not"}
)
# Comparisons that bound the first operand by the second from below if they hold, and if they do not.
_ABOVE = {"greater": True, "greater_equal": True, "less": False, "less_equal": False}


class _Unknown(Exception):
    """Raised when no bound of a value can be derived."""


class Limits(NamedTuple):
    """Limits of a region's inputs within which no operation raises an exception other than underflow."""

    most: float  # the largest magnitude
    least: float = 0.0  # if not 0: what is no array is positive, and no less than this


class _Bound(NamedTuple):
    """The upper bound ``most`` and lower bound ``least`` of a magnitude; ``sure``: the value is not
    negative."""

    most: float
    least: float = 0.0
    sure: bool = False

    def join(self, other: _Bound) -> _Bound:
        """Return bounds that hold for the values of both."""
        most, least = max(self.most, other.most), min(self.least, other.least)
        return _Bound(most, least, self.sure and other.sure)


def safe_limits(region: Region) -> Limits | None:
    """Return limits of the inputs within which only underflow is raised; None if none are known."""
    numbers = any(array.role == "in" and is_scalar(array) for array in region.arrays)
    if _passes(region.body) > _NODES:
        return None
    run = _Bounds(region)
    for least in (False, True) if numbers else (False,):
        for most in _BOUNDS:
            limits = Limits(most, 1 / most if least else 0.0)
            try:
                run.begin(limits)
                run.all(region.body)
            except (_Unknown, OverflowError):
                continue
            return limits
    return None


def _passes(body: Iterable[Stmt]) -> float:
    """Return the number of expression nodes that the statements evaluate, over all iterations of loops."""
    passes = 0.0
    for stmt in body:
        match stmt:
            case Compute():
                passes += len(walk(stmt.body))
            case Nest(inner):
                passes += _passes(inner)
            case Loop(_, (start, stop, step), inner) if type(start) is type(stop) is type(step) is int:
                passes += len(range(start, stop, step)) * _passes(inner)
    return passes


def worth_checking(region: Region, copies: Iterable[Window], least: int, hints: Mapping[str, int]) -> bool:
    """Return whether checking all inputs is cheaper than undo copies of what is under ``copies``, and these
    have at least ``least`` bytes in all; ``hints`` has the values of symbols."""
    given = [(array.shape, array.dtype) for array in region.arrays if array.role in ("in", "inout")]
    dtypes = {array.name: array.dtype for array in region.arrays}
    copied = [(window.shape, dtypes[window.array]) for window in copies]
    if any(not dims.free_symbols(extent) <= hints.keys() for shape, _ in given + copied for extent in shape):
        return False
    size, saved = (
        sum(math.prod(dims.evaluate(n, hints) for n in shape) * dtype.itemsize for shape, dtype in parts)
        for parts in (given, copied)
    )
    return saved >= least and size <= 3 * saved


def checked_inputs(region: Region) -> tuple[str, ...]:
    """Return the names of the inputs to which `Limits` apply: the floating-point and complex ones."""
    return tuple([a.name for a in region.arrays if a.role in ("in", "inout") and a.dtype.kind in "fc"])


def is_scalar(array: Array) -> bool:
    """Return whether an input is a floating-point number without axes, whose sign is checked, too."""
    return not array.shape and array.dtype.kind == "f"


def magnitude_region(arrays: Iterable[Array], symbols: tuple[Symbol, ...] = ()) -> Region:
    """Return a region that computes, for each array, the largest magnitude of its elements (of complex ones,
    of their parts), and for a scalar the number itself."""
    given = [replace(_parts(a), name=f"x{k}", role="in", base=None) for k, a in enumerate(arrays)]
    double = np.dtype(np.float64)
    results = [Array(f"most{k}", double, (), "out") for k in range(len(given))]
    return Region(symbols, (*given, *results), tuple(_largest_of(given)))


def _parts(array: Array) -> Array:
    """Return an array of the real and imaginary parts in a complex array's memory; a real array as it is."""
    if array.dtype.kind != "c":
        return array
    size = array.dtype.itemsize // 2
    strides = None if array.strides is None else (*[dims.simplify(2 * step) for step in array.strides], 1)
    return replace(array, dtype=np.dtype(f"f{size}"), shape=(*array.shape, 2), strides=strides)


def _largest_of(arrays: Iterable[Array]) -> Iterator[Compute]:
    double = np.dtype(np.float64)
    for k, array in enumerate(arrays):
        value: Expr = Load(identity(array), array.dtype)
        target = Window(f"most{k}", array.shape, ())
        if array.shape:
            value = Apply("absolute", (value,), array.dtype)
        if array.dtype != double:
            value = Apply("cast", (value,), double)
        if array.shape:
            yield Compute(target, value, "maximum", const(0.0, double))
        else:
            yield Compute(target, value)


class _Bounds:
    """The interpreter of the analysis: it runs statements on the bounds of arrays instead of their values."""

    def __init__(self, region: Region) -> None:
        self.arrays = {array.name: array for array in region.arrays}
        self.left = _NODES
        self.bounds: dict[str, _Bound] = {}
        self._whole: dict[Window, bool] = {}

    def begin(self, limits: Limits) -> None:
        """Forget all bounds, and give each input those that follow from ``limits``."""
        if self.left < 0 or any(array.base is not None for array in self.arrays.values()):
            raise _Unknown
        self.bounds.clear()
        for array in self.arrays.values():
            if array.role in ("in", "inout"):
                if array.dtype.kind not in "fc":
                    bound = _any(array.dtype)
                elif not is_scalar(array) or not limits.least or array.role == "inout":
                    bound = _Bound(limits.most)
                else:
                    bound = _Bound(limits.most, limits.least, True)
                self.bounds[array.name] = _fits(bound, array.dtype)

    def all(self, body: Iterable[Stmt]) -> None:
        """Interpret statements in order."""
        for stmt in body:
            match stmt:
                case Compute():
                    self._compute(stmt)
                case Nest(inner):
                    self.all(inner)
                case Loop(_, (start, stop, step), inner) if type(start) is type(stop) is type(step) is int:
                    for _ in range(start, stop, step):
                        self.all(inner)
                case Call("blas.matmul", (a, b), (target,)):
                    self._matmul(a, b, target)
                case _:
                    raise _Unknown

    def _compute(self, stmt: Compute) -> None:
        target = stmt.target
        dtype = self.arrays[target.array].dtype
        value = self._of(stmt.body)
        if stmt.combine is not None:
            start = self._of(stmt.init) if stmt.init is not None else self._bound_of(target)
            if stmt.combine in _LARGER:
                value = value.join(start)
            elif stmt.combine == "add" and dtype.kind in "fc":
                if any(type(extent) is not int for extent in target.shape):
                    raise _Unknown
                points = math.prod(target.shape)
                most = (value.most * points + start.most) * _SLACK**points
                value = _fits(_Bound(most, 0.0, value.sure and start.sure), dtype)
            else:
                raise _Unknown
        if dtype.kind in "fc":
            value = _fits(value, dtype)
        self._keep(target, value)

    def _matmul(self, a: Window, b: Window, target: Window) -> None:
        dtype, depth = self.arrays[target.array].dtype, a.shape[-1] if a.shape else 1
        if type(depth) is not int or any(self.arrays[w.array].dtype.kind != "f" for w in (a, b, target)):
            raise _Unknown
        most = self._bound_of(a).most * self._bound_of(b).most * depth * _SLACK ** (2 * depth) + depth * _TINY
        self._keep(target, _fits(_Bound(most), dtype))

    def _keep(self, target: Window, value: _Bound) -> None:
        whole = self._whole.get(target)
        if whole is None:
            whole = covers(target, identity(self.arrays[target.array])) is True
            self._whole[target] = whole
        self.bounds[target.array] = value if whole else value.join(self._bound_of(target))

    def _bound_of(self, window: Window) -> _Bound:
        bound = self.bounds.get(window.array)
        if bound is None:  # some of it may never have been written
            raise _Unknown
        return bound

    def _of(self, expr: Expr) -> _Bound:
        """Return the bounds of an expression."""
        self.left -= 1
        if self.left < 0:
            raise _Unknown
        match expr:
            case Load(window):
                return self._bound_of(window) if expr.dtype.kind in "fc" else _any(expr.dtype)
            case Const(bits, dtype) if dtype.kind in "fiub":
                value = float(np.frombuffer(bits, dtype)[0])
                return _fits(_Bound(abs(value), abs(value), value >= 0), dtype)
            case Const(bits, dtype) if dtype.kind == "c":
                number = complex(np.frombuffer(bits, dtype)[0])
                return _fits(_Bound(max(abs(number.real), abs(number.imag))), dtype)
            case Size() | Iota():
                return _any(expr.dtype)
            case Apply(op, args, dtype):
                if dtype.kind in "iu" and any(arg.dtype.kind in "fc" for arg in args):
                    raise _Unknown
                if any(arg.dtype.kind == "c" for arg in (expr, *args)) and op not in _TRUTHS:
                    return _fits(self._complex(op, args, dtype), dtype)
                return _fits(self._operation_bound(op, args), dtype)
        raise _Unknown

    def _complex(self, op: str, args: tuple[Expr, ...], dtype: np.dtype[Any]) -> _Bound:
        """Return the bounds of an operation with complex operands or result; of a complex value, of its
        parts."""
        kinds = [arg.dtype.kind for arg in args]
        parts = [self._of(arg).most for arg in args]
        if op == "where" and kinds[1:] == ["c", "c"]:
            return _Bound(max(parts[1:]))
        if op == "cast" and dtype.kind == "c":
            return _Bound(parts[0] * _SLACK)
        if set(kinds) != {"c"}:
            raise _Unknown
        if op in ("add", "subtract"):
            return _Bound(sum(parts) * _SLACK + _TINY)
        if op in ("multiply", "square"):
            return _Bound(2.0 * parts[0] * parts[-1] * _SLACK + _TINY)
        if op == "absolute":
            return _Bound(2.0 * parts[0], 0.0, True)
        if op in _PARTS:
            return _Bound(parts[0])
        raise _Unknown

    def _operation_bound(self, op: str, args: tuple[Expr, ...]) -> _Bound:
        kinds = {arg.dtype.kind for arg in args}
        if kinds != {"f"} and op not in ("cast", "where", *_TRUTHS):
            raise _Unknown
        values = [self._of(arg) for arg in args]
        a, b = values[0], values[-1]
        sure = all(value.sure for value in values)
        if op in _TRUTHS:
            return _Bound(1.0, 0.0, True)
        if op in ("add", "subtract"):
            sure = sure and op == "add"
            return _Bound((a.most + b.most) * _SLACK + _TINY, max(a.least, b.least) if sure else 0.0, sure)
        if op in ("multiply", "square"):
            sure = sure or args[0] is args[-1]
            return _Bound(a.most * b.most * _SLACK + _TINY, a.least * b.least / _SLACK, sure)
        if op == "divide" and b.least:
            return _Bound(
                a.most / b.least * _SLACK + _TINY, a.least / b.most / _SLACK if b.most else 0.0, sure
            )
        if op == "sqrt" and sure:
            return _Bound(math.sqrt(a.most) * _SLACK + _TINY, math.sqrt(a.least) / _SLACK, True)
        if op in ("maximum", "fmax") and (a.sure or b.sure):
            return _Bound(max(a.most, b.most), max(v.least if v.sure else 0.0 for v in values), True)
        if op in _LARGER:
            return a.join(b)
        if op in _SAME:
            return a._replace(sure=op in ("absolute", "fabs") or (a.sure and op != "negative"))
        if op == "where":
            return self._choice_bound(args, *values[1:])
        if op == "cast" and args[0].dtype.kind in "fiub":
            return _Bound(a.most * _SLACK, a.least / _SLACK if args[0].dtype.kind == "f" else 0.0, a.sure)
        raise _Unknown

    def _choice_bound(self, args: tuple[Expr, ...], yes: _Bound, no: _Bound) -> _Bound:
        """Return the bounds of ``where(*args)``, given those of both values; a comparison as its condition
        may give one of the values a lower bound."""
        condition = args[0]
        if isinstance(condition, Apply) and condition.op in _ABOVE:
            above = _ABOVE[condition.op]
            for (one, other), holds in ((condition.args, above), (condition.args[::-1], not above)):
                if one.dtype == other.dtype and one.dtype.kind == "f" and args[1 if holds else 2] is one:
                    least = self._of(other)
                    if least.sure and holds:
                        yes = _Bound(yes.most, max(yes.least, least.least), True)
                    elif least.sure:
                        no = _Bound(no.most, max(no.least, least.least), True)
        return yes.join(no)


def _any(dtype: np.dtype[Any]) -> _Bound:
    """Return the bounds of all integers of a dtype."""
    return _Bound(_largest(dtype), 0.0, dtype.kind in "ub")


def _largest(dtype: np.dtype[Any]) -> float:
    if dtype.kind not in "iub":
        raise _Unknown
    return 1.0 if dtype.kind == "b" else float(2 ** (8 * dtype.itemsize))


def _fits(bound: _Bound, dtype: np.dtype[Any]) -> _Bound:
    """Return the bounds if all values within them are representable in the dtype, without the lower bound if
    a value may be subnormal; otherwise raise `_Unknown`."""
    if dtype.kind == "b" or (dtype.kind in "iu" and bound.most <= _largest(dtype)):
        return bound
    if dtype.char not in "fdFD":
        raise _Unknown
    info = np.finfo(dtype)
    if not bound.most * _MARGIN <= float(info.max):
        raise _Unknown
    return bound if bound.least >= _MARGIN * float(info.tiny) else bound._replace(least=0.0)
