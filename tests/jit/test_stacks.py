"""Lists that grow and shrink at their end in compiled loops, mixed and ragged lists: what Python gives."""

import random
from typing import Any

import numpy as np
import pytest
from outcomes import outcome
from written import written

import dcarray as dc
from dcarray.jit.loops.tracing import stacks


def compiled(text: str, *args: Any) -> int:
    """Compare a function with Python's, to the bits and types; returns how many loops were compiled."""
    before = dc.report().loops
    with dc.options(jit="eager", cache_dir=None):
        got = outcome(dc.accelerate(written(text)), args)
    assert got == outcome(written(text), args)
    return dc.report().loops - before


X = [1.5, -2.5, 0.5, 3.0, 9.5, -0.0, 10.0]
DIVIDED = """
def f(n):
    total = 0
    for i in range(n):
        stack = [i]
        while stack:
            k = stack.pop()
            total += k
            if k > 1:
                stack.append(k // 2)
                stack.append(k // 3)
    return total
"""
PRIMES = """
def f(n):
    primes = [2]
    k = 3
    while len(primes) < n:
        for p in primes:
            if p * p > k:
                primes.append(k)
                break
            if k % p == 0:
                break
        k += 2
    return primes
"""
HULL = """
def height(x, m):
    l = []
    for j in range(m):
        while len(l) > 1 and l[-1] > x[j]:
            l.pop()
        l.append(x[j])
    return l[-1] * len(l)
def f(x, n):
    s = 0.0
    for i in range(1, n):
        s += height(x, i)
    return s
"""
WHILE = """
def f(x, l):
    k = 0
    while k < len(x):
        l.append(x[k])
        l[-1] += 1
        k += 1
    return l
"""


def test_programs() -> None:
    assert compiled(DIVIDED, 30) == 1
    assert compiled(PRIMES, 20) == 1
    assert compiled(HULL, X, 7) == 1


@pytest.mark.parametrize("begins", [[], [1], [0.5], [1, 0.5], [True], ["a"], [[1.0]]])
def test_lists_from_before_a_loop(begins: list[Any]) -> None:
    assert compiled(WHILE, X, begins) == (type((begins or [0])[0]) in (int, float))
    compiled(WHILE, [True, False], begins)
    compiled(WHILE, [1, 2], begins)


# The bodies of functions of a list of floats, an int and a list, and whether their loop is compiled.
BODIES = [
    ("for i in range(n):\n  l.append(l[-1] + 1.5 if l else 0)", [], True),
    ("for i in range(n):\n  for j in range(i):\n    l.append(i * j if i > 2 else x[j])", [], True),
    ("while l:\n  k = l.pop()\n  n += k\n  if k > 1: l.append(k // 2)\nreturn n", [5, 6, 7], True),
    ("for v in l:\n  n += v\n  if v < 50: l.append(v * 2)\nreturn n", [5, 6, 7], True),
    ("for v in l:\n  l.pop()\n  n += v\nreturn n", [5, 6, 7, 4], True),
    ("for i in range(n): n += l.pop()\nreturn n", [5, 6], False),  # it raises an error
    ("for i in range(n):\n  l.append(i)\n  n += l[-3]\nreturn n", [5, 6], True),
    ("for i in range(n):\n  l.append(i)\n  n += l[-4]\nreturn n", [5, 6], False),
    ("for i in range(n):\n  l.append(i)\n  l[5] = i", [5, 6], False),
    ("for i in range(n):\n  l.append(i)\n  l[i] = i * 0.5", [5, 6], True),
    ("m = l\nfor i in range(n):\n  l.append(i)\n  n += len(m)\nreturn n", [5, 6], False),
    ("m = [l, [1, 2]]\nfor i in range(n):\n  l.append(i)\n  n += m[0][i]\nreturn n", [5, 6], False),
    ("for i in range(n):\n  l.append((i, i))\n  n += len(l)\nreturn n", [], False),
    ("for i in range(n):\n  l.append(i)\n  n += len(l)\n  l.sort()\nreturn n", [], False),
    ("for i in range(n):\n  l.append(i)\n  if len(l) == 3: l = []\nreturn l", [], False),
    ("for i in range(n):\n  if not l or l[-1] < 4 or x[0] > 9: l.append(i * 3)\nreturn len(l)", [], True),
    ("s = l\nfor i in range(n):\n  l.append(i)\n  s.append(-i)\nreturn l, s", [], False),
    ("for i in range(n):\n  l.append(2 ** 62 + i)\n  n += l.pop() % 7\nreturn n", [], False),
    (
        "for i in range(n):\n  m = []\n  for j in range(i): m.append(j)\n  l.append(len(m))\nreturn m",
        [],
        True,
    ),
    ("for i in range(n):\n  m = [i] * 2\n  m.append(x[i])\n  l.append(m[0] + m[2])\n  len(l)", [], True),
]


