"""Semantics of Python and NumPy in loops: short circuits, errors, and where NumPy copies or makes views."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from as_written import as_written
from outcomes import outcome
from written import written

import dcarray as dc
from dcarray.core.counters import settle

HEAD = """
import math
import numpy as np
def bump(u):
    u[0] += 1.0
    return u[0]
def f(u, a, b, n):
    s = 0.0
    for i in range(n):
"""


STATES: list[dict[str, Any]] = [{"all": "ignore"}, {"divide": "ignore", "invalid": "ignore"}, {}]


def function(body: str) -> Any:
    return written(HEAD + "".join(f"        {line}\n" for line in body.split("\n")) + "    return u, s\n")


def alike(f: Any, u: Any, *rest: Any) -> int:
    """Compare calls of the function, plain and accelerated; how many loops were served."""
    ours, served = dc.accelerate(f), list[int]()
    for state in STATES:  # what Python raises does not depend on them
        with dc.options(jit="eager"), np.errstate(**state):
            wanted, before = as_written(outcome, f, (u, *rest))[:2], settle().loops
            for _ in range(3):
                assert outcome(ours, (u, *rest))[:2] == wanted
            served.append(settle().loops - before)
    return served[-1]


@pytest.mark.parametrize(
    "test",
    ["u[i] > 0.5 and bump(u) > 2", "u[i] > 0.5 or bump(u) > 3", "0.5 < u[i] < bump(u)", "bump(u) > u[i] > 1"],
)
def test_operands_that_python_may_not_evaluate(test: str) -> None:
    u = np.random.default_rng(1).random(30)
    assert alike(function(f"if {test}:\n    u[i] = 0.0"), u, 1.0, 2.0, 20) == 3 * (test[:3] != "0.5")


@pytest.mark.parametrize("top", [np.nan, np.inf, -np.inf, 0.0, 1.0])
@pytest.mark.parametrize("line", ["s = s + float(u[i]) / float(u[i + 1])", "s = s + float(u[i + 1]) / i"])
def test_division_by_zero_raises_for_any_dividend(top: float, line: str) -> None:
    u = np.random.default_rng(2).random(30) + 0.1
    assert alike(function(line), u, 1.0, 2.0, 20) == (0 if line.endswith("i") else 3)
    u[1], u[5], u[6] = top, top, 0.0
    assert alike(function(line), u, 1.0, 2.0, 20) == 0
    constant = function(f"u[i] += float('{top}') / b")
    assert alike(constant, u, 1.0, 2.0, 20) == 3
    assert alike(constant, u, 1.0, 0.0, 20) == 0


@pytest.mark.parametrize("line", [
    "s += float(u[i : i + 1])",
    "s += math.sqrt(u[i : i + 1])",
    "u[i] = u[i + 1 : i + 2] * 2",
    "u[i] += u[i : i + 1]",
])  # fmt: skip
def test_arrays_of_one_element_are_no_scalars(line: str) -> None:
    alike(function(line), np.random.default_rng(3).random(30), 1.0, 2.0, 20)


def test_complex_powers_of_negative_numbers() -> None:
    f = function("u[i] += abs(a**b)")
    u = np.random.default_rng(4).random(30)
    assert alike(f, u, 8.0, 1 / 3, 20) == 3
    assert alike(f, u, -8.0, 1 / 3, 20) == 0


def test_unevaluated_operands_may_fail() -> None:
    u = np.random.default_rng(5).random(30)
    alike(function("if u[i] > 2:\n    u[i] = a**b"), u, np.int32(3), np.int32(-2), 20)
    alike(function("if u[i].real > 2:\n    u[i] = a // b\nu[i] *= b"), u + 0j, 2 + 3j, 2.0, 20)


@pytest.mark.parametrize("lines", [
    "b = np.ascontiguousarray(u.T)\nb[0] = i + 1.0\nu[:, 1] += b[2] * 0.5",
    "b = np.ascontiguousarray(u[:, ::2])\nb *= 2\nu[:, 1] += b[:, 3]",
    "b = np.ascontiguousarray(u[i])\nb += 1\nu[:, i] += u[0]",
    "b = np.ascontiguousarray(u[i : i + 1, ::2])\nb *= 3\nu[:, i] += b[0, 1]",
    "b = np.ascontiguousarray(u * 2)\nb *= 3\nu[:, i] += b[0, 1]",
])  # fmt: skip
def test_contiguous_copies(lines: str) -> None:
    u = np.random.default_rng(6).random((30, 30))
    for v in (u, np.asfortranarray(u), np.concatenate([u, u], axis=1)[:, ::2]):
        wanted, found = v.copy("K"), v.copy("K")
        f = function(lines)
        f(wanted, 1.0, 2.0, 5)
        with dc.options(jit="eager"):
            dc.accelerate(f)(found, 1.0, 2.0, 5)
        np.testing.assert_array_equal(found, wanted)
    assert alike(f, u, 1.0, 2.0, 5) == 3


def test_a_contiguous_scalar_has_an_axis() -> None:
    u = np.random.default_rng(7).random(30)
    alike(function("u[i] += np.ascontiguousarray(u[i]).ndim"), u, 1.0, 2.0, 5)


def test_positional_arguments_of_variances() -> None:
    u = np.random.default_rng(8).random(30).astype("f4")
    f = function("s = s + np.var(u, None, None, None, 1) + u.std(0, np.float64, None, 1)")
    g = dc.accelerate(f)
    with dc.options(jit="eager"):
        found = g(u, 1.0, 2.0, 4)[1]
    wanted = as_written(f, u, 1.0, 2.0, 4)[1]
    assert type(found) is type(wanted)
    assert abs(found - wanted) < 1e-5


@pytest.mark.parametrize("lines", [
    "s = s + 1.0 / i", "u = u + np.float64(1.0) / i", "u = u + np.ones(30) / i",
    "w = (np.ones(30) * np.nan).astype('i4')\nu += w", "w = np.ones(30) * 1e39\nu += w.astype('f4')",
    "u += np.full(30, 7e4).astype('e')", "u[:] = np.sqrt(np.arange(30) - 1.0) + u",
    "u[i] = np.sqrt(np.float32(1.0) - i)",
])  # fmt: skip
def test_exceptions_of_constants(lines: str) -> None:
    """What a compiler computes itself is computed without floating-point exceptions."""
    u, f = np.random.default_rng(9).random(30), function(lines)
    with np.errstate(all="raise"):
        assert alike(f, u, 1.0, 2.0, 5) == 0
    with np.errstate(all="ignore"):
        alike(f, u, 1.0, 2.0, 5)


_INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")


@pytest.mark.parametrize("char", _INTEGERS)
@pytest.mark.parametrize("line", ["u[i] = a[i]", "u[i] += a[i]", "u[i:] = a[i]", "u[i] = float(a[i])"])
def test_values_that_do_not_fit_integers(char: str, line: str) -> None:
    """Of a scalar that is assigned; of an array they take what the processor makes of it."""
    f, info = function(line), np.iinfo(char)
    u = np.arange(12).astype(char)
    low, high = float(info.min), float(info.max)
    for value in (1.5, -0.9, -1.0, low, low - 0.5, low - 1, high, high + 0.5, high + 1, np.nan, np.inf):
        values = np.ones(12)
        values[5] = value
        alike(f, u, values, 2.0, 9)
    for other in _INTEGERS:
        if "float" not in line:
            for whole in (-1, info.min, int(info.min) - 1, info.max, int(info.max) + 1):
                if np.iinfo(other).min <= whole <= np.iinfo(other).max:
                    given = np.ones(12, other)
                    given[5] = whole
                    alike(f, u, given, 2.0, 9)
    assert alike(function("u[u < 3] = float(a[i])"), u, np.full(12, 1e30), 2.0, 9) == 0


def test_partial_writes_before_an_error() -> None:
    f = function("u[n - i] = b - i\nu = a\na[1:] += a[:-1]")
    u, a = np.arange(9, dtype="u4"), np.ones(9, "u4")
    wanted, found = (u.copy(), a.copy()), (u.copy(), a.copy())
    with pytest.raises(OverflowError):
        f(*wanted, -1.5, 3)
    with dc.options(jit="eager"), pytest.raises(OverflowError):
        dc.accelerate(f)(*found, -1.5, 3)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("below", [0, 16, 16384])
def test_two_names_of_one_new_array(below: int) -> None:
    text = """
    import numpy as np
    def f(a, n):
        for i in range(n):
            b = a * 2
            c = b
            a = b * 0.3
        d = b + 1
        c[3:9] = 5
        e = b * 2
        b += c
        c -= d
        return a, b, c, d, e, c * b
    """
    f, a = written(text), np.random.default_rng(10).random(5000)
    wanted, before, ours = f(a.copy(), 5), settle().loops, dc.accelerate(f)
    with dc.options(jit="eager", eager_below=below):
        for _ in range(3):
            got = ours(a.copy(), 5)
            assert got[1] is got[2]
            for x, y in zip(got, wanted, strict=True):
                np.testing.assert_array_equal(x, y)
    assert settle().loops == before + 3


@pytest.mark.parametrize("lines", [
    "o = u\nu = u * 2",  # `o` is what `u` was before the last turn
    "o = u\nw = u * 2\nu = w",
    "w = 2 * u - o\no = u\nu = w",
    "t = u\nu = v\nv = t * 0.5 + 1\no = t",
    "o = v\nv = u\nu = u * 0.5 + 1",  # and what it was two turns before
    "t = o\no = v\nv = u\nu = t * 0.5 + 1",
    "u = u[::-1]",
    "s = s + o[0]\no = v[::-1]",
    "s = s + o[0]\no = v",
])  # fmt: skip
@pytest.mark.parametrize("head", ["for i in range(n):", "while i < n:\n        i += 1"])
def test_names_that_take_over_arrays(lines: str, head: str) -> None:
    """What is bound to one of them afterwards, and what is written into that."""
    text = f"def f(u, v, n):\n    o, t, s, i = u, v, 0.0, 0\n    {head}\n"
    text += "".join(f"        {line}\n" for line in lines.split("\n"))
    f = written(text + "    o[0] = 3\n    u[1] = 4\n    t[2] = 5\n    return u, v, o, t, s\n")
    for n in (0, 1, 2, 3, 6):
        rng = np.random.default_rng(n)
        wanted = rng.random(9), rng.random(9)
        found = tuple(x.copy() for x in wanted)
        right = as_written(f, *wanted, n)
        with dc.options(jit="eager"):
            left = dc.accelerate(f)(*found, n)
        np.testing.assert_equal((left, found), (right, wanted))


@pytest.mark.parametrize("char", "FD")
def test_products_of_complex_scalars(char: str) -> None:
    """NumPy fuses nothing in them, as it does in those of arrays."""
    rng = np.random.default_rng(11)
    u = (rng.random(300) - 0.5 + 1j * rng.random(300)).astype(char)
    assert alike(function("u[i + 1] = u[i] * u[i + 50] * (1 + 2j) + 1.0"), u, 1.0, 2.0, 200) == 3
    assert alike(function("u[i + 1] = np.square(u[i])"), u, 1.0, 2.0, 200) == 3


@pytest.mark.parametrize("line", ["s = b - u[i]", "s += b == u[i]"])
def test_python_complex_with_float64(line: str) -> None:
    """What they give is none of NumPy's scalars."""
    assert alike(function(line), np.arange(30.0), 1.0, 1 + 2j, 20) == 0
    alike(function(line), np.arange(30.0), 1.0, np.complex128(1 + 2j), 20)
    alike(function(line), np.arange(30, dtype="f4"), 1.0, 1 + 2j, 20)


