"""Temporaries that Python's interpreter operates on are written over while NumPy does everything at once."""

from __future__ import annotations

import ctypes
import functools
import operator
import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dcarray as dc
from dcarray.core import stack_depth
from dcarray.core.native import BUILT
from dcarray.tiering import eager_period

pytestmark = [
    pytest.mark.skipif(not BUILT, reason="the C module does it"),
    pytest.mark.skipif(sys.version_info >= (3, 14), reason="nothing is known of the stack of this Python"),
]
SHAPE = 150, 200


@pytest.fixture(autouse=True)
def _options() -> Iterator[None]:
    with dc.options(jit="background", cache_dir=None, eager_below=16384, debug=False, strict=False):
        assert eager_period.begin(600.0)
        yield
        eager_period.end()


def arrays(dtype: Any = float) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(3)
    return (rng.random(SHAPE) * 9).astype(dtype), (rng.random(SHAPE) * 9 + 1).astype(dtype)


class Told:
    """Notes which objects its operands are, and gives what it was given.  A temporary that is written over is
    the result itself; one that is not lives until there is another object."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def __call__(self, x: Any) -> Any:
        self.seen.append(id(x))
        return x


OPERATORS = ["+", "-", "*", "/"]


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("text", ["tell(x * 2.0) {op} y", "y {op} tell(x * 2.0)", "tell(x * 2.0) {op} 3.0"])
def test_a_temporary_is_written_over(op: str, text: str) -> None:
    a, b = arrays()
    x, y, tell = dc.asarray(a), dc.asarray(b), Told()
    scope: dict[str, Any] = {}
    exec(f"def f(x, y, tell):\n    return {text.format(op=op)}", scope)
    result = scope["f"](x, y, tell)
    assert id(result) == tell.seen[0]
    np.testing.assert_array_equal(np.asarray(result), scope["f"](a, b, lambda v: v))


def test_integers_and_bools() -> None:
    a, b = arrays("i8")
    x, y, tell = dc.asarray(a), dc.asarray(b), Told()
    z = (tell(x + y) & y) ^ 5
    assert id(z) == tell.seen[0]
    np.testing.assert_array_equal(np.asarray(z), ((a + b) & b) ^ 5)
    big, other = (dc.asarray(np.resize(v, (1024, 128))) for v in (a, b))
    w = tell(big > other) | (other > 3)
    assert id(w) == tell.seen[1]
    quotient = tell(x * y) / 3  # of another dtype
    assert id(quotient) != tell.seen[2]
    np.testing.assert_array_equal(np.asarray(quotient), a * b / 3)


KEPT: list[Callable[[Any, Any, list[Any]], Any]] = [
    lambda x, y, kept: (kept.append(t := x + y), t * 2.0)[1],  # a name
    lambda x, y, kept: (kept.append(x + y), kept[-1] * 2.0)[1],  # a list
    lambda x, y, kept: (kept.extend([x + y, x - y]), functools.reduce(operator.mul, kept))[1],
    lambda x, y, kept: (kept.extend([x + y, x - y]), sum(kept))[1],
    lambda x, y, kept: (kept.append(x + y), sum(map(operator.add, kept, [y])))[1],
    lambda x, y, kept: (kept.append((x + y)[1:]), np.asarray(kept[0]) * 2.0 + kept[0])[1],
    lambda x, y, kept: (lambda t: (kept.append(t), t / y)[1])(x + y),
    lambda x, y, kept: [kept.append(t) or t * y for t in [x + y, x - y]][-1],
    lambda x, y, kept: next(t * 2.0 for t in [x + y] if kept.append(t) is None),
]


@pytest.mark.parametrize("number", range(len(KEPT)))
def test_what_somebody_has_is_not(number: int) -> None:
    a, b = arrays()
    ours: list[Any] = []
    theirs: list[Any] = []
    want = KEPT[number](a, b, theirs)
    got = KEPT[number](dc.asarray(a), dc.asarray(b), ours)
    np.testing.assert_array_equal(np.asarray(got), want)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(np.asarray(mine), other)


def test_the_only_reference_of_a_container() -> None:
    """An array of objects, a tuple or compiled code has a single reference for longer than an operator."""
    a, b = arrays()
    x, y = dc.asarray(a), dc.asarray(b)
    held = np.empty(2, object)
    held[0], held[1] = x + y, x - y
    for result in (held + 1.0, 1.0 - held, held + held, held * held):
        assert result.shape == (2,)
        np.testing.assert_array_equal(np.asarray(held[0]), a + b)
        np.testing.assert_array_equal(np.asarray(held[1]), a - b)
    sums = ctypes.pythonapi.PyNumber_Add
    sums.restype, sums.argtypes = ctypes.py_object, [ctypes.py_object] * 2
    boxed = ctypes.py_object(x + y)
    assert sums(boxed, 1.0) is not boxed.value
    np.testing.assert_array_equal(np.asarray(boxed.value), a + b)


class Other:
    """An operand with operators of its own, which calls those of what it is given."""

    def __init__(self, value: Any) -> None:
        self.value = value

    __array_ufunc__ = None

    def __radd__(self, other: Any) -> Any:
        first = other + self.value
        return first, other * 2.0, other + 1.0

    __add__ = __rmul__ = __radd__


def test_operators_of_others() -> None:
    a, b = arrays()
    x, y = dc.asarray(a), dc.asarray(b)
    for found in ((x + y) + Other(y), Other(y) + (x + y), (x + y) * Other(y)):
        for got, want in zip(found, (a + b + b, (a + b) * 2.0, a + b + 1.0), strict=True):
            np.testing.assert_array_equal(np.asarray(got), want)


@st.composite
def sources(draw: st.DrawFn) -> str:
    """A function of two arrays with flow of all kinds around its operators."""
    names = ["x", "y"]
    lines: list[str] = []

    def expression(depth: int = 3) -> str:
        if depth == 0 or (depth < 3 and draw(st.booleans())):
            return draw(st.sampled_from([*names, "2.0", "x[::-1]", "keep(x * 3.0)"]))
        form = draw(
            st.sampled_from(["({} {} {})"] * 5 + ["({} {} {} if k else y)", "(lambda t: t {1} {2})({0})"])
        )
        op = draw(st.sampled_from(OPERATORS[:3]))
        return form.format(expression(depth - 1), op, expression(depth - 1))

    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["plain", "for", "try", "with", "walrus", "list", "raises"]))
        text, new = expression(), f"v{len(names)}"
        lines += {
            "plain": [f"{new} = {text}"],
            "for": [f"{new} = x", "for k in range(3):", f"    {new} = {text} + {new}"],
            "try": ["try:", f"    {new} = {text}", "finally:", "    k = 2"],
            "with": ["with np.errstate(all='ignore'):", f"    {new} = {text}"],
            "walrus": [f"{new} = (w := {text}) * 2.0 + w", "keep(w)"],
            "list": [f"{new} = sum([keep({text}) for _ in range(2)])"],
            "raises": [
                "try:",
                f"    x + [{text}, {text} + none()]",
                "except ZeroDivisionError:",
                f"    {new} = {text}",
            ],
        }[kind]
        names.append(new)
    body = "\n".join("    " + line for line in lines)
    return f"def f(x, y, keep, none, k=1):\n{body}\n    return [{', '.join(names)}]\n"


def fails() -> Any:
    raise ZeroDivisionError


@settings(max_examples=150, deadline=None)
@given(sources())
def test_random_functions(source: str) -> None:
    scope: dict[str, Any] = {"np": np}
    exec(source, scope)
    a, b = arrays()
    results = []
    for x, y in ((a.copy(), b.copy()), (dc.asarray(a.copy()), dc.asarray(b.copy()))):
        kept: list[Any] = []

        def keep(value: Any, kept: list[Any] = kept) -> Any:
            kept.append(value)
            return value

        results.append([*scope["f"](x, y, keep, fails), *kept])
    for want, got in zip(*results, strict=True):
        np.testing.assert_array_equal(np.asarray(got), want)


def codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def test_depths_are_known_wherever_there_are_operators() -> None:
    """In whole modules with all that Python has, but for generators."""
    found = 0
    for module in (functools, operator, np.lib._npyio_impl, np.linalg._linalg, stack_depth):
        with open(str(module.__file__), encoding="utf-8") as file:
            for code in codes(compile(file.read(), str(module.__file__), "exec")):
                known = stack_depth._depths(code)
                assert all(2 <= depth <= code.co_stacksize for depth in known.values())
                found += len(known)
    assert found > 100
    generator = compile("def f(x):\n    yield x + 1", "<text>", "exec").co_consts[0]
    assert stack_depth._depths(generator) == {} and stack_depth.stack_depth(generator, 4) == -1
