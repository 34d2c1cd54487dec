"""Methods of `numpy.random.Generator` in traced code, with their parameters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dcarray.ir.nodes import Apply, Load
from dcarray.ir.ops import const

from .choices import choice
from .draws import MOST, Draws
from .values import Data, RandomGenerator, Value, is_int

__all__ = [
    "METHODS",
    "is_dtype",
    "need",
    "of_location",
    "poisson",
    "triangular",
    "uniform",
]

_F8, _BOOL = np.dtype(np.float64), np.dtype(np.bool_)
_LEAST_GEOMETRIC = 1e-9  # the chance of numbers that are surely below `draws.MOST`
_MOST_POISSON = float(1 << 40)  # the mean of numbers that are surely below `draws.MOST`


def need(d: Draws, holds: bool) -> None:
    """Refuse a call, by raising `Untraceable`, unless ``holds``."""
    if not holds:
        raise d.scope.fail("an argument of random numbers that is not understood")


def is_dtype(value: Value, *kinds: type) -> bool:
    """Whether the argument ``dtype`` of a call is one of some kinds; None stands for no argument."""
    names = {f"{kind.__module__}.{kind.__name__}" for kind in kinds}
    return getattr(value, "name", None) in names or value in kinds


def _random(d: Draws, g: RandomGenerator, size: Value = None, dtype: Value = None, out: Value = None) -> Data:
    need(d, out is None and (dtype is None or is_dtype(dtype, float, np.float64)))
    return d.of_function(g, "random_standard_uniform", [], size)


def _standard_normal(
    d: Draws, g: RandomGenerator, size: Value = None, dtype: Value = None, out: Value = None
) -> Data:
    need(d, out is None and (dtype is None or is_dtype(dtype, float, np.float64)))
    return d.of_function(g, "random_standard_normal", [], size)


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


def _pareto(d: Draws, g: RandomGenerator, a: Value, size: Value = None) -> Data:
    return d.of_function(g, "random_pareto", [d.above_0(a)], size)


def _power(d: Draws, g: RandomGenerator, a: Value, size: Value = None) -> Data:
    return d.of_function(g, "random_power", [d.above_0(a)], size)


def _standard_cauchy(d: Draws, g: RandomGenerator, size: Value = None) -> Data:
    return d.of_function(g, "random_standard_cauchy", [], size)


def _standard_t(d: Draws, g: RandomGenerator, df: Value, size: Value = None) -> Data:
    return d.of_function(g, "random_standard_t", [d.above_0(df)], size)


def _wald(d: Draws, g: RandomGenerator, mean: Value, scale: Value, size: Value = None) -> Data:
    return d.of_function(g, "random_wald", [d.above_0(mean), d.above_0(scale)], size)


def _vonmises(d: Draws, g: RandomGenerator, mu: Value, kappa: Value, size: Value = None) -> Data:
    return d.of_function(g, "random_vonmises", [d.real(mu), d.at_least_0(kappa)], size)


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
    need(d, least >= 0 and most <= MOST)
    memory = Load(d.part(g, "binomial"), np.dtype(np.uint64))
    count = d.math.expr(n, np.dtype(np.int64))
    return d.of_function(g, "random_binomial", [d.chance(p, 0.0), count, memory], size)


def _choice(
    d: Draws, g: RandomGenerator, a: Value, size: Value = None, replace: Value = True, p: Value = None,
    axis: Value = 0, shuffle: Value = True,
) -> Value:  # fmt: skip
    need(d, replace is True and axis == 0)
    return choice(d, g, a, size, p)


def of_location(name: str) -> Callable[..., Data]:
    """Return a function that traces a distribution with a location and a scale, by a function of `DRAWS`."""

    def traced(
        d: Draws, g: RandomGenerator, loc: Value = 0.0, scale: Value = 1.0, size: Value = None
    ) -> Data:
        return d.of_function(g, name, [d.real(loc), d.at_least_0(scale)], size)

    return traced


def _lognormal(
    d: Draws, g: RandomGenerator, mean: Value = 0.0, sigma: Value = 1.0, size: Value = None
) -> Data:
    return d.of_function(g, "random_lognormal", [d.real(mean), d.at_least_0(sigma)], size)


def _exponential(d: Draws, g: RandomGenerator, scale: Value = 1.0, size: Value = None) -> Data:
    return d.of_function(g, "random_exponential", [d.at_least_0(scale)], size)


def _rayleigh(d: Draws, g: RandomGenerator, scale: Value = 1.0, size: Value = None) -> Data:
    return d.of_function(g, "random_rayleigh", [d.at_least_0(scale)], size)


def _standard_gamma(
    d: Draws, g: RandomGenerator, shape: Value, size: Value = None, dtype: Value = None, out: Value = None
) -> Data:
    need(d, out is None and (dtype is None or is_dtype(dtype, float, np.float64)))
    return d.of_function(g, "random_standard_gamma", [d.at_least_0(shape)], size)


def _gamma(d: Draws, g: RandomGenerator, shape: Value, scale: Value = 1.0, size: Value = None) -> Data:
    return d.of_function(g, "random_gamma", [d.at_least_0(shape), d.at_least_0(scale)], size)


def _beta(d: Draws, g: RandomGenerator, a: Value, b: Value, size: Value = None) -> Data:
    return d.of_function(g, "random_beta", [d.above_0(a), d.above_0(b)], size)


def _chisquare(d: Draws, g: RandomGenerator, df: Value, size: Value = None) -> Data:
    return d.of_function(g, "random_chisquare", [d.above_0(df)], size)


def _weibull(d: Draws, g: RandomGenerator, a: Value, size: Value = None) -> Data:
    return d.of_function(g, "random_weibull", [d.at_least_0(a)], size)


def poisson(d: Draws, g: RandomGenerator, lam: Value = 1.0, size: Value = None) -> Data:
    """Trace ``poisson`` of a `Generator` or a `RandomState`."""
    rate = d.stored(d.at_least_0(lam))
    fits = Apply("less_equal", (rate, const(_MOST_POISSON, _F8)), _BOOL)
    return d.of_function(g, "random_poisson", [d.checked(rate, 1.0, fits)], size)


METHODS: dict[str, Callable[..., Value]] = {
    "random": _random, "standard_normal": _standard_normal, "uniform": uniform, "integers": _integers,
    "normal": of_location("random_normal"), "lognormal": _lognormal,
    "standard_exponential": _standard_exponential, "exponential": _exponential, "gamma": _gamma,
    "standard_gamma": _standard_gamma, "beta": _beta, "chisquare": _chisquare,
    "laplace": of_location("random_laplace"), "logistic": of_location("random_logistic"),
    "gumbel": of_location("random_gumbel"), "weibull": _weibull, "rayleigh": _rayleigh,
    "poisson": poisson, "choice": _choice,
    "pareto": _pareto, "power": _power, "standard_cauchy": _standard_cauchy, "standard_t": _standard_t,
    "wald": _wald, "vonmises": _vonmises, "triangular": triangular, "geometric": _geometric,
    "binomial": _binomial,
}  # fmt: skip
"""What traces the methods of `numpy.random.Generator`, with their parameters."""
