"""Loops over arrays, and over ``enumerate``, ``zip`` and ``reversed`` of them."""

from typing import Any

import numpy as np
import pytest
from loop_requests import check, request
from written import written

import dcarray as dc
from dcarray.core.errors import Untraceable
from dcarray.jit.loops.tracing.trace import trace


def names() -> dict[str, Any]:
    r = np.random.default_rng(5)
    return dict(
        np=np, x=r.random(7), y=r.random(9), A=r.random((7, 5)), z=r.integers(0, 9, 12).astype("u1"),
        c=r.random(12) + 1j, s=0.0, n=3, f=np.zeros((0, 3)),
    )  # fmt: skip


LOOPS = [
    "for a in x:\n    s += a",
    "for a in y[::-2]:\n    s = s * 0.5 + a",
    "for row in A:\n    row *= 2\n    row[1:] += row[:-1]",
    "for row in A.T:\n    s += row[0]",
    "for a in x:\n    x[1:] += a",  # elements are read in their turns
    "for b in z:\n    b += 200\n    s += b",
    "for w in c:\n    s += w.imag",
    "for a in x * 2:\n    x[0] += a",
    "for row in f:\n    s += 1.0",
    "for k, a in enumerate(x):\n    A[k, 0] = a * k",
    "for k, a in enumerate(x, 2):\n    s += a / k",
    "for a, b in zip(x, y):\n    s += a * b",
    "for k, (a, row) in enumerate(zip(y, A)):\n    row[:] = a + k",
    "for a, k in zip(y, range(4, -4, -2)):\n    s += a * k",
    "for a in reversed(x):\n    s = s * 0.5 + a",
    "for k in reversed(range(2, 6)):\n    x[k] = x[k - 1]",
    "for k, a in enumerate(reversed(range(1, 7, 2))):\n    x[k] = a",
    "for a in x:\n    for row in A:\n        row += a",
    "for a in x:\n    x = y\n    s += a",
    "for k, a in enumerate(x):\n    s += a\nn = k",
    "for a in x.flat:\n    s = s * 0.5 + a",
    "for a in A.flat:\n    s = s * 0.5 + a",
    "for a in A.T[::2].flat:\n    s = s * 0.5 + a",
    "for a in (A * 2).flat:\n    s = s * 0.5 + a",
    "for a in f.flat:\n    s += 1.0",
    "for a in A.flat:\n    A[0, 2] += a\n    A[5, 1] -= a",  # elements are read in their turns
    "for a in x.flat:\n    s += a\n    if a > 0.5:\n        break",
    "for row in A:\n    for a in row.flat:\n        s = s * 0.5 + a",
    "for k in np.ndindex(A.shape):\n    A[k] = A[k] * 2 + k[0] - k[1]",
    "for i, j in np.ndindex(A.shape):\n    A[i, j] += A[i, j - 1] * j",
    "for i, j in np.ndindex(*A.shape):\n    A[i, j] += A[i, j - 1] * j",
    "for i, j in np.ndindex(4, n):\n    s = s * 0.5 + A[i, j]\n    i += 1",
    "for (k,) in np.ndindex(n):\n    x[k] += k",
    "for k in np.ndindex(n):\n    x[k] += k[0]",
    "for k in np.ndindex(f.shape):\n    s += 1.0",
    "for a in x:\n    for k in np.ndindex(2, 3):\n        A[k] += a",
    "for k in range(n):\n    t = (x[k], x[k + 1])\n    s += max(*t) + np.hypot(*t)",
    "for k in range(n):\n    s += np.zeros(*x.shape)[k] + min(*(x[k], x[k + 1]))",
]


@pytest.mark.parametrize("loop", LOOPS)
def test_iterables(loop: str) -> None:
    check(loop, names(), live={name for name in "sn" if f"{name} = " in loop or f"{name} += " in loop})


def test_targets_are_bound_afterwards() -> None:
    check("for k, a in enumerate(x):\n    s += a", names())
    check("for row in A:\n    s += row[1]", names(), live={"s"})


def test_what_is_bound_after_loops_over_places() -> None:
    check("for a in A.flat:\n    s += a", names(), live={"s", "a"})
    f = dc.accelerate(
        written("""
        import numpy as np
        def f(A, s=0.0):
            for k in np.ndindex(A.shape):
                s = s * 0.5 + A[k]
            return s, k
        """)
    )
    with dc.options(jit="eager", cache_dir=None):
        assert f(names()["A"]) == f(names()["A"]) == f.__wrapped__(names()["A"])
    check("for i, j in np.ndindex(n, 2):\n    s += A[i, j]", names(), live={"s", "i", "j"})


def test_a_flat_with_a_name_is_read_once() -> None:
    f = dc.accelerate(
        written("""
        def f(A):
            s, places = 0.0, A.flat
            for a in places:
                s = s * 0.5 + a
            for a in places:
                s += 1.0
            return s
        """)
    )
    a = names()["A"]
    with dc.options(jit="eager", cache_dir=None):
        assert f(a) == f(a) == f.__wrapped__(a)


@pytest.mark.parametrize("loop, reason", [
    ("for q in range(2):\n    e = enumerate(x)\n    for k, a in e:\n        s += a", "iterator"),
    ("for q in range(2):\n    e = np.ndindex(2, 2)\n    for k in e:\n        s += 1", "iterator"),
    ("for q in range(2):\n    e = (np.ndindex(2), 1)\n    for k in e[0]:\n        s += 1", "iterator"),
    ("for a in A.flat:\n    if a > 0.5:\n        break", "break"),
    ("for a in s.flat:\n    n = 2", "not an array"),
    ("for k in np.ndindex():\n    s += 1.0", "without axes"),
    ("for a in x:\n    s = np.hypot(*x)", "number of arguments"),
    ("for a in reversed(zip(x, y)):\n    s += 1", "iterator"),
    ("for a, b in zip(x, y, x):\n    s += a", "several targets"),
    ("for a in s:\n    n = 2", "over another object"),
    ("for k in range(2):\n    for a in zip():\n        s += 1", "zip of nothing"),
])  # fmt: skip
def test_unsupported_code_is_refused(loop: str, reason: str) -> None:
    with pytest.raises(Untraceable, match=reason):
        trace(request(loop, names()))


def test_compiled_loop_over_an_array() -> None:
    f = dc.accelerate(
        written("""
def f(data, weights):
    s = 0.0
    for k, (b, w) in enumerate(zip(data, weights)):
        s = s * 0.5 + b * w + k
    for item in [1, 2]:
        s += item
    for c in "ab":
        s += len(c)
    return s
""")
    )
    r = np.random.default_rng(1)
    data, weights = r.random(40), r.random(40)
    expected = 0.0
    for k in range(40):
        expected = expected * 0.5 + data[k] * weights[k] + k
    with dc.options(jit="eager"):
        for _ in range(2):
            assert f(data, weights) == expected + 5
        assert f(list(data), weights) == expected + 5
        assert f(iter(data), weights) == expected + 5
    assert dc.report().loops >= 2
