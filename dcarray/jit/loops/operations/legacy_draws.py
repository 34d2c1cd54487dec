"""Methods of `numpy.random.RandomState` in traced code, which are NumPy's functions, too.

Normal numbers are drawn in pairs; the generator keeps the second number for the next call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from dcarray.ir.nodes import Apply, Branch, Compute, Expr, Index, Load, While, Window
from dcarray.ir.ops import const

from .choices import choice
from .draws import Draws, Write
from .generator_draws import BY_LOCATION, is_dtype, need, poisson, triangular, uniform
from .values import Data, RandomGenerator, Value

__all__ = ["METHODS", "kept_or_new"]

_F8, _I4, _BOOL = np.dtype(np.float64), np.dtype(np.int32), np.dtype(np.bool_)
_UNIFORM = "random_standard_uniform"


def _double(value: float) -> Expr:
    return const(value, _F8)


def _op(name: str, *args: Expr) -> Expr:
    return Apply(name, args, _F8)


# ---- one number -----------------------------------------------------------------------------------------
def _uniform(d: Draws, g: RandomGenerator) -> Expr:
    """Draw a number between 0 and 1 and return it."""
    window = d.memory.new((), _F8, "drawn")
    d.native(g, _UNIFORM, [], window)
    return Load(window, _F8)


def kept_or_new(
    d: Draws, g: RandomGenerator, target: Window, pair: Callable[[], tuple[Expr, Expr]]
) -> None:  # fmt: skip
    """Write the number that a generator has kept; if there is none, write one of a new pair, keep the
    other."""
    first = (Index(0),)
    has_gauss, gauss = [Window(d.part(g, part).array, (), first) for part in ("has_gauss", "gauss")]

    def write(window: Window, expr: Expr) -> None:
        d.memory.emit(Compute(window, expr, loc=d.memory.loc))

    with d.memory.nested_block() as kept:
        write(target, Load(gauss, _F8))
        write(has_gauss, const(0, _I4))
        write(gauss, _double(0.0))
    with d.memory.nested_block() as new:
        one, other = pair()
        write(gauss, other)
        write(has_gauss, const(1, _I4))
        write(target, one)
    held = Apply("not_equal", (Load(has_gauss, _I4), const(0, _I4)), _BOOL)
    d.memory.emit(Branch(held, tuple(kept), tuple(new), loc=d.memory.loc))


def _pair(d: Draws, g: RandomGenerator) -> tuple[Expr, Expr]:
    """Return two numbers from the standard normal distribution."""
    memory, loc = d.memory, d.memory.loc
    going = memory.new((), _BOOL, "going")
    x, y, square, factor = [memory.new((), _F8, name) for name in ("x", "y", "square", "factor")]

    def write(window: Window, expr: Expr) -> None:
        memory.emit(Compute(window, expr, loc=loc))

    with memory.nested_block() as tried:
        for window in (x, y):
            write(window, _op("subtract", _op("multiply", _double(2.0), _uniform(d, g)), _double(1.0)))
        write(square, _op("add", *[_op("multiply", Load(w, _F8), Load(w, _F8)) for w in (x, y)]))
        outside = Apply("greater_equal", (Load(square, _F8), _double(1.0)), _BOOL)
        nothing = Apply("equal", (Load(square, _F8), _double(0.0)), _BOOL)
        write(going, Apply("logical_or", (outside, nothing), _BOOL))
    write(going, const(True, _BOOL))
    memory.emit(While(Load(going, _BOOL), tuple(tried), loc=loc))
    logarithm = _op("multiply", _double(-2.0), _op("c_log", Load(square, _F8)))
    write(factor, _op("sqrt", _op("divide", logarithm, Load(square, _F8))))
    one, other = [_op("multiply", Load(factor, _F8), Load(w, _F8)) for w in (y, x)]
    return one, other


def _gauss(d: Draws, g: RandomGenerator, target: Window, change: Callable[[Expr], Expr]) -> None:
    """Draw a standard normal number, apply ``change`` to it, and write the result."""
    normal = d.memory.new((), _F8, "normal")
    kept_or_new(d, g, normal, lambda: _pair(d, g))
    d.memory.emit(Compute(target, change(Load(normal, _F8)), loc=d.memory.loc))


def _exponential_number(d: Draws, g: RandomGenerator, target: Window, scale: Expr | None) -> None:
    """Write a number from an exponential distribution."""
    number = _op("negative", _op("c_log", _op("subtract", _double(1.0), _uniform(d, g))))
    number = number if scale is None else _op("multiply", scale, number)
    d.memory.emit(Compute(target, number, loc=d.memory.loc))


@cache
def _as_expected() -> bool:
    """Whether NumPy on this processor computes its numbers with the same roundings as the operations here."""
    one, other = (np.random.RandomState(11) for _ in range(2))
    plain = [0.1 + 0.3 * other.standard_normal() for _ in range(64)]
    return plain == [one.normal(0.1, 0.3) for _ in range(64)]


def _numbers(d: Draws, size: Value, write: Write) -> Data:
    need(d, _as_expected())
    return d.numbers(size, _F8, write, float if size is None else None)


# ---- methods --------------------------------------------------------------------------------------------
def _random(d: Draws, g: RandomGenerator, size: Value = None) -> Data:
    return d.of_function(g, _UNIFORM, [], size)


def _rand(d: Draws, g: RandomGenerator, *shape: Value) -> Data:
    return _random(d, g, shape or None)


def _standard_normal(d: Draws, g: RandomGenerator, size: Value = None) -> Data:
    return _numbers(d, size, lambda target: _gauss(d, g, target, lambda x: x))


def _randn(d: Draws, g: RandomGenerator, *shape: Value) -> Data:
    return _standard_normal(d, g, shape or None)


def _scaled(
    d: Draws, g: RandomGenerator, loc: Value, scale: Value, size: Value, last: Callable[[Expr], Expr]
) -> Data:  # fmt: skip
    """Trace numbers from a normal distribution, to each of which the operation ``last`` is applied."""
    mean, width = [d.stored(x) for x in (d.real(loc), d.at_least_0(scale))]

    def change(x: Expr) -> Expr:
        return last(_op("add", mean, _op("multiply", width, x)))

    return _numbers(d, size, lambda target: _gauss(d, g, target, change))


def _normal(d: Draws, g: RandomGenerator, loc: Value = 0.0, scale: Value = 1.0, size: Value = None) -> Data:
    return _scaled(d, g, loc, scale, size, lambda x: x)


def _lognormal(
    d: Draws, g: RandomGenerator, mean: Value = 0.0, sigma: Value = 1.0, size: Value = None
) -> Data:
    return _scaled(d, g, mean, sigma, size, partial(_op, "c_exp"))


def _standard_exponential(d: Draws, g: RandomGenerator, size: Value = None) -> Data:
    return _numbers(d, size, lambda target: _exponential_number(d, g, target, None))


def _exponential(d: Draws, g: RandomGenerator, scale: Value = 1.0, size: Value = None) -> Data:
    width = d.stored(d.at_least_0(scale))
    return _numbers(d, size, lambda target: _exponential_number(d, g, target, width))


def _randint(
    d: Draws, g: RandomGenerator, low: Value, high: Value = None, size: Value = None, dtype: Value = None
) -> Data:
    python = dtype is None or is_dtype(dtype, int)
    need(d, python or is_dtype(dtype, np.int64))
    return d.integers(g, low, high, size, int if python else None, endpoint=False)


def _choice(
    d: Draws, g: RandomGenerator, a: Value, size: Value = None, replace: Value = True, p: Value = None
) -> Value:
    need(d, replace is True)
    return choice(d, g, a, size, p)


METHODS: dict[str, Callable[..., Value]] = {
    **dict.fromkeys(("random", "random_sample", "ranf", "sample"), _random), "rand": _rand,
    "randn": _randn, "standard_normal": _standard_normal, "normal": _normal, "uniform": uniform,
    "lognormal": _lognormal, "standard_exponential": _standard_exponential, "exponential": _exponential,
    **BY_LOCATION, "poisson": poisson, "choice": _choice, "triangular": triangular, "randint": _randint,
}  # fmt: skip
"""What traces the methods, with their parameters."""
