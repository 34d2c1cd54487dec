"""Loops with ``assert`` and ``raise``: compiled code looks at the conditions, and what raises is Python's."""

import numpy as np
import pytest
from outcomes import outcome
from written import written

import dcarray as dc
from dcarray.core.counters import settle

pytestmark = pytest.mark.eager


CASES = {
    "assertion": """
        def f(x, n):
            s = 0.0
            for i in range(n):
                assert x[i] >= 0, f"negative: {x[i]} at {i}"
                x[i] = x[i] * 2
                s += x[i] ** 0.5
            return s
    """,
    "raise": """
        def f(x, n):
            s = 0.0
            for i in range(n):
                if x[i] < 0:
                    s = -1.0
                    raise ValueError("negative at " + str(i))
                s += x[i]
                x[i] = s
            return s
    """,
    "while": """
        def f(x, n):
            s = i = 0
            while True:
                if i == n:
                    return s
                if x[i % n] < 0:
                    raise RuntimeError("no end")
                s += x[i]
                assert s >= 0
                i += 1
    """,
    "either side": """
        def f(x, n):
            t = 0
            for i in range(n):
                if x[i] >= 0:
                    t += i
                    x[i] += t
                else:
                    raise KeyError(i)
            return t
    """,
    "a function": """
        def root(v):
            if v < 0:
                raise ValueError("a root of %s" % v)
            return v ** 0.5
        def f(x, n):
            s = 0.0
            for i in range(n):
                for j in range(3):
                    s += root(x[i]) * j
                x[i] = s
            return s
    """,
    "several": """
        def f(x, n):
            s = 0.0
            for i in range(n):
                if x[i] > 1e9:
                    raise OverflowError
                elif x[i] < 0:
                    raise ArithmeticError("both") from None
                assert x[i] == x[i]
                s = max(s, x[i])
            return s
    """,
    "a quotient for no elements": """
        def f(x, n):
            l, s = x.tolist(), 0.0
            for i in range(n):
                x[60:] -= x[60:] * (2.0 / (l[i] + 0.5))
                s += (x[60:] * (1.0 / (l[i] + 0.5))).sum()
            return s
    """,
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_raised_is_pythons(name: str) -> None:
    f = written(CASES[name])
    good = np.random.default_rng(0).random(50)
    bad = good.copy()
    bad[31] = -0.5
    g = dc.accelerate(f)
    for _ in range(2):
        want = outcome(written(CASES[name]), (good, 50))
        before = settle().loops
        assert outcome(g, (good, 50)) == want
        assert settle().loops > before
    expected, got = outcome(written(CASES[name]), (bad, 50)), outcome(g, (bad, 50))
    assert got.result[:2] == expected.result[:2] and got.given == expected.given
    assert issubclass(got.result[0], Exception)
    assert outcome(g, (good, 50)) == want


def test_what_ends_a_while_is_no_condition() -> None:
    f = written("""
        def f(x):
            k = 0
            while True:
                if x[k] < 0:
                    raise StopIteration(k)
                x[k] = k
                k += 1
    """)
    x = np.ones(20)
    x[7] = -1
    assert outcome(dc.accelerate(f), (x,)).result[:2] == (StopIteration, "7")


def test_conditions_that_are_known() -> None:
    f = written("""
        def f(x, n):
            for i in range(n):
                assert n < 40, "large"
                if n > 30:
                    raise ValueError(n)
                x[i] += i
            return x
    """)
    g = dc.accelerate(f)
    before = settle().loops
    assert g(np.zeros(20), 20).tolist() == [*map(float, range(20))] and settle().loops == before + 1
    assert outcome(g, (np.zeros(35), 35)).result[:2] == (ValueError, "35")
    assert outcome(g, (np.zeros(45), 45)).result[:2] == (AssertionError, "large")


# ---- try ------------------------------------------------------------------------------------------------
GUARDED = """
class Own(Exception):
    pass
def f(x, n, k):
    s, bad, t = 0.0, 0, -1
    for i in range(n):
        try:
            s += 1 / (float(x[i]) - k)
            t = i
        except {caught}:
            bad += 1
            continue
        else:
            s += 0.5
    return s, bad, t
"""


@pytest.mark.parametrize(
    "caught",
    ["ZeroDivisionError", "(ValueError, ZeroDivisionError)", "Exception as e", "Own", "IndexError", ""],
)
def test_handlers_are_pythons(caught: str) -> None:
    f = written(GUARDED.format(caught=caught))
    g = dc.accelerate(f)
    x = np.arange(50.0)
    before = settle().loops
    for args, fine in (((x, 40, -1), 1), ((x, 40, 45), 1), ((x, 40, 39), 0), ((x, 60, -1), 0)):
        assert outcome(g, args) == outcome(f, args)
        assert settle().loops - before == fine
        before = settle().loops


@pytest.mark.parametrize(("body", "compiled"), [
    ("try: s += 1 / x[i]\nexcept ValueError: return -1\n", 0),
    ("try: s += 1 / x[i]\nfinally: s += 1\n", 0),
    ("try:\n  try: s += 1 / x[i]\n  except ValueError: pass\nexcept KeyError: print(s)\n", 1),
    ("try:\n  if x[i] > 30: raise ValueError\n  s += 1 / x[i]\nexcept ValueError: s -= 1\n", 0),
    ("s += h(float(x[i]))\n", 1),
    ("s += h(float(x[i]) - 7.0)\n", 0),
    ("if x[i] > 5: x[i] = 1 / (x[i] - 5)\n", 1),
    ("x[i] = math.sqrt(x[i] / (x[i] - 5)) if x[i] > 5 else 0.0\n", 1),
])  # fmt: skip
def test_statements_that_are_guarded(body: str, compiled: int) -> None:
    lines = [
        "import math",
        "def h(v):",
        "    try: return 1 / v",
        "    except ZeroDivisionError: return 7.0",
        "def f(x, n):",
        "    s = 0.0",
    ]
    lines += ["    for i in range(1, n):", *[f"        {line}" for line in body.splitlines()], "    return s"]
    f = written("\n".join(lines))
    before, args = settle().loops, (np.arange(50.0), 40)
    assert outcome(dc.accelerate(f), args) == outcome(f, args)
    assert settle().loops - before == compiled
