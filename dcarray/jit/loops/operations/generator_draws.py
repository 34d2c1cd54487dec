"""Methods of `numpy.random.Generator` in traced code, with their parameters."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature

import numpy as np

from dcarray.ir.nodes import Apply, Load
from dcarray.ir.ops import const

from .choices import choice
from .draws import LARGEST_COUNT, Draws
from .values import Data, RandomGenerator, Value, is_int

__all__ = ["BY_LOCATION", "METHODS", "is_dtype", "need", "poisson", "triangular", "uniform"]

_EITHER = Parameter.POSITIONAL_OR_KEYWORD
_F8, _BOOL = np.dtype(np.float64), np.dtype(np.bool_)
_LEAST_GEOMETRIC = 1e-9  # the chance of numbers that are surely below `draws.LARGEST_COUNT`
_MOST_POISSON = float(1 << 40)  # the mean of numbers that are surely below `draws.LARGEST_COUNT`


def need(d: Draws, holds: bool) -> None:
    """Refuse a call, by raising `Untraceable`, unless ``holds``."""
    if not holds:
        raise d.scope.fail("an argument of random numbers that is not understood")


def is_dtype(value: Value, *kinds: type) -> bool:
    """Whether the argument ``dtype`` of a call is one of some kinds; None stands for no argument."""
    names = {f"{kind.__module__}.{kind.__name__}" for kind in kinds}
    if isinstance(value, np.dtype):  # which is equal to Python's types, too
        return any(issubclass(kind, np.generic) and value == kind for kind in kinds)
    return getattr(value, "name", None) in names or value in kinds


def distribution(name: str, typed: bool = False, /, **parameters: str) -> Callable[..., Value]:
    """Return a function that traces a distribution by a function of `DRAWS`: of each parameter the method of
    `Draws` that checks it is given, and the default value, if any; a ``typed`` one has a dtype, too."""
    limits = {key: text.split() for key, text in parameters.items()}
    defaults = {key: float(rest[0]) if rest else Parameter.empty for key, (_, *rest) in limits.items()}
    last = dict.fromkeys(("size", "dtype", "out") if typed else ("size",))
    every = {"d": Parameter.empty, "g": Parameter.empty, **defaults, **last}
    how = Signature([Parameter(key, _EITHER, default=value) for key, value in every.items()])

    def traced(*args: Value, **named: Value) -> Value:
        bound = how.bind(*args, **named)
        bound.apply_defaults()
        given = bound.arguments
        d, dtype = given["d"], given.get("dtype")
        need(d, given.get("out") is None and (dtype is None or is_dtype(dtype, float, np.float64)))
        checked = [getattr(d, limit)(given[key]) for key, (limit, *_) in limits.items()]
        return d.of_function(given["g"], f"random_{name}", checked, given["size"])

    traced.__signature__ = how  # type: ignore[attr-defined]
    return traced


def _standard_exponential(
    d: Draws, g: RandomGenerator, size: Value = None, dtype: Value = None, method: Value = "zig",
    out: Value = None,
) -> Data:  # fmt: skip
    plain = out is None and method == "zig"
    need(d, plain and (dtype is None or is_dtype(dtype, float, np.float64)))
    return d.of_function(g, "random_standard_exponential", [], size)


def uniform(d: Draws, g: RandomGenerator, low: Value = 0.0, high: Value = 1.0, size: Value = None) -> Data:
    """Trace ``uniform`` of a `Generator` or a `RandomState`."""
    first = d.stored(d.real(low))
    length = d.range_of(first, d.real(high), g.kind.owner == "RandomState")
    return d.of_function(g, "random_uniform", [first, length], size)


def _integers(
    d: Draws, g: RandomGenerator, low: Value, high: Value = None, size: Value = None, dtype: Value = None,
    endpoint: Value = False,
) -> Data:  # fmt: skip
    python = is_dtype(dtype, int)
    need(d, type(endpoint) is bool and (dtype is None or python or is_dtype(dtype, np.int64)))
    return d.integers(g, low, high, size, int if python else None, endpoint)


def triangular(
    d: Draws, g: RandomGenerator, left: Value, mode: Value, right: Value, size: Value = None
) -> Data:
    """Trace ``triangular`` of a `Generator` or a `RandomState`."""
    low, top, high = [d.stored(d.real(x)) for x in (left, mode, right)]
    pairs = [("less_equal", low, top), ("less_equal", top, high), ("less", low, high)]
    holds = [Apply(name, (a, b), _BOOL) for name, a, b in pairs]
    return d.of_function(g, "random_triangular", [d.checked(low, 0.0, *holds), top, high], size)


def _geometric(d: Draws, g: RandomGenerator, p: Value, size: Value = None) -> Data:
    return d.of_function(g, "random_geometric", [d.chance(p, _LEAST_GEOMETRIC)], size)


def _binomial(d: Draws, g: RandomGenerator, n: Value, p: Value, size: Value = None) -> Data:
    need(d, is_int(n) or (isinstance(n, Data) and n.scalar and n.dtype.kind in "iu"))
    least, most = d.math.limits(n)
    need(d, least >= 0 and most <= LARGEST_COUNT)
    memory = Load(d.part(g, "binomial"), np.dtype(np.uint64))
    count = d.math.expr(n, np.dtype(np.int64))
    return d.of_function(g, "random_binomial", [d.chance(p, 0.0), count, memory], size)


def _choice(
    d: Draws, g: RandomGenerator, a: Value, size: Value = None, replace: Value = True, p: Value = None,
    axis: Value = 0, shuffle: Value = True,
) -> Value:  # fmt: skip
    need(d, replace is True and axis == 0)
    return choice(d, g, a, size, p)


def poisson(d: Draws, g: RandomGenerator, lam: Value = 1.0, size: Value = None) -> Data:
    """Trace ``poisson`` of a `Generator` or a `RandomState`."""
    rate = d.stored(d.at_least_0(lam))
    fits = Apply("less_equal", (rate, const(_MOST_POISSON, _F8)), _BOOL)
    return d.of_function(g, "random_poisson", [d.checked(rate, 1.0, fits)], size)


_LOCATION = {"loc": "real 0", "scale": "at_least_0 1"}
BY_LOCATION = {name: distribution(name, **_LOCATION) for name in ("laplace", "logistic", "gumbel")}
METHODS: dict[str, Callable[..., Value]] = {
    "random": distribution("standard_uniform", True), "integers": _integers, "uniform": uniform,
    "standard_normal": distribution("standard_normal", True),
    "normal": distribution("normal", **_LOCATION), **BY_LOCATION,
    "lognormal": distribution("lognormal", mean="real 0", sigma="at_least_0 1"),
    "standard_exponential": _standard_exponential,
    "exponential": distribution("exponential", scale="at_least_0 1"),
    "gamma": distribution("gamma", shape="at_least_0", scale="at_least_0 1"),
    "standard_gamma": distribution("standard_gamma", True, shape="at_least_0"),
    "beta": distribution("beta", a="above_0", b="above_0"),
    "chisquare": distribution("chisquare", df="above_0"), "weibull": distribution("weibull", a="at_least_0"),
    "rayleigh": distribution("rayleigh", scale="at_least_0 1"), "poisson": poisson, "choice": _choice,
    "pareto": distribution("pareto", a="above_0"), "power": distribution("power", a="above_0"),
    "standard_cauchy": distribution("standard_cauchy"), "geometric": _geometric, "binomial": _binomial,
    "standard_t": distribution("standard_t", df="above_0"),
    "wald": distribution("wald", mean="above_0", scale="above_0"),
    "vonmises": distribution("vonmises", mu="real", kappa="at_least_0"), "triangular": triangular,
}  # fmt: skip
"""What traces the methods of `numpy.random.Generator`, with their parameters."""
