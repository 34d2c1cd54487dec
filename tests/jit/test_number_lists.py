"""Lists of numbers, and lists of these, in loops of accelerated functions: what Python gives, to the type."""

import copy
import importlib.util
import random
import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc
from benchmarks.polybench_kernels import KERNELS
from dcarray.core import native
from dcarray.ir.nodes import Call
from dcarray.jit.loops.entry import lists
from dcarray.jit.loops.sites import list_conversion
from dcarray.jit.loops.sites.list_conversion import ListConversion
from dcarray.plans.slot import PlanState


def outcome(f: Any, *args: Any) -> tuple[Any, str]:
    """What a call gives, or the error that it raises."""
    try:
        return f(*args), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def alike(a: Any, b: Any, exact: bool) -> None:
    assert type(a) is type(b), (a, b)
    if isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            alike(x, y, exact)
    elif isinstance(a, float) and not exact:
        assert a == pytest.approx(b, rel=1e-9, abs=1e-9) or a != a
    else:
        assert a == b or (a != a and b != b), (a, b)


def places(lists: Any, seen: dict[int, int]) -> Any:
    """Which list is where: a number for each, in order of appearance."""
    return [seen.setdefault(id(x), len(seen)) for x in lists if type(x) is list], [
        places(x, seen) for x in lists if isinstance(x, list | tuple)
    ]


def held(x: Any) -> list[Any]:
    """Return references to all lists in lists."""
    return [x, *[held(one) for one in x if isinstance(one, list | tuple)]]


def both(text: str, *args: Any, exact: bool = True) -> int:
    """Compare a function with Python's, also in its arguments; returns how many loops were compiled."""
    theirs, mine = copy.deepcopy(args), copy.deepcopy(args)
    alive = held((theirs, mine))  # no other list gets their identity
    known: tuple[dict[int, int], dict[int, int]] = {}, {}
    places(theirs, known[0])
    places(mine, known[1])
    want = outcome(written(text), *theirs)
    before = dc.report().loops
    with dc.options(jit="eager", cache_dir=None):
        got = outcome(dc.accelerate(written(text)), *mine)
    alike((got, mine), (want, theirs), exact)
    assert places((got, mine), known[1]) == places((want, theirs), known[0])
    del alive
    return dc.report().loops - before


def rows(r: random.Random, n: int, m: int) -> list[list[float]]:
    return [[r.uniform(-2, 2) for _ in range(m)] for _ in range(n)]


# ---- random programs ----------------------------------------------------------------------------------
N, M = 6, 5
FLOATS = """
A[i][j] = B[i][j] * 0.5 + x[j]
A[i][j] += B[i][j] - A[i][j] * x[j]
x[j] += A[i][j]
s += A[i][j] * x[j]
A[i][j] = B[i][j - 1] + i
B[i][j] = A[i - 1][j] if A[i][j] > 0.0 else -A[i][j]
s -= x[-1]
x[j] = s
row = A[i]; row[j] = row[j] * 2.0 + B[i][j]
A[i][j] /= B[i][j] + 4.0
A[i][j] = x[k[j]]
A[i][j], x[j] = x[j], A[i][j]
x[k[i] % 5] = A[i][j]
B[i][j] = max(A[i][j], x[j])
A[i][j] = 1.0
A[i][j] = B[i][j] / x[j]
A[i][j] = math.sqrt(abs(x[j]))
A[i][j] = float(K[i][j])
A[i][j] **= 2
A[i][j] = x[j] - K[i][j]
if B[i][j] < x[j]: A[i][j] = 0.0
for t in range(j): A[i][j] += B[i][t] * x[t]
for b in B[i]: A[i][j] -= b
""".strip().splitlines()
INTS = """
K[i][j] = i * 3 - j
K[i][j] += k[j] * K[i][j - 1]
k[j] = K[i][j] // 3
K[i][j] = k[j] % 4
n += K[i][j]
K[i][j] = -k[j]
k[j] = min(i, j)
n = k[j] - n
K[i][j] = K[i][j] * K[i][j]
K[i][j] = k[i % 5] ^ k[j]
K[i][j] = len(k) - len(K[i])
K[i][j] = K[i][k[j]] + 1
if K[i][j] > k[j]: K[i][j] -= 1
""".strip().splitlines()
HEADS = [
    "for i in range(1, len(A)):\n    for j in range(len(A[0])):",
    "for i in range(len(A)):\n    for j in range(i - 1):",
    "for i, row in enumerate(A):\n    for j in range(len(row)):",
    "for j in range(len(x)):\n    for i in range(1, 5):",
    "for i, j in dc.map[0:5, 1:4]:\n    if True:",
]


