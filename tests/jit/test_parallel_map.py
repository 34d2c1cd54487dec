"""``dc.map``: loops over several ranges, in Python, in programs, in accelerated functions and libraries."""

import copy
import doctest
import inspect
import pickle
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from program_runs import loaded, module, served_sizes
from symbolic_sources import random_program
from written import written

import dcarray as dc
from dcarray.core.errors import ProgramError
from dcarray.ir.nodes import Compute, Loop
from dcarray.jit.program.compile_command import compile_library
from dcarray.jit.program.region import region_of
from dcarray.lowering.targets import get

IMPORT = "import dcarray as dc\n"
SIZES: list[Any] = [
    {"N": n, "M": m, "K": n + 1, "T": t}
    for n, m, t in ((0, 0, 0), (1, 1, 1), (0, 4, 2), (5, 1, 2), (2, 3, -1), (7, 9, 2), (33, 40, 2))
]  # fmt: skip
LARGE = [s for s in SIZES if min(s["N"], s["M"]) >= 7]


# ---- in Python ----------------------------------------------------------------------------------------
def test_it_is_a_nest_of_ranges() -> None:
    nest = [(i, j, k) for i in range(1, 4) for j in range(5, 0, -2) for k in range(2)]
    space = dc.map[1:4, 5:0:-2, : np.int64(2)]
    assert list(space) == nest == list(space) and len(space) == len(nest) == 18
    assert list(dc.map[0:3]) == [0, 1, 2] and type(next(iter(dc.map[0:3]))) is int
    assert list(dc.map[0:3, 2:2]) == [] == list(dc.map[3:0])
    assert repr(space) == "dcarray.map[1:4, 5:0:-2, 0:2]" and pickle.loads(pickle.dumps(dc.map)) is dc.map
    assert "map" not in dc.__all__ and "map" in dir(dc)  # `from dcarray import *` leaves Python's