@pytest.mark.parametrize(("body", "begins", "fine"), BODIES)
def test_bodies(body: str, begins: list[Any], fine: bool) -> None:
    text = "\n".join(["def f(x, n, l):", *(f"    {line}" for line in body.split("\n")), "    return l"])
    assert (compiled(text, X, 6, begins) > 0) == fine, dc.report().fallbacks


def test_a_full_list_is_pythons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "ROOM", 16)
    text = "def f(n, l):\n    while len(l) < n:\n        l.append(len(l))\n    return l"
    assert compiled(text, 18, [3, 4]) == 1
    assert compiled(text, 19, [3, 4]) == 0


def test_ranges_with_a_step_that_is_known_at_run_time() -> None:
    text = """
def f(n, k):
    s = 0
    for i in range(n):
        for d in range(1, 90, i + 1): s += d
        for d in range(i, 90, k[i]): s -= d
    return s
"""
    assert compiled(text, 6, [1, 2, 3, 4, 5, 100]) == 1
    assert compiled(text, 6, [1, 2, 3, -1, 0, 1]) == 0
    compiled(text, 6, [1, 2, 3, -1, 4, 1])


def test_a_variable_that_is_called_stack() -> None:
    text = "def f(n, stack):\n    for i in range(n):\n        stack.append(i)\n    return stack"
    assert compiled(text, 5, [])


# ---- lists of lists of several lengths ------------------------------------------------------------------
SUMS = """
def f(A):
    s = 0.0
    for row in A:
        for v in row:
            s += v
        if len(row) > 1:
            row[-1] += s
            row[0], row[1] = row[1], row[0]
    return s
"""
ROW, OTHER = [1.5, 2.5], [0.5]


@pytest.mark.parametrize("given", [
    [[1.0, 2.0], [3.0], [4.0, 5.0, 6.0]], [[], [1.0, 2.0], []], [[1, 2], [3], []], [[1, 2.5], [3]],
    [ROW, ROW], [ROW, OTHER, ROW, [7.5]],
])  # fmt: skip
def test_ragged_lists(given: list[Any]) -> None:
    assert compiled(SUMS, given) == 1


@pytest.mark.parametrize(
    "given",
    [[[], []], [[1.0], [True, 2.0]], [[1.0], "a"], [[1.0], [[2.0], 3.0]], [[2**70], [1, 2]], [[1.0], None]],
)
def test_other_lists_of_lists_are_pythons(given: list[Any]) -> None:
    assert (
        compiled("def f(A):\n    for i in range(2):\n        A[i][0] = A[i][0] * 2\n    return A", given) == 0
    )


def test_ragged_lists_that_share_a_list() -> None:
    text = "def f(A, B):\n    for i in range(2):\n        B[i][0] = A[i][0] * 2.0\n    return A"
    assert compiled(text, [ROW, OTHER], [[1.0, 2.0], [2.0]]) == 1
    assert compiled(text, [ROW, OTHER], [OTHER, [2.0, 3.0]]) == 0
    assert compiled(text, [ROW, OTHER], [OTHER, OTHER]) == 0
    assert compiled(text, [ROW, [1.0]], [[2.0], [1.0, 2.0], ROW]) == 0


def test_searches_in_graphs() -> None:
    text = """
def f(edges, start):
    seen = [False] * len(edges)
    for first in range(start, len(edges)):
        stack = [first]
        while stack:
            k = stack.pop()
            if not seen[k]:
                seen[k] = True
                for other in edges[k]:
                    if not seen[other]:
                        stack.append(other)
    row = edges[start]
    return seen, row, edges
"""
    edges = [[1, 3], [0], [], [0, 4], [3, 5, 1], [4]]
    assert compiled(text, edges, 0) == 1


def test_indices_of_ragged_lists() -> None:
    text = "def f(A, k):\n    s = 0.0\n    for i in range(3):\n        s += A[i][k[i]]\n    return s"
    given = [[1.0, 2.0], [3.0], [4.0, 5.0, 6.0]]
    for k in ([1, 0, 2], [-1, -1, -3], [0, 0, 0]):
        assert compiled(text, given, k) == 1
    for k in ([2, 0, 0], [0, 1, 0], [0, -2, 0], [0, 0, -4]):
        assert compiled(text, given, k) == 0
    assert compiled(text, given[:2], [0, 0, 0]) == 0