def program(seed: int) -> str:
    r = random.Random(seed)
    lines = ["import math", "import dcarray as dc", "def f(A, B, x, K, k, s, n):"]
    for _ in range(r.randint(1, 2)):
        lines += ["    " + line for line in r.choice(HEADS).splitlines()]
        for _ in range(r.randint(1, 3)):
            lines += [
                "    " + line for line in ("        " + r.choice(r.choice([FLOATS, INTS]))).splitlines()
            ]
    return "\n".join([*lines, "    return s, n"])


@pytest.mark.parametrize("first", range(0, 50, 10))
def test_random_programs(first: int) -> None:
    loops = 0
    for seed in range(first, first + 10):
        r = random.Random(1000 + seed)
        whole = [[r.randint(-9, 9) for _ in range(M)] for _ in range(N)]
        arguments = rows(r, N, M), rows(r, N, M), rows(r, 1, M)[0], whole, [r.randint(0, 4) for _ in range(M)]
        loops += both(program(seed), *arguments, 0.5, 3, exact=False)
    assert loops >= 4


# ---- what is taken, and what is not -------------------------------------------------------------------
DOUBLED = """
def f(A):
    for i in range(len(A)):
        for j in range(len(A[i])):
            A[i][j] = A[i][j] * 2
"""
ROW = [1.5, 2.5]
DEEP = [[[0.5, 1.0], [1.5, 2.0], [2.5, -0.0]], [[3.0, 4.0], [5.0, float("inf")], [6.0, 7.0]]]


def test_what_is_taken() -> None:
    assert both(DOUBLED, [[1.0, 2.0, -0.0], [0.5, 1e300, 3.0]]) == 1
    assert both(DOUBLED, [[1, 2, 3], [-4, 5, 2**50]]) == 1
    text = "def f(A):\n    for i in range(2):\n        for j in range(3):\n            for k in range(2):\n"
    assert both(text + "                A[i][j][k] *= 0.5", DEEP) == 1
    assert both(DOUBLED, [[1.0, 2], [3.0, 4.0]]) == both(DOUBLED, [[2**50, 2], [-0.0, 4]]) == 1
    mixed = sys.version_info < (3, 14)  # then complex numbers times real ones are left to Python
    assert both(DOUBLED, [[1j, -2.0j], [complex(-0.0, 3.0), 4 + 1j]]) == mixed
    assert both(DOUBLED.replace("A[i][j] * 2", "not A[i][j]"), [[True, False], [True, True]]) == 1
    assert both("def f(x):\n    for a in range(len(x)):\n        x[a] += 1.0", [1.0, 2.0, 3.0]) == 1


PAIRS = [(1.0, 2.0), (0.5, -3.0), (1.0, 2.0)]


@pytest.mark.parametrize(
    ("body", "value", "compiled"),
    [
        ("s += x[i][0] * x[i][1]", PAIRS, 1),
        ("a, b = x[i]\ns += a - b", PAIRS, 1),
        ("a, b = x[int(s) % 3]\ns += b", [(1, 2), (4, 7), (5, 1)], 1),
        ("s += x[i][0]\nt = x[i]", PAIRS, 1),
        ("s += x[i][0] + x[i][2]", [(1, 2.5, 3), (4.0, 2, 1), (0, 0, 7.0)], 1),
        ("for v in x[i]: s += v", PAIRS, 1),
        ("s += len(x[i])", PAIRS, 1),
        ("x[i] = (s, 1.0)\ns += 1", PAIRS, 0),
        ("x[i][0] = 1.0", PAIRS, 0),
        ("s += x[i][0]", [(1.0, 2.0), (1.0,), (2.0, 3.0)], 0),
        ("s += x[i][0]", [(1.0, 2.0), [1.0, 2.0], (2.0, 3.0)], 0),
        ("s += x[i][0]", [(1.0, "a"), (1.0, "b"), (2.0, "c")], 0),
    ],
)
def test_lists_of_tuples(body: str, value: list[Any], compiled: int) -> None:
    lines = [f"        {line}\n" for line in body.splitlines()]
    text = f"def f(x):\n    s = 0\n    t = None\n    for i in range(3):\n{''.join(lines)}    return s, t"
    assert both(text, value) == compiled


