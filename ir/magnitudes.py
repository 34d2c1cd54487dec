"""How large the values of a region can get, and so from which inputs it raises no floating-point exception.

A value is bounded by its magnitude.  Turns of a loop are gone through one after the other, so that what
grows in each of them has a bound after all of them; what may raise an exception for small values, too, like
a division, has none.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from .nodes import Apply, Call, Compute, Const, Expr, Iota, Load, Loop, Nest, Region, Size, Stmt, Window
from .windows import covers, identity

_BOUNDS = tuple([2.0**k for k in (512, 256, 128, 64, 32)])  # of the inputs, tried one after the other
WORTH = 1 << 18  # bytes of copies from which on it is worth to look at the inputs first
_NODES = 100_000  # of expressions that are looked at; loops of more are given up
_SLACK, _TINY = (
    1 + 2.0**-22,
    2.0**-125,
)  # more than an operation's rounding adds, to normal numbers and others
_ROOM = 4.0  # between a bound and the largest number of a dtype
_LARGER = frozenset({"maximum", "minimum", "fmax", "fmin"})
_SAME = frozenset({"negative", "positive", "absolute", "fabs", "copy"})
_TRUTHS = frozenset({"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}) | frozenset(
    {"logical_and", "logical_or", "logical_xor", "logical_not"}
)


class _Unknown(Exception):
    """There is no bound."""


def harmless(region: Region) -> float:
    """The magnitude of inputs from which nothing raises exceptions but underflow; 0.0 if none is known."""
    for bound in _BOUNDS:
        try:
            _Run(region, bound).all(region.body)
        except (_Unknown, OverflowError):
            continue
        return bound
    return 0.0


def worth(region: Region, names: Collection[str]) -> bool:
    """Is to look at the inputs less than to keep copies of some arrays?"""
    given = [array for array in region.arrays if array.role in ("in", "inout")]
    if any(type(extent) is not int for array in given for extent in array.shape):
        return False
    sizes = {array.name: math.prod(array.shape) * array.dtype.itemsize for array in given}
    saved = sum(sizes[name] for name in names)
    return saved >= WORTH and sum(sizes.values()) <= 2 * saved


class _Run:
    """The bounds of arrays while statements run."""

    def __init__(self, region: Region, bound: float) -> None:
        self.arrays = {array.name: array for array in region.arrays}
        self.left = _NODES
        if any(array.base is not None for array in region.arrays):
            raise _Unknown
        self.bounds: dict[str, float] = {}
        for array in region.arrays:
            if array.role in ("in", "inout"):
                self.bounds[array.name] = bound if array.dtype.kind == "f" else _largest(array.dtype)
        for name, known in self.bounds.items():
            if self.arrays[name].dtype.kind == "f":
                _fits(known, self.arrays[name].dtype)

    def all(self, body: Iterable[Stmt]) -> None:
        """Statements, one after the other."""
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
            start = self._of(stmt.init) if stmt.init is not None else self._held(target)
            if stmt.combine in _LARGER:
                value = max(value, start)
            elif stmt.combine == "add" and dtype.kind == "f":
                if any(type(extent) is not int for extent in target.shape):
                    raise _Unknown
                points = math.prod(target.shape)
                value = _fits((value * points + start) * _SLACK**points, dtype)
            else:
                raise _Unknown
        if dtype.kind == "f":
            _fits(value, dtype)
        whole = covers(target, identity(self.arrays[target.array])) is True
        self.bounds[target.array] = value if whole else max(value, self._held(target))

    def _matmul(self, a: Window, b: Window, target: Window) -> None:
        dtype, depth = self.arrays[target.array].dtype, a.shape[-1] if a.shape else 1
        if type(depth) is not int or any(self.arrays[w.array].dtype.kind != "f" for w in (a, b, target)):
            raise _Unknown
        value = self._held(a) * self._held(b) * depth * _SLACK ** (2 * depth) + depth * _TINY
        whole = covers(target, identity(self.arrays[target.array])) is True
        self.bounds[target.array] = _fits(value if whole else max(value, self._held(target)), dtype)

    def _held(self, window: Window) -> float:
        found = self.bounds.get(window.array)
        if found is None:  # some of it may never have been written
            raise _Unknown
        return found

    def _of(self, expr: Expr) -> float:
        """The bound of a value."""
        self.left -= 1
        if self.left < 0:
            raise _Unknown
        match expr:
            case Load(window):
                return self._held(window) if expr.dtype.kind == "f" else _largest(expr.dtype)
            case Const(bits, dtype) if dtype.kind in "fiub":
                return _fits(abs(float(np.frombuffer(bits, dtype)[0])), dtype)
            case Size() | Iota():
                return _largest(expr.dtype)
            case Apply(op, args, dtype):
                if dtype.kind in "iu" and any(arg.dtype.kind == "f" for arg in args):
                    raise _Unknown
                return _fits(self._applied(op, args), dtype)
        raise _Unknown

    def _applied(self, op: str, args: tuple[Expr, ...]) -> float:
        kinds = {arg.dtype.kind for arg in args}
        if not kinds <= set("fiub") or (kinds != {"f"} and op not in ("cast", "where", *_TRUTHS)):
            raise _Unknown
        values = [self._of(arg) for arg in args]
        if op in ("add", "subtract"):
            return (values[0] + values[1]) * _SLACK + _TINY
        if op == "multiply":
            return values[0] * values[1] * _SLACK + _TINY
        if op == "square":
            return values[0] * values[0] * _SLACK + _TINY
        if op == "divide" and isinstance(args[1], Const) and values[1]:
            return values[0] / values[1] * _SLACK + _TINY
        if op in _TRUTHS:
            return 1.0
        if op in _LARGER or op in _SAME or op == "where":
            return max(values)
        if op == "cast" and args[0].dtype.kind in "fiub":
            return values[0] * _SLACK
        raise _Unknown


def _largest(dtype: np.dtype[Any]) -> float:
    if dtype.kind not in "iub":
        raise _Unknown
    return 1.0 if dtype.kind == "b" else float(2 ** (8 * dtype.itemsize))


def _fits(bound: float, dtype: np.dtype[Any]) -> float:
    """The bound, if every value within it is one of the dtype."""
    if dtype.kind == "b" or (dtype.kind in "iu" and bound <= _largest(dtype)):
        return bound
    if dtype.kind != "f" or dtype.itemsize not in (4, 8) or not bound * _ROOM <= float(np.finfo(dtype).max):
        raise _Unknown
    return bound