@pytest.mark.parametrize(("line", "char", "wrong"), [
    ("u[:] = a[i]", "i2", 300),
    ("u[:] = a[i]\nu[:] = 0", "i2", 300),
    ("for j in range(b):\n    u[j] = a[i]", "f8", 1e9),
    ("u[i] = a[i]\nu[i] = 3", "i2", 300),
    ("t = 1.0 / float(a[i])\nu[i] = i", "f8", 0.0),
    ("t = u[a[i]]\nu[i] = i", "i8", 1000),
    ("u[i] = u[a[:7]][0]\nu[i] = i", "i8", 1000),
    ("t = math.sqrt(a[i])\nu[i] = i", "f8", -1.0),
])  # fmt: skip
def test_dead_values_raise(line: str, char: str, wrong: float) -> None:
    f, u, a = function(line), np.zeros(30, "i1"), np.arange(1, 31).astype(char) % 20
    a[19] = 1
    assert alike(f, u, a, 5, 25) == 3
    a[6] = wrong
    assert alike(f, u, a, 5, 25) == 0


@pytest.mark.parametrize("line", ["t = a[i] + a[i + 1]\nu[i] = 1", "u[i] = a[i] * a[i + 1]\nu[i] = 1"])
def test_dead_integers_overflow(line: str) -> None:
    f, a = function(line), np.arange(30)
    a[6:8] = 2**63 - 1
    for g in (f, dc.accelerate(f)):
        with dc.options(jit="eager"), pytest.warns(RuntimeWarning, match="overflow encountered in scalar"):
            g(np.zeros(30, "i8"), a, 1.0, 20)


