"""Dead values in loops, of which NumPy warns as of others."""

import ast
import warnings
from typing import Any

import numpy as np
import pytest
from as_written import as_written
from hypothesis import given, settings
from hypothesis import strategies as st
from outcomes import outcome
from written import written

import dcarray as dc
from dcarray.core.counters import settle
from dcarray.core.fp_attribution import DIVIDE, INVALID, OVER
from dcarray.ir.nodes import Apply, Const, Expr
from dcarray.ir.ops import const
from dcarray.jit.loops.operations.flag_checks import with_flag_check
from dcarray.jit.loops.tracing.dead_values import dead_targets

HEAD = """
import numpy as np
def f(a, b, c, n):
    s = np.float64(0.0)
    for i in range(n):
"""

LINES = [
    "t = a[i] / b[i]",
    "a[i] / b[i]",
    "t = a[i] / b[i]\ns = t",
    "t = a[i] / b[i]\nt = a[i]\nc[i] = t",
    "t = a[i] / b[i]\nif b[i] != 0:\n    c[i] = t",
    "t = a[i] / b[i]\nif b[i] == 0:\n    t = a[0]\nc[i] = t",
    "t = a[i] / b[i]\nif b[i] == 0:\n    continue\nc[i] = t",
    "t, r = a[i] / b[i], 2.0\nfor j in range(3):\n    if b[i] != 0:\n        c[j] += t * r",
    "c[i] = a[i] / b[i]\nif b[i] == 0:\n    c[i] = 1.0",
    "t = a[i] / b[i]\nc[i] = t\nif b[i] == 0:\n    c[i] = 1.0",
    "t = 1.0 / (a[i] / b[i])\nif b[i] != 0:\n    c[i] = t",
    "t = np.float32(a[i] * 1e300)",
    "t = np.where(b > 0.0, b, 1e30).astype(np.uint16)",
    "t = (b * 2.0).astype(int)\nt = 7 // t",
    "t = a[i]\nt /= b[i]\nif b[i] != 0:\n    c[i] = t",
    "if a[i] / b[i] > 1:\n    pass",
    "t = np.sqrt(a[i] - 2.0)\nif i > n:\n    c[i] = t",
    "t = a[:8] / b[i]",
    "t = np.log(a + 0.0)\nc[i] = a[i]",
    "t = a / b\nif i > n:\n    c[:] = t",
    "a / b",
    "t = a / b if i % 2 else a - 1.0",
    "a / b if i % 2 else np.sqrt(a)",
    "t = [a / b, 2.0]",
    "c[i] = (a[i] / b[i], 2.0)[1]",
    "c[i] = i if (t := a[i] / b[i]) and i > n else 1.0",
    "quotient(a[i], b[i])",
    "t = quotient(a, b)",
    "c[i] = quotient(a[i], b[i])[1]",
    "r = s if i else 0.0\nr += a[i] / b[i]",
    "t = [x / b[i] for x in a]",
    "t = min(0.5, np.log(b[i]))",
    "c[99:] = a[99:] * (a[i] / b[i])",
    "c[30:] = a[i] / b[i]",
    "t = a[i] / b[i]\nc[n + 10 :] += a[n + 10 :] * t",
    "c[i] = (a[n + 10 :] * np.log(b[i] - 1.0)).sum()",
]


def quotient(x: Any, y: Any) -> Any:
    t = x / y
    return t, 2.0


QUIET = {"all": "ignore"}
STATES = [
    {}, QUIET, {"divide": "raise", "over": "raise", "invalid": "raise"}, {"over": "ignore"},
    {"divide": "ignore"}, {"divide": "ignore", "invalid": "ignore"}, {"invalid": "ignore", "over": "ignore"},
]  # fmt: skip


def arrays(zeros: bool) -> tuple[Any, ...]:
    rng = np.random.default_rng(3)
    a, b, c = rng.random(30) + 3, rng.random(30) + 0.5, np.zeros(30)
    if zeros:
        a[5], b[5], b[9] = 0.0, 0.0, 0.0
    return a, b, c, 20


def function(lines: str) -> Any:
    return written(
        HEAD + "".join(f"        {line}\n" for line in lines.split("\n")) + "    return c, s\n",
        quotient=quotient,
    )


@pytest.mark.parametrize("lines", LINES)
def test_dead_values_are_warned_of(lines: str) -> None:
    f = function(lines)
    g = dc.accelerate(f)
    with dc.options(jit="eager"):
        before = settle().loops
        wanted = as_written(outcome, f, arrays(False))
        assert outcome(g, arrays(False)) == wanted
        # no loop is left as it is for want of being understood
        assert settle().loops > before or wanted.said
        for state in STATES:
            before = settle().loops
            assert outcome(g, arrays(True), **state) == as_written(outcome, f, arrays(True), **state)
            assert settle().loops > before or state != QUIET  # for what is ignored no loop runs as written