@pytest.mark.parametrize(
    ("body", "compiled"),
    [
        ("for (a, b), (c, d) in zip(x, x[1:]): s += a * d - b * c", 1),
        ("for k in range(3):\n for v in l[1:]: s += v * k\n for v in l[:-1]: s -= v", 1),
        ("m = l[:]\nfor k in range(1, len(l)):\n m[k] += m[k - 1]\n l[k] *= 2\nreturn m, l", 1),
        ("for k in range(1, 4):\n m = l[2:20]\n m[0] = k * 1.0\n l[k] += m[0] + m[1]\nreturn m", 1),
        ("for row in A[1:]:\n for v in row[::2]: s += v\nB = A[1:]\nfor k in range(2): B[k][0] = 7.0", 2),
        ("for k in range(len(l)):\n r = l[::-1]\n s += r[k] * k", 1),
        ("m = [[0.0] * 3] * 2\nfor k in range(2):\n B = A[1:]\n m[k] = B[k]\nreturn m[0] is A[1]", 0),
        ("for k in range(len(l)):\n for v in l[:k]: s += v", None),
        ("for k in range(5):\n m = l[2:]\n m[1] = 1\n s += sum(m)\nreturn s, m", None),
    ],
)
def test_parts_of_lists(body: str, compiled: int | None) -> None:
    lines = "".join([f"    {line}\n" for line in body.splitlines()])
    text = f"def f(x, l, A):\n    s = 0.0\n{lines}    return s, A"
    rows = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]
    found = both(text, PAIRS, [k * 0.5 for k in range(30)], rows)
    assert compiled is None or found == compiled


@pytest.mark.parametrize(
    "value",
    [
        [[1.0, 2.0], [3.0]], [[1.0], []],  # of several lengths
        [ROW, ROW], [ROW, [0.0, 1.0], ROW],  # one row twice
    ],
)  # fmt: skip
def test_rows_of_several_lengths_and_one_row_twice(value: Any) -> None:
    assert both(DOUBLED, value) == 1


@pytest.mark.parametrize(
    "value",
    [
        [[1, 2], [3, True]], [[3, 1], [0.5, True]], [[1j, 2.0], [0.0, 1.0]], [[2**53 + 1, 0.5], [1, 1]],
        [[np.float64(1.0), 2.0], [3.0, 4.0]],  # of several types
        [[], []],
        [[1, 2**70], [3, 4]], [[2**62, 2**53], [1, 1]],  # large
        [ROW, (3.0, 4.0)], [[1.0, 2.0], "ab"], [[[1.0], [2.0]], [3.0, 4.0]],
    ],
)  # fmt: skip
def test_what_is_pythons(value: Any) -> None:
    assert both(DOUBLED, value) == 0


def test_lists_that_are_one_are_pythons() -> None:
    text = "def f(A, B):\n    for i in range(2):\n        for j in range(2):\n            A[i][j] = B[j][i]"
    A = [[1.0, 2.0], [3.0, 4.0]]
    assert both(text, A, A) == 0 == both(text, A, [A[0], [5.0, 6.0]])  # deepcopy keeps what is one
    assert both(text, A, copy.deepcopy(A)) == 1


STATEMENTS = """
A[0] = [0.0, i]
A[i] = A[0]
s = A[i][:1] + A[0]
A[0][0] = 1j
A[0][0] = True
A[0][0] = np.float64(2)
A[1] += [2.0]
s = A[0] * 2
s = sorted(A[i])
s = A == []
s = 1.5 in A[i]
A[0, 0] = 1.0
s = A[i][2 * i]
s = np.median(A)
A[i][0] = 'a'
s = A[1.0]
del A[0]
s = A[i][0] if sorted(A) else 0
s = A[i], i
s = [A[0], i]
s = A[i] is A[0]
s = A[i] < A[0]
""".strip().splitlines()