@pytest.mark.parametrize("lines", [
    "if j == 1:\n    c = b\nq = c[1]\nc[1] = 3.0\ns = s + q\nu[0] = 4.0",
    "if j == 1:\n    c = b\nu[0] = u[0] + c[1]\ns = s + p",
    "if j != 1:\n    u, b = b, u\nu[0] = u[0] + s\nb[0] = p",
])  # fmt: skip
def test_scalars_after_a_retraced_body(lines: str) -> None:
    """They are read where they were, not where the first attempt has stored them."""
    inner = "".join(f"            {line}\n" for line in lines.split("\n"))
    text = "def f(u, b, c, n):\n    s, b, c = 0.5, b * 1, c * 1\n    for i in range(n):\n"
    text += "        p = u[0]\n        for j in range(3):\n"
    f = written(text + inner + "        s = s + p\n    return u, s\n")
    u, b, c = np.random.default_rng(12).random((3, 9))
    assert alike(f, u, b, c, 4)


def test_memory_order_of_loop_carried_arrays() -> None:
    head = "def f(u, n):\n    w = u * 1\n    for i in range(n):\n"
    for lines in (
        "        for j in range(3):\n            w = u * 2\n        u = (u + 1).T\n",
        "        x = u + 1\n        u = x.T\n",
    ):
        f = written(head + lines + "    return u, w\n")
        for n in range(1, 5):
            wanted = as_written(f, np.ones((6, 6)), n)
            with dc.options(jit="eager"):
                found = dc.accelerate(f)(np.ones((6, 6)), n)
            assert [x.strides for x in found] == [x.strides for x in wanted]