def test_its_examples_run() -> None:
    example = doctest.DocTestParser().get_doctest(inspect.getdoc(dc.map) or "", {}, "map", None, 0)
    assert example.examples and doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.parametrize("key, error, text", [
    ((), ValueError, "there is none"),
    (3, TypeError, "not 3"),
    ((slice(0, 3), 2), TypeError, "not 2"),
    (slice(1, None), TypeError, "has no stop"),
    (slice(0, 2.0), TypeError, "integers as bounds, not 0:2.0:1"),
    (slice(0, dc.symbol("N")), TypeError, "integers as bounds, not 0:N:1"),
    (slice(0, 4, 0), ValueError, "no step of 0"),
])  # fmt: skip
def test_bad_ranges(key: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        dc.map[key]


# ---- in programs ----------------------------------------------------------------------------------------
PROGRAMS = """
def transposed(A: np.float64[M, N], B: np.float64[N, M]):
    for i, j in dc.map[0 : len(B), 0 : len(A)]:
        B[i, j] = A[j, i]

def summed(C: np.int64[M, N]):
    alpha = np.int64(0)
    for i, j in dc.map[0 : C.shape[0], 0 : C.shape[1]]:
        alpha += C[i, j]
    return alpha

def counted(C: np.int64[N, M], count: np.int64[M]):
    for i, j in dc.map[0 : C.shape[0], 0 : C.shape[1]]:
        count[j] += C[i, j]

def counted_rows(C: np.int64[N, M], count: np.int64[N]):
    for i, j in dc.map[0 : C.shape[0], 0 : C.shape[1]]:
        count[i] += C[i, j]

def recurrence(A: np.float64[N, M]):
    for i, j in dc.map[1 : A.shape[0], 0 : A.shape[1]]:
        A[i, j] = A[i - 1, j] * 0.5 + A[i, j]

def product(A: np.float64[N, K], B: np.float64[K, M], C: np.float64[N, M]):
    for i, j, k in dc.map[0 : C.shape[0], 0 : C.shape[1], 0 : len(B)]:
        C[i, j] += A[i, k] * B[k, j]

def one_axis(x: np.float64[N], T: int):
    for i in dc.map[0:T]:
        if i < len(x):
            x[i] += i

def changed_names(A: np.float64[N, M], w: np.float64[N]):
    for i, j in dc.map[0 : A.shape[0], 0 : A.shape[1]]:
        w[i] += A[i, j]
        i = 0
        w[i] += 1.0

def one_name(A: np.float64[N, M]):
    for place in dc.map[0 : A.shape[0], 0 : A.shape[1]]:
        A[place] += place[0] - place[1]

def skipped(A: np.float64[N, M]):
    for i, j in dc.map[0 : A.shape[0], 0 : A.shape[1]]:
        if A[i, j] > 1.0:
            continue
        A[i, j] = 7.0

def afterwards(A: np.float64[N, M]):
    for i, j in dc.map[0 : A.shape[0], 0 : A.shape[1]]:
        A[i, j] += 1.0
    A[0, 0] = i * 100 + j

def ranges_are_made_once(A: np.float64[N, M]):
    n = len(A)
    for i, j in dc.map[0:n, 0:n]:
        if j < A.shape[1]:
            A[i, j] += 1.0
        n = 1
"""


@pytest.mark.parametrize("name", re.findall(r"def (\w+)", PROGRAMS))
def test_programs(name: str, tmp_path: Path) -> None:
    function = getattr(module(tmp_path, IMPORT + PROGRAMS, "maps"), name)
    served = served_sizes(function, SIZES)
    assert all(sizes in served for sizes in LARGE)


def test_what_is_parallel_and_what_is_not(tmp_path: Path) -> None:
    maps = module(tmp_path, IMPORT + PROGRAMS, "maps")

    def passed(name: str) -> Any:
        return get("cpu").pipeline(2).run(region_of(getattr(maps, name)).region)

    (moved,) = passed("transposed").body
    assert isinstance(moved, Compute) and len(moved.target.shape) == 2  # `B.T`, one statement
    (rows,) = passed("counted_rows").body
    assert isinstance(rows, Loop) and rows.parallel  # each has one writer
    (columns,) = passed("counted").body
    assert isinstance(columns, Loop) and not columns.parallel  # writers of one element have their turns,
    assert isinstance(columns.body[0], Compute) and len(columns.body[0].target.shape) == 1  # columns have not
    (steps,) = passed("recurrence").body
    assert isinstance(steps, Loop) and not steps.parallel


@pytest.mark.parametrize("head, body, reason", [
    ("i, j in dc.map[0:N]", "A[i] = 0.0", "several targets"),
    ("i in dc.map[0:N]", "if A[i] > 2.0:\n            break", "a break out of a loop over the places"),
    ("i in dc.map[0:]", "A[i] = 0.0", "start:stop"),
    ("i in dc.map[1]", "A[i] = 0.0", "start:stop"),
    ("i in dc.map[0:2.5]", "A[i] = 0.0", "integers as bounds"),
    ("i in dc.map[0:N:0]", "A[i] = 0.0", "a range of step 0"),
    ("i in dc.map[0:N + 1]", "A[i] = 0.0", "bounds"),
])  # fmt: skip
def test_what_does_not_compile(head: str, body: str, reason: str, tmp_path: Path) -> None:
    text = f"{IMPORT}def f(A: np.float64[N]):\n    for {head}:\n        {body}\n"
    with pytest.raises(ProgramError, match=reason) as caught:
        region_of(module(tmp_path, text).f)
    assert caught.value.line in (8, 9, 10)


def _with_maps(text: str) -> str:
    """A program in which pairs of ``for`` are one loop over a map."""

    def joined(found: re.Match[str]) -> str:
        low, high, left, right, body = found.groups()
        head = f"    for i, j in dc.map[{low}:{high}, {left}:{right}]:\n"
        return head + "".join(line[4:] for line in body.splitlines(True))

    pair = r"    for i in range\((.*), (.*)\):\n {8}for j in range\((.*), (.*)\):\n((?: {12}.*\n)+)"
    return re.sub(pair, joined, text)


@pytest.mark.parametrize("seed", [s for s in range(30) if "for j" in random_program(s)][:8])
def test_random_programs(seed: int, tmp_path: Path) -> None:
    text = _with_maps(random_program(seed))
    assert "dc.map[" in text
    served = served_sizes(module(tmp_path, IMPORT + text, f"random_{seed}").f, SIZES, seed)
    assert all(sizes in served for sizes in LARGE), text


# ---- in accelerated functions ---------------------------------------------------------------------------
def _random_function(r: random.Random) -> str:
    """A function of integer arrays whose loops share what they write in some way."""
    lines = ["total, last = np.int64(3), 0"]
    for _ in range(r.randint(1, 3)):
        n, m, step = r.randint(0, 6), r.randint(0, 6), r.choice(["", ":2", ":3"])
        rows, columns = f"0:{n}{step}", r.choice([f"{r.randint(0, 3)}:{m}", f"{m}:0:-1"])
        lines.append(f"for i, j in dc.map[{rows}, {columns}]:")
        lines += [
            "    " + r.choice([
                "A[i, j] = B[j, i] + i", "A[i, j] += B[i, j]", "x[i] += A[i, j]", "x[j] -= A[j, i] * B[i, j]",
                "total += A[i, j]", "A[j, i] = A[i, j]", "x[i + j] = i - j", "A[i, j] = x[A[i, j] % 13]",
                "if A[i, j] > B[i, j]:\n            A[i, j] -= 1", "last = i * 10 + j",
                "for k in range(i):\n            A[i, j] += B[k, j]",
            ])
            for _ in range(r.randint(1, 3))
        ]  # fmt: skip
    return "\n    ".join(
        [IMPORT + "import numpy as np\ndef f(A, B, x):", *lines, "return total, last, A, B, x"]
    )


def test_random_functions() -> None:
    loops = 0
    for seed in range(40):
        text = _random_function(random.Random(seed))
        r = np.random.default_rng(seed)
        given = [r.integers(0, 9, (7, 7)), r.integers(0, 9, (7, 7)), r.integers(0, 9, 13)]
        want = written(text)(*copy.deepcopy(given))
        dc.report(reset=True)
        with dc.options(jit="eager", cache_dir=None):
            got = dc.accelerate(written(text))(*copy.deepcopy(given))
        loops += dc.report().loops
        for a, b in zip(want, got, strict=True):
            assert type(a) is type(b) and np.array_equal(a, b), text
    assert loops >= 30


def test_a_break_is_pythons() -> None:
    f = written(IMPORT + """
def f(x):
    for i in dc.map[0:9]:
        if i == 4:
            break
        x[i] = 1.0
    return i
""")  # fmt: skip
    x = np.zeros(9)
    with dc.options(jit="eager", cache_dir=None):
        assert dc.accelerate(f)(x) == 4
    assert x.sum() == 4.0 and x[3] == 1.0


# ---- ahead of time --------------------------------------------------------------------------------------
def test_in_a_library(tmp_path: Path) -> None:
    maps = module(tmp_path, IMPORT + PROGRAMS, "maps")
    functions = [getattr(maps, name) for name in ("transposed", "counted", "product")]
    place = compile_library(functions, tmp_path / "out", "made")[2]
    library = loaded(place)
    r = np.random.default_rng(0)
    a, b = r.random((5, 9)), np.zeros((9, 5))
    library.transposed(a, b)
    assert np.array_equal(b, a.T)
    c, count = r.integers(0, 99, (6, 4)), np.zeros(4, np.int64)
    library.counted(c, count)
    assert np.array_equal(count, c.sum(axis=0))
    product = np.zeros((5, 5))
    library.product(a, b, product)
    np.testing.assert_allclose(product, a @ a.T)