@pytest.mark.parametrize("statement", STATEMENTS)
def test_what_makes_or_needs_a_list_is_pythons(statement: str) -> None:
    text = f"""
import numpy as np
def f(A):
    s = None
    for i in range(2):
        {statement}
    return s
"""
    assert both(text, [[1.0, 2.0], [3.0, 4.0]]) == 0


def test_errors_are_pythons() -> None:
    divided = (
        "def f(A):\n    for i in range(3):\n        for j in range(2):\n            A[i][j] = 1.0 / A[i][j]"
    )
    assert both(divided, [[1.0, 2.0], [3.0, 0.0], [1.0, 2.0]]) == 0
    both(divided, [[1.0, 2.0], [3.0, 4.0]])
    found = "def f(A, k):\n    for i in range(2):\n        A[k[i]][0] = 2.0"
    for k in ([0, 1], [1, -1], [0, 2], [-3, 0]):
        both(found, [[1.0], [2.0]], k)
    whole = "def f(k):\n    for i in range(2):\n        k[i] = k[i] // k[1]"
    both(whole, [4, 0])
    both(whole, [-7, 2])
    large = "def f(k):\n    for i in range(3):\n        k[i] = k[i] * k[i]"
    assert both(large, [10**9, 2, 3]) == 1 and both(large, [10**10, 2, 3]) == 0


def test_names_after_a_loop() -> None:
    text = """
def f(A, x):
    for i in range(3):
        row = A[i]
        last = row[0]
        x[i] = last
    row[0] = 9.0
    B = A
    return row, last, B, i
"""
    A = [[1.0], [2.0], [3.0]]
    both(text, A, [0.0, 0.0, 0.0])
    text = "def f(A):\n    for i in range(3):\n        A[i][0] = 1.0\n        B = A\n    return B"
    assert both(text, A) == 1


def test_globals_and_called_functions() -> None:
    text = """
T = [[0.5, 1.0], [2.0, 4.0]]
def scaled(row, by):
    for j in range(len(row)):
        row[j] *= by
    return row[0]
def f(A):
    total = 0.0
    for i in range(len(A)):
        total += scaled(A[i], T[i][1])
    return total, T
"""
    assert both(text, [[1.0, 2.0], [3.0, 4.0]]) == 1


def test_lists_made_in_the_function() -> None:
    text = """
def f(n):
    A = [[1.0] * n for _ in range(n)]
    B = [[0.0] * n] * n
    for i in range(n):
        for j in range(n):
            A[i][j] += i * j
    for i in range(n):
        for j in range(n):
            B[i][j] += i * j
    return A, B
"""
    assert both(text, 4) == 2  # also where the rows of B are one