# ---- random programs ----------------------------------------------------------------------------------
MIXED = """
M[i][j] = M[i][j - 1] * 2
M[i][j] = x[j]
M[i][j] = i - 3
M[i][j] = -M[i][j]
M[i][j] += M[i - 1][j]
M[i][j] = M[i][j] - x[j]
s += M[i][j]
M[i][j] = M[i][j] // 3
M[i][j] %= 4
M[i][j] = M[i][j] / 2
M[i][j] = M[i][j] * M[i - 1][j]
M[i][j] = abs(M[i][j])
M[i][j] = max(M[i][j], k[j])
M[i][j] = min(0, x[j])
M[i][j] = M[i - 1][j] if M[i][j] < 1 else s
M[i][j], M[i][j - 1] = M[i][j - 1], M[i][j]
x[j] = M[i][j] * 0.5
x[j] = float(M[i][j])
k[j] = int(M[i][j])
if M[i][j] > 1: M[i][j] = 0
if M[i][j]: s = M[i][j]
if x[j] > 0: s += x[j]
s = 0
t = M[i][j]; M[i][j] = 1; s += t
l.append(M[i][j])
l.append(i)
l.append(x[j])
if l: s += l.pop()
if len(l) > 2: M[i][j] = l[-1] + l[1]
while l and l[-1] > i: l.pop()
for v in l: s += v
if l: l[j % len(l)] += 1
R[i][0] = M[i][j]
R[i][j % len(R[i])] += x[j]
s += R[i][-1]
for v in R[i]: s -= v
row = R[i]; row[0] = len(row)
M[i][j] = R[k[j] % len(R)][0]
""".strip().splitlines()


def program(seed: int) -> str:
    r = random.Random(seed)
    lines = ["def f(M, x, k, l, R, s):", "    for i in range(len(M)):", "        for j in range(1, len(x)):"]
    for _ in range(r.randint(1, 5)):
        lines += [" " * 12 + r.choice(MIXED)]
    return "\n".join([*lines, "    return s"])


def arguments(seed: int) -> list[Any]:
    r = random.Random(seed)

    def number() -> Any:
        return r.choice([r.randint(-4, 4), float(r.randint(-3, 3)), r.uniform(-2, 2), 0, -0.0])

    rows = [[number() for _ in range(4)] for _ in range(5)]
    if r.random() < 0.3:
        rows = [[int(x) for x in row] for row in rows]
    return [
        rows,
        [r.uniform(-2, 2) for _ in range(4)],
        [r.randint(-3, 3) for _ in range(4)],
        [number() for _ in range(r.randint(0, 3))],
        [[number() for _ in range(r.randint(1, 3))] for _ in rows[1:]] + [[1, 0.5]],
        number(),
    ]


def test_random_programs() -> None:
    loops = sum(compiled(program(seed), *arguments(seed)) > 0 for seed in range(60))
    assert loops >= 40


# ---- tuples, reductions and slices --------------------------------------------------------------------
TUPLES = [
    "a = (0.0, x[0], 0)\nfor i in range(n): a = (a[0] + x[i], max(a[1], x[i]), i)\nreturn a",
    "a = b = (0.0, 1.0)\nfor i in range(n):\n  if x[i] > 1: a, b = b, (x[i], b[1] + 1)\nreturn a, b",
    "a, i = (0, 1), 0\nwhile i < n and a[0] < 20:\n  a = a[1], a[0] + a[1]\n  i += 1\nreturn a, i",
    "a = (0.0,)\nfor i in range(n):\n  for j in range(i): a = (a[0] + x[j],)\nreturn a",
    "s = 0.0\nfor i in range(n): s += functools.reduce(h, x, s)\nreturn s",
    "s = 0\nfor i in range(n): s += functools.reduce(h, range(i + 1))\nreturn s",
    "s = 0.0\nfor i in range(n):\n  t = (h, max)\n  s += t[0](x[i], s) + t[1](x[i], 2.5)\nreturn s",
    "s = 0.0\nfor i in range(n):\n  k = slice(i, i + 2)\n  s += y[k].sum()\nreturn s",
]


@pytest.mark.parametrize("body", TUPLES)
def test_values_of_several_parts(body: str) -> None:
    lines = ["import functools", "import numpy as np", "def h(a, b):", "    return a * 2 - b"]
    lines += ["def f(x, y, n):", *(f"    {line}" for line in body.split("\n"))]
    text = "\n".join(lines)
    assert compiled(text, X * 4, np.arange(40.0), 25) == 1
    compiled(text, X * 4, np.arange(40.0), 0)


@pytest.mark.parametrize("body", [
    "a = (0, 1)\nfor i in range(n): a = (a[0], 1, 2) if i == 9 else (i, a[1])\nreturn a",
    "s = 0.0\nfor i in range(n): s += functools.reduce(max, x[i:])\nreturn s",
    "a = (0.0, 'b')\nfor i in range(n): a = (x[i], 'c')\nreturn a",
])  # fmt: skip
def test_other_values_of_several_parts(body: str) -> None:
    text = "\n".join(["import functools", "def f(x, n):", *(f"    {line}" for line in body.split("\n"))])
    compiled(text, X * 4, 20)


def test_a_list_that_is_empty_in_the_first_run() -> None:
    f = written("""
        def f(found):
            for k in range(30):
                for j in range(3):
                    found.append(j)
            return len(found)
    """)
    g = dc.accelerate(f)
    want: list[int] = []
    got: list[int] = []
    with dc.options(jit="eager"):
        for _ in range(4):
            assert f(want) == g(got)
            assert want == got
