"""Methods of Python's `random.Random` in traced code, which are the functions of `random`, too.

A few are traced here.  The others are written in Python, in terms of these: their source is traced.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from functools import cache
from random import Random

import numpy as np

from dcarray.ir.nodes import Apply, Load
from dcarray.ir.ops import const
from dcarray.lowering.runtime.parsing import parse

from ..entry.entry_values import Function, PublicObject
from ..entry.guards import rewritten_function
from ..entry.python_generators import IN_PYTHON, own_method
from ..syntax.source import source_of
from ..syntax.tries import without_tries
from .draws import WORD, Draws
from .generator_draws import need
from .legacy_draws import kept_or_new
from .values import Data, RandomGenerator, Value

__all__ = ["METHODS", "NAMES", "written_in_python"]

_F8, _I8 = np.dtype(np.float64), np.dtype(np.int64)
_MOST_BITS = 62
_ONE = 1


@cache
def _are_as_expected() -> bool:
    """Whether this Python's generator draws the same numbers as the methods here, which are not made from its
    source."""
    one, other = Random(11), Random(11)

    def below(n: int) -> int:
        number = n
        while number >= n:
            number = other.getrandbits(n.bit_length())
        return number

    drawn: list[tuple[float, float]] = []
    for n, step in ((1, 1), (7, 1), (7, 3), (8, -5), (1 << 31, 2)):
        drawn += [(one.randrange(3, 3 + n * step, step), 3 + step * below(n)), (one.randrange(n), below(n))]
    angle = 2.0 * math.pi * other.random()
    radius = math.sqrt(-2.0 * math.log(1.0 - other.random()))
    drawn += [(one.gauss(0.5, 3.0), 0.5 + f(angle) * radius * 3.0) for f in (math.cos, math.sin)]
    return all(mine == pythons for mine, pythons in drawn) and one.getstate() == other.getstate()


def _random(d: Draws, g: RandomGenerator) -> Data:
    return d.of_function(g, "random_standard_uniform", [], None)


def _getrandbits(d: Draws, g: RandomGenerator, k: Value, /) -> Value:
    need(d, type(k) is int and 0 <= k <= _MOST_BITS)
    parts = []
    for place in range(0, k, WORD):
        word = d.memory.new((), _I8, "word")
        d.word(g, const(max(0, WORD - (k - place)), _I8), word)
        parts.append(Apply("left_shift", (Load(word, _I8), const(place, _I8)), _I8))
    if not parts:
        return 0
    bits = parts[0] if len(parts) == 1 else Apply("bitwise_or", tuple(parts), _I8)
    return d.memory.value(bits, scalar=True, weak=int, limits=(0, (1 << k) - 1))


def _randbelow(d: Draws, g: RandomGenerator, n: Value) -> Data:
    need(d, _are_as_expected())
    return d.integers(g, 0, n, None, int, endpoint=False)


def _randrange(d: Draws, g: RandomGenerator, start: Value, stop: Value = None, step: Value = _ONE) -> Value:
    need(d, _are_as_expected() and type(step) is int and step != 0 and (step == _ONE or stop is not None))
    if step == _ONE:
        return d.integers(g, start, stop, None, int, endpoint=False)
    first, width = d.end(start), d.math.binary("-", d.end(stop), d.end(start))
    count = d.math.binary("//", d.math.binary("+", width, step - (1 if step > 0 else -1)), step)
    return d.math.binary("+", first, d.math.binary("*", step, _randbelow(d, g, count)))


def _gauss(d: Draws, g: RandomGenerator, mu: Value = 0.0, sigma: Value = 1.0) -> Value:
    need(d, _are_as_expected())

    def called(name: str, x: Value) -> Value:
        return d.call(PublicObject(f"math.{name}"), (x,), {})

    def pair() -> tuple[Value, Value]:
        angle = d.math.binary("*", _random(d, g), 2.0 * math.pi)
        log = called("log", d.math.binary("-", 1.0, _random(d, g)))
        radius = called("sqrt", d.math.binary("*", -2.0, log))
        first, second = [d.math.binary("*", called(name, angle), radius) for name in ("cos", "sin")]
        return d.math.expr(first, _F8), d.math.expr(second, _F8)

    normal = d.memory.new((), _F8, "normal")
    kept_or_new(d, g, normal, pair)
    d.memory.immutable.add(normal.array)
    number = d.memory.value(Load(normal, _F8), scalar=True, weak=float)
    return d.math.binary("+", mu, d.math.binary("*", number, sigma))


METHODS: dict[str, Callable[..., Value]] = {
    "random": _random, "getrandbits": _getrandbits, "_randbelow": _randbelow, "randrange": _randrange,
    "gauss": _gauss,
}  # fmt: skip
"""What traces the methods, with their parameters."""
NAMES = frozenset([*METHODS, *IN_PYTHON])
"""The methods that may be understood."""


@cache
def written_in_python(name: str) -> Function | None:
    """Return a generator's method if its Python source is to be traced; else None."""
    if name in METHODS or name not in IN_PYTHON:
        return None
    method = own_method(name)
    source = None if method is None else source_of(method, method.__code__)
    if method is None or source is None:
        return None
    source.tree.body = without_tries(source.tree.body)
    tree = parse(ast.unparse(source.tree)).body[0]
    assert isinstance(tree, ast.FunctionDef)
    guard = rewritten_function(method, ast.unparse(tree), tree, {}, {})
    description = None if guard is None else guard.entry_value
    return description if isinstance(description, Function) else None
