"""Clean-up of expressions keeps every bit."""

import numpy as np
import pytest

from dcarray.ir.nodes import Apply, Const, Load, Window
from dcarray.ir.ops import const
from dcarray.ir.passes.portable.simplify import SIMPLIFY, simplify_expr

F8, F4, I8, I4, B1 = (np.dtype(c) for c in ("f8", "f4", "i8", "i4", "?"))


def load(name: str, dtype: np.dtype) -> Load:
    return Load(Window(name, (), ()), dtype)


def cast(x, dtype):
    return Apply("cast", (x,), dtype)


X, Y, K, J, P = load("x", F8), load("y", F4), load("k", I8), load("j", I4), load("p", B1)


@pytest.mark.parametrize(("before", "after"), [
    (cast(X, F8), X),
    (cast(cast(Y, F8), F4), Y),
    (cast(cast(J, F8), I4), J),
    (cast(cast(P, I8), B1), P),
    (Apply("positive", (X,), F8), X),
    (Apply("conjugate", (K,), I8), K),
    (Apply("where", (P, X, X), F8), X),
    (Apply("where", (const(True, "?"), X, cast(Y, F8)), F8), X),
    (Apply("negative", (Apply("negative", (X,), F8),), F8), X),
    (Apply("absolute", (Apply("absolute", (X,), F8),), F8), Apply("absolute", (X,), F8)),
    (Apply("maximum", (X, X), F8), X),
    (Apply("multiply", (X, const(1.0, "f8")), F8), X),
    (Apply("multiply", (const(1.0, "f8"), X), F8), X),
    (Apply("subtract", (X, const(0.0, "f8")), F8), X),
    (Apply("add", (K, const(0, "i8")), I8), K),
    (Apply("add", (const(2.0, "f8"), const(3.0, "f8")), F8), const(5.0, "f8")),
    (cast(const(3, "i8"), F8), const(3.0, "f8")),
])  # fmt: skip
def test_becomes(before, after):
    assert simplify_expr(before) is after


@pytest.mark.parametrize("kept", [
    cast(cast(X, F4), F8),
    cast(cast(K, F8), I8),  # int64 does not fit the digits of float64
    Apply("add", (X, const(0.0, "f8")), F8),  # -0.0 + 0.0 is 0.0
    Apply("subtract", (X, const(-0.0, "f8")), F8),  # -0.0 - -0.0 is 0.0
    Apply("subtract", (X, X), F8),  # nan
    Apply("multiply", (X, const(0.0, "f8")), F8),
    Apply("divide", (const(1.0, "f8"), const(0.0, "f8")), F8),  # has to warn
    Apply("maximum", (X, cast(Y, F8)), F8),
])  # fmt: skip
def test_stays(kept):
    assert simplify_expr(kept) is kept


def test_constants_compare_by_bits():
    zero = simplify_expr(Apply("negative", (const(0.0, "f8"),), F8))
    assert isinstance(zero, Const)
    assert zero is const(-0.0, "f8")


def test_golden(golden):
    golden(SIMPLIFY)