def names(body: str) -> set[str]:
    return {ast.unparse(target) for target in dead_targets(ast.parse(body).body)}


def test_dead_targets() -> None:
    assert names("for i in x:\n    t = a[i] * 2\n    c[i] = t") == set()
    assert names("for i in x:\n    t = a[i] * 2\n    if t > 1:\n        c[i] = 1") == set()
    assert names("for i in x:\n    t = a[i] * 2\n    if t > 1:\n        pass") == set()
    assert names("for i in x:\n    if c:\n        t = a[i]\n    else:\n        t = 2\n    c[i] = t") == set()
    assert names("for i in x:\n    c[i] = t\n    t = a[i] * 2") == set()  # the next turn does
    assert names("for i in x:\n    t = a[i]\n    s = t\n    r = 1 if s else 0\n    c[i] = r") == set()
    assert names("for i in x:\n    t = a[i]\n    s = t\n    r = b if a else s\n    c[i] = r") == {"t", "s"}
    assert names("while t < 1:\n    t = t + a[i]") == set()
    assert names("for i in x:\n    t = a[i]\n    for j in y:\n        c[j] = t") == {"t"}
    assert names("for i in x:\n    t = a[i]\n    while t > u:\n        u += 1") == set()
    assert names("for i in x:\n    c[i] = a[i]\n    c[i] = c[i] + 1") == set()
    assert names("for i in x:\n    c[i] = a[i]\n    if c[i] > 1:\n        c[i] = 1") == {"c[i]"}
    assert names("t = x * 2\nreturn t") == set()
    assert names("t = x * 2\nif x:\n    return t\nreturn 0") == {"t"}
    assert names("x, (y, t) = z\nreturn y") == {"x", "t"}


NUMBERS = st.sampled_from([0.0, -0.0, 1.0, -2.5, 1e308, -1e308, np.inf, -np.inf, np.nan, 3.0])
OPS = {"add": 2, "subtract": 2, "multiply": 2, "divide": 2, "sqrt": 1, "log": 1, "negative": 1, "maximum": 2}


@st.composite
def terms(draw: Any, depth: int = 3) -> Expr:
    if not depth or draw(st.integers(0, 3)) == 0:
        return const(draw(NUMBERS), np.dtype(np.float64))
    name = draw(st.sampled_from(sorted(OPS)))
    args = tuple([draw(terms(depth - 1)) for _ in range(OPS[name])])
    return Apply(name, args, np.dtype(np.float64))


def computed(expr: Expr) -> tuple[Any, set[str]]:
    """The value of constants, and what NumPy raises but for small numbers."""
    raised: set[str] = set()
    with np.errstate(all="call", under="ignore"):
        old = np.seterrcall(lambda kind, flag: raised.add(kind))
        try:
            return _value(expr), raised
        finally:
            np.seterrcall(old)


def _value(expr: Expr) -> Any:
    if isinstance(expr, Const):
        return np.frombuffer(expr.bits, expr.dtype)[0]
    assert isinstance(expr, Apply)
    args = [_value(arg) for arg in expr.args]
    return getattr(np, expr.op)(*args)


BITS = {"divide": DIVIDE, "over": OVER, "invalid": INVALID}
KINDS = {"divide by zero": DIVIDE, "overflow": OVER, "invalid value": INVALID}


@given(terms(), st.sets(st.sampled_from(sorted(BITS))))
@settings(max_examples=160, deadline=None)
def test_flag_checks_find_raised_flags(expr: Expr, names: set[str]) -> None:
    watched = sum(BITS[name] for name in names)
    raised = computed(expr)[1]
    minded = {kind for kind in raised if KINDS[kind] & watched}
    made = with_flag_check(expr, watched)
    if made is expr:
        assert not minded
    else:
        assert isinstance(made, Apply) and made.op == "checked"
        told = not computed(made.args[0])[0]
        assert bool(minded) <= told <= bool(raised)


def test_a_dead_complex_scalar_warns() -> None:
    f = written(
        "import numpy as np\n"
        "def f(a, n):\n    for i in range(3):\n        t = a[i] / n\n        a[i] += 1\n    return a\n"
    )
    a = np.arange(9.0) + 1j
    with dc.options(jit="eager"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(dc.accelerate(f)(a.copy(), 2), f(a.copy(), 2))
        with pytest.raises(RuntimeWarning, match="divide by zero"):
            dc.accelerate(f)(a.copy(), 0)