@pytest.mark.parametrize("built", [True, False])
def test_both_ways_to_convert(built: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if built and not native.BUILT:
        pytest.skip("the C module is not built")
    monkeypatch.setattr(native, "BUILT", built)
    spec = importlib.util.spec_from_file_location("another_copy", lists.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (found,) = module.list_elements(([[1, 2], [3, -4]],))
    assert found.array.dtype == np.int64 and found.array.tolist() == found.given == [[1, 2], [3, -4]]
    found.keep()
    found.array[...] *= 3
    row = found.given[1]
    found.write_back()
    assert found.given == [[3, 6], [9, -12]] and found.given[1] is row and type(row[0]) is int
    (mixed,) = module.list_elements(([[1, 2.0], [-0.0, 2**53]],))
    assert mixed.mixed and mixed.array.tolist() == [[1, 2 + 1j], [1j, 2.0**53]]
    mixed.keep()
    mixed.array[1] = 7, 0.5 + 1j
    mixed.given[0][0] = 5  # by another thread
    mixed.write_back()
    assert repr(mixed.given) == "[[5, 2.0], [7, 0.5]]"
    assert repr(module.mixed_numbers(mixed.array)) == "[[1, 2.0], [7, 0.5]]"
    for plain in ([True, False], [1j, complex(-0.0, 2.0)], [1, -2], [0.5]):
        (kept,) = module.list_elements((plain,))
        kept.write_back()
        assert repr(kept.given) == repr(plain) and kept.mix() == (type(plain[0]) in (int, float))
        kept.write_back()
        assert repr(kept.given) == repr(plain)
    (large,) = module.list_elements(([2**60, 1],))
    assert not large.mix() and not large.mixed
    (vector,) = module.list_elements(([0.5, -0.0],))
    vector.keep()
    vector.array[0] = np.nan
    vector.write_back()
    assert str(vector.given) == "[nan, -0.0]"
    for refused in ([1, 2.0, 2**54], [1.0, True], [True, 1], [1j, 1.0], [2**63], [], [[]], [None]):
        assert module.list_elements((refused,)) == (refused,)


@pytest.mark.parametrize("name", ["gemm", "correlation", "covariance", "syrk"])
def test_lists_and_arrays_have_one_plan(name: str) -> None:
    """The same library calls; lists need no copies in case a run fails."""
    kernel = next(one for one in KERNELS if one.name == name)
    made = []
    for as_list in (False, True):
        given = [a.tolist() if as_list and isinstance(a, np.ndarray) else a for a in kernel.arguments(0.1)]
        regions = [one.final for one in dc.explain(dc.accelerate(kernel.loops), *given).regions]
        made.append([stmt.op for region in regions for stmt in region.body if isinstance(stmt, Call)])
        kept = [a.name for region in regions for a in region.arrays if a.name.startswith("kept_")]
        assert not (as_list and kept)
    assert made[0] == made[1] == ["blas.matmul"]


def test_the_report_names_the_list() -> None:
    text = "def f(A, B):\n    for i in range(2):\n        B[i] = A[i][0]\n    return B"
    dc.report(reset=True)
    both(text, [[1.0], [2.0]], ["a", 3])
    assert any("B is a list of other" in line.function for line in dc.report().fallbacks)


@pytest.fixture
def each(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that a conversion takes by the clock, which stands still otherwise."""
    seconds, now = [0.0], [0.0]

    def clock() -> float:
        now[0] += seconds[0]
        return now[0]

    monkeypatch.setattr(list_conversion, "unpatched", SimpleNamespace(perf_counter=clock))
    return seconds


def test_conversions_that_last_longer_than_loops(each: list[float]) -> None:
    found = ListConversion()
    each[0] = 5e-3
    for _ in range(40):
        found.elements(([0.5] * 10,))

    def entries(seconds: float, *states: PlanState) -> list[Any]:
        return [SimpleNamespace(state=state, gain=SimpleNamespace(recent=seconds)) for state in states]

    waiting, refused = PlanState.ASKED, PlanState.REFUSED
    assert found.are_a_loss(entries(1e-6, waiting, refused)) and not found.are_a_loss(entries(10.0, waiting))
    twice = 2 * found._seconds / 40
    assert not found.are_a_loss(entries(twice, refused, waiting))
    assert found.are_a_loss(entries(twice, refused))


def test_python_has_its_turn_where_large_lists_are_converted(each: list[float]) -> None:
    """A plan that was faster for a long loop is not for a short one over the same list."""
    found = ListConversion()
    each[0] = 1e-6
    found.elements(([0.5] * 10,))
    assert not any(found.is_pythons_turn() for _ in range(100))
    each[0], turns = 20e-3, []
    for run in range(32):
        found.elements(([0.5] * 10,))
        turns += [run] * found.is_pythons_turn()
    assert turns == [3, 11, 27]
    found.ran(1000.0)
    assert found._last[-1] > 1000.0


@pytest.mark.hot
def test_in_the_background() -> None:
    f = dc.accelerate(written(DOUBLED.replace("* 2", "* 0.5 + 0.5")))
    A = [[float(i + j) for j in range(400)] for i in range(600)]
    want, before = copy.deepcopy(A), dc.report().loops
    end = time.monotonic() + 60.0  # the planning process may be starved
    while dc.report().loops == before and time.monotonic() < end:
        f(A)
        want = [[x * 0.5 + 0.5 for x in row] for row in want]
        assert want == A
    assert dc.report().loops > before