def test_no_iterations_past_the_end_of_an_array() -> None:
    """What such a loop overwrites is kept for a second run; that ends where the array does."""
    f = written(
        "def f(u, n):\n    for i in range(n):\n        if i == 1:\n"
        "            u[i - 1] = u[9] * 2\n    return u, 0\n"
    )
    around = np.full(60, 7.0)
    for k in range(3, 33):
        with dc.options(jit="eager"):
            dc.accelerate(f)(around[k : k + 14], 14)
    for u in [np.random.default_rng(k).random(14) for k in range(40)]:  # what is kept has memory of its own
        assert alike(f, u, 14) == 3


def test_roots_used_only_as_conditions() -> None:
    """LLVM takes the truth of a root for that of its operand."""
    asked: list[Callable[[Any], Any]] = [
        lambda x: np.sqrt(x).astype(bool), lambda x: np.sqrt(x) != 0.0, lambda x: np.logical_not(np.sqrt(x)),
        lambda x: np.logical_and(np.sqrt(x), x < 2.0), lambda x: np.any(np.sqrt(x)),
        lambda x: np.isnan(np.sqrt(x)), lambda x: np.isfinite(np.sqrt(x)), lambda x: np.sqrt(x) > 0.0,
        lambda x: np.where(np.sqrt(x).astype(bool), x, 0.0),
    ]  # fmt: skip
    for dtype in ("f4", "f8"):
        x = np.linspace(-1.0, 1.0, 101, dtype=dtype)
        for f in asked:
            warns = pytest.warns(RuntimeWarning, match="invalid value encountered in sqrt")
            with dc.options(eager_below=0, jit="eager", cache_dir=None), warns:
                found = np.asarray(f(dc.asarray(x)))
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(found, f(x))


def test_roots_used_only_as_conditions_in_loops() -> None:
    f = written("""
        import numpy as np
        def f(a, b):
            for i in range(len(a)):
                b[i] = np.sqrt(a[i]) != 0.0
            for i in range(3):
                b[:] = b | (np.sqrt(a) == 0.0)
            return b
    """)
    a = np.linspace(-1.0, 1.0, 101)
    warns = pytest.warns(RuntimeWarning, match="invalid value encountered in sqrt")
    with dc.options(eager_below=0, jit="eager", cache_dir=None), warns:
        found = dc.accelerate(f)(a, np.zeros(101, bool))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, as_written(f, a, np.zeros(101, bool)))
