"""``dc.program`` called with lists of numbers for arrays."""

import copy
import random
import re
from typing import Any

import numpy as np
import pytest
from symbolic_sources import random_program
from written import written

import dcarray as dc
from dcarray.core.counters import counters, settle
from dcarray.jit.loops.entry.sizes import symbol

HEAD = """from __future__ import annotations
import math
import numpy as np
"""
SIZES = {name: symbol(name) for name in "NMK"}


def program(text: str, **names: Any) -> Any:
    return dc.program(written(HEAD + text, **SIZES, **names))


def rows(n: int, m: int, seed: int = 0) -> list[list[float]]:
    r = random.Random(seed)
    return [[r.uniform(0.5, 2) for _ in range(m)] for _ in range(n)]


def served(f: Any, *args: Any) -> tuple[Any, int]:
    before = settle().loops
    with dc.options(cache_dir=None):
        found = f(*args)
    return found, settle().loops - before


GEMM = """
def f(alpha: float, A: np.float64[N, K], B: np.float64[K, M], C: np.float64[N, M]):
    for i in range(len(A)):
        for j in range(len(B[0])):
            for k in range(len(B)):
                C[i][j] += alpha * A[i][k] * B[k][j]
    return C
"""


def test_one_compile_serves_all_sizes() -> None:
    f, seen = program(GEMM), 0
    for n, m, k in ((3, 4, 5), (17, 2, 9), (1, 1, 1)):
        A, B, C = rows(n, k), rows(k, m, 1), rows(n, m, 2)
        want = copy.deepcopy(C)
        f.written(0.5, A, B, want)
        kept = [*C]
        (found, loops), compiled = served(f, 0.5, A, B, C), counters.compiles
        assert loops == 1 and found is C and all(a is b for a, b in zip(C, kept, strict=True))
        np.testing.assert_allclose(C, want, rtol=1e-12)
        assert {type(x) for row in C for x in row} == {float}
        assert n == 3 or compiled == seen
        seen = compiled


def test_arrays_and_lists_are_told_apart() -> None:
    f = program(GEMM)
    A, B, C = rows(4, 3), rows(3, 5, 1), rows(4, 5, 2)
    want = np.array(C) + 0.25 * (np.array(A) @ np.array(B))
    for lists in range(8):
        args = [x if lists >> k & 1 else np.array(x) for k, x in enumerate(copy.deepcopy([A, B, C]))]
        if 4 <= lists < 7:  # NumPy's numbers would go into a list
            with (
                dc.options(strict=True),
                pytest.raises(TypeError, match=r"C is a list, for which .*written.*: a list of float"),
            ):
                f(0.25, *args)
            continue
        found, loops = served(f, 0.25, *args)
        assert loops == 1 and found is args[2] and type(found) is (list if lists & 4 else np.ndarray)
        np.testing.assert_allclose(found, want, rtol=1e-12)


def test_numbers_have_pythons_types() -> None:
    f = program("""
def f(x: np.int64[N], y: np.float64[N]):
    total = 0
    for i in range(len(x)):
        total += x[i] // 2
        x[i] = x[i] * x[i] - 1
        y[i] = y[i] / 2
    return total, y[0], x[0]
""")
    x, y = [7, -3, 2], [1.0, 3.0, -0.0]
    (total, first, whole), loops = served(f, x, y)
    assert loops == 1 and (total, first, whole) == (2, 0.5, 48)
    assert [type(v) for v in (total, first, whole)] == [int, float, int]
    assert x == [48, 8, 3] and str(y) == "[0.5, 1.5, -0.0]" and type(x[0]) is int
    x = [7, 10**10, 2]  # whose square has more than 64 bits
    (total, _, _), loops = served(f, x, y)
    assert loops == 0 and x[1] == 10**20 - 1 and total == 3 + 5 * 10**9 + 1


def test_what_is_refused() -> None:
    f = program(GEMM)
    A, B, C = rows(3, 2), rows(2, 4), rows(3, 4)
    for wrong in ([[1.0, 2.0], [3.0]], [[1.0, 2], [3.0, 4.0]], [], [[]], [["a"]]):
        with (
            dc.options(strict=True),
            pytest.raises(
                TypeError, match=r"f\(\): the argument A is expected to be float64\[N, K\], not a list"
            ),
        ):
            f(1.0, wrong, B, C)
    with dc.options(strict=True), pytest.raises(TypeError, match=r"not int64 of shape \(2, 2\)"):
        f(1.0, [[1, 2], [3, 4]], B, C)
    with dc.options(strict=True), pytest.raises(TypeError, match=r"not float64 of shape \(2,\)"):
        f(1.0, [1.0, 2.0], B, C)
    with pytest.raises(ValueError, match=r"B is expected to be float64\[K, M\], of shape \(2, 4\)"):
        f(1.0, A, rows(3, 4), C)


def test_lists_that_are_one_run_as_written() -> None:
    f = program(GEMM)
    row = [1.0, 2.0]
    A, B, C = [row, row], rows(2, 2), [[0.0, 0.0]] * 2
    want = copy.deepcopy(C)
    f.written(1.0, A, B, want)
    _, loops = served(f, 1.0, A, B, C)
    assert loops == 0 and want == C and C[0] is C[1]


def test_what_does_not_compile_for_lists() -> None:
    f = program("def f(x: np.float64[N]):\n    for i in range(2):\n        x[1:] = x[:-1]\n    return x * 2")
    words = r"the argument x is a list, for which .*written.*:6: a list is"
    with dc.options(strict=True), pytest.raises(TypeError, match=words):
        f([1.0, 2.0, 3.0])
    assert f([1.0, 2.0, 3.0]) == [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]  # as Python does it
    y = np.array([1.0, 2.0, 3.0])
    found, loops = served(f, y)
    assert loops == 1 and list(y) == [1.0, 1.0, 1.0] and list(found) == [2.0, 2.0, 2.0]


def test_programs_of_lists_call_programs() -> None:
    inner = program("""
def f(row: np.float64[N], by: float):
    for j in range(len(row)):
        row[j] *= by
""")
    f = program("def f(A: np.float64[N, M]):\n    for row in A:\n        inner(row, row[0])", inner=inner)
    A = rows(3, 4)
    want = [[x * row[0] for x in row] for row in A]
    _, loops = served(f, A)
    assert loops == 1 and want == A


def test_random_programs() -> None:
    """Those of arrays whose statements are loops over elements, with lists."""
    compiled = 0
    for seed in range(300):
        text = random_program(seed)
        if re.search(r"\[[^]]*:[^]]*\]|range\(T\)|B\[i\]| @ |A \* v|sum", text):
            continue
        text = text.replace("n, m = A.shape", "n, m = len(A), len(A[0])").replace("A * 0.5, w", "w")
        f = program(text.replace(", j", "][j"))
        args = [rows(7, 9), rows(7, 9, 1), rows(1, 9, 2)[0], rows(1, 7, 3)[0]]
        want = copy.deepcopy(args)
        assert f.written(*want, 0.75, 2) is want[3]
        found, loops = served(f, *args, 0.75, 2)
        assert found is args[3]
        for a, b in zip(args, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)
        compiled += loops
    assert compiled >= 5
