"""Functions of numbers that call themselves, in loops and by themselves."""

import gc
import math
import random
import sys
import textwrap
from functools import cache
from typing import Any

import numpy as np
import pytest
from outcomes import outcome
from written import written

import dcarray as dc
from dcarray.core.counters import settle
from dcarray.jit.loops.sites.functions import put_sites
from dcarray.jit.loops.tracing.recursion import MOST_CALLS, MOST_TRACES, Recursions

pytestmark = pytest.mark.eager


# Functions g, and the arguments of a call of it for the loop variable k.
COMPILED = {
    "fibonacci": ("k", """
        def g(n): return n if n < 2 else g(n - 1) + g(n - 2)
    """),
    "ackermann": ("2, k", """
        def g(m, n):
            if m == 0:
                return n + 1
            if n == 0:
                return g(m - 1, 1)
            return g(m - 1, g(m, n - 1))
    """),
    "factorial": ("k", """
        def g(n):
            if n <= 1: return 1
            return n * g(n - 1)
    """),
    "powers of floats": ("1.5, k", """
        def g(x, n):
            if n == 0: return 1.0
            h = g(x, n // 2)
            return h * h * x if n % 2 else h * h
    """),
    "of NumPy's scalars": ("np.float64(k), 6", """
        def g(x, n):
            if n == 0: return x
            return np.sqrt(g(x + 1.0, n - 1)) + x
    """),
    "a function as an argument": ("h, 0.0, 1.0 + k, 10", """
        def h(x): return math.exp(-x * x)
        def g(f, a, b, depth):
            m = 0.5 * (a + b)
            whole = (b - a) / 6 * (f(a) + 4 * f(m) + f(b))
            left = (m - a) / 6 * (f(a) + 4 * f(0.5 * (a + m)) + f(m))
            right = (b - m) / 6 * (f(m) + 4 * f(0.5 * (b + m)) + f(b))
            if depth <= 0 or abs(left + right - whole) < 1e-7:
                return left + right
            return g(f, a, m, depth - 1) + g(f, m, b, depth - 1)
    """),
    "two functions": ("3 * k", """
        def g(n): return True if n == 0 else h(n - 1)
        def h(n): return False if n == 0 else g(n - 1)
    """),
    "three, one of which calls itself": ("k", """
        def g(n): return 1 if n <= 0 else h(n - 1) + 2
        def h(n): return i(n, 3) + g(n - 1)
        def i(n, m): return m if m == 0 else i(n, m - 1) + (g(n - 2) if n > 1 else 1)
    """),
    "several results": ("0, 7 * k", """
        def g(a, b):
            if a >= b: return a, b
            low, high = g(a + 1, b - 2)
            return low + 1, high
    """),
    "results of two types": ("k", """
        def g(n):
            if n == 0: return 0, 1.0
            a, b = g(n - 1)
            return a + n, b * 0.5
    """),
    "a default and arguments by name": ("k", """
        def g(n, step=2, scale=1):
            return scale if n <= 0 else n + g(n - step, scale=scale + 1)
    """),
    "loops inside": ("k % 5, 0.0", """
        def g(n, s):
            for i in range(3):
                s += i * 0.25
                if n > 0:
                    s = g(n - 1, s)
            while s > 50.0:
                s /= 2.0
            return s
    """),
    "by need": ("k", """
        def g(n): return n > 0 and (n % 7 == 3 or g(n - 1))
    """),
    "of several types": ("k", """
        def g(n): return h(n, 1) + h(n, 1.5)
        def h(n, x): return x if n == 0 else h(n - 1, x) + x
    """),
    "names like those of others": ("k", """
        def g(n): return call(n, 1) + call(n, 1.5) + call_0(n)
        def call(n, x): return x if n == 0 else call(n - 1, x) + x
        def call_0(n): return 1 if n == 0 else call_0(n - 1) + 2
    """),
    "global numbers": ("k", """
        LIMIT, FACTOR = 3, 0.5
        def g(n): return FACTOR if n < LIMIT else g(n - 1) * FACTOR + n
    """),
    "greatest common divisors": ("k * 6, 15", """
        def g(a, b): return a if b == 0 else g(b, a % b)
    """),
}  # fmt: skip
LOOP = """
def f(n):
    found = []
    last = 0
    for k in range(n):
        last = g({arguments})
    return last
"""

# Functions g, what is made before the loop, and the call in it; what is made is compared, too.
ARRAYS = {
    "quicksort": ("x = np.random.default_rng(1).random(60)", "g(x, 0, 59 - k)", """
        def g(a, low, high):
            if low >= high:
                return 0
            pivot, i, j = a[(low + high) // 2], low, high
            while i <= j:
                while a[i] < pivot: i += 1
                while a[j] > pivot: j -= 1
                if i <= j:
                    a[i], a[j] = a[j], a[i]
                    i += 1
                    j -= 1
            return 1 + g(a, low, j) + g(a, i, high)
    """),
    "quicksort of a list, without results": ("x = [(7 * i) % 41 for i in range(41)]", "g(x, 0, 40 - k)", """
        def g(a, low, high):
            if low >= high:
                return
            pivot = low
            for i in range(low, high):
                if a[i] < a[high]:
                    a[i], a[pivot] = a[pivot], a[i]
                    pivot += 1
            a[high], a[pivot] = a[pivot], a[high]
            g(a, low, pivot - 1)
            g(a, pivot + 1, high)
    """),
    "a list of ints that gets floats": ("x = [0] * 5", "g(x, k % 5)", """
        def g(a, n):
            a[n] += 0.5
            return a[0] * 1.0 if n == 0 else g(a, n - 1) + a[n]
    """),
    "a list of ints and floats": ("x = [0, 1.5, 2, 3.0, 4]", "g(x, k % 5)", """
        def g(a, n):
            a[n], a[0] = a[0], a[n]
            return a[n] * 0.5 if n == 0 else g(a, n - 1) + a[n] * 1.0
    """),
    "flood fill": ("x = (np.arange(108).reshape(12, 9) ** 2 % 7 < 3).astype(int)", "g(x, k % 12, k % 9)", """
        def g(a, i, j):
            if i < 0 or j < 0 or i >= a.shape[0] or j >= a.shape[1] or a[i, j] != 0:
                return 0
            a[i, j] = 2
            return 1 + g(a, i + 1, j) + g(a, i - 1, j) + g(a, i, j + 1) + g(a, i, j - 1)
    """),
    "queens": ("x = [0] * 6", "g(x, 0, 4 + k % 3)", """
        def free(columns, row, column):
            for i in range(row):
                if columns[i] == column or abs(columns[i] - column) == row - i:
                    return False
            return True
        def g(columns, row, n):
            if row == n:
                return 1
            found = 0
            for column in range(n):
                if free(columns, row, column):
                    columns[row] = column
                    found += g(columns, row + 1, n)
            return found
    """),
    "only read": ("x, y = np.arange(1, 9), np.linspace(1.0, 3.0, 8)", "g(x, y, 7, 10 + k)", """
        def g(w, v, i, left):
            if i < 0:
                return 0.0
            best = g(w, v, i - 1, left)
            if w[i] <= left:
                best = max(best, v[i] + g(w, v, i - 1, left - w[i]))
            return float(best)
    """),
    "arrays change places": ("x, y = np.arange(5.0), np.ones(5)", "g(x, y, k % 4)", """
        def g(a, b, n):
            a[n] += b[n]
            return a[0] if n == 0 else g(b, a, n - 1) + a[n]
    """),
    "two functions": ("x = np.zeros(30)", "g(x, k)", """
        def g(a, n):
            if n > 0:
                a[n] += 1.0
                h(a, n - 1)
        def h(a, n):
            if n > 0:
                a[n] -= 0.5
                g(a, n - 2)
    """),
    "statements on whole arrays": ("x = np.ones(5)", "g(x, k % 4)", """
        def g(a, n):
            a *= 1.5
            a[1:] += a[:-1]
            return a.sum() if n == 0 else g(a, n - 1) + a[n]
    """),
    "an array of the loop": ("", "g(np.zeros(3), k)", """
        def g(a, n):
            a[n % 3] += n
            return a[0] if n == 0 else g(a, n - 1) + a[1]
    """),
}  # fmt: skip
LOOP_OF_ARRAYS = """
def f(n):
    x = y = None
    {begin}
    last = 0
    for k in range(n):
        last = {call}
    return last, x, y
"""

# Programs that Python has to run in part, or whole.
PYTHONS = {
    "deeper than it is compiled": ("k * 30", COMPILED["fibonacci"][1].replace("g(n - 2)", "1")),
    "deeper than Python allows": (f"k * {sys.getrecursionlimit() // 8}", """
        def g(n): return 0 if n == 0 else g(n - 1) + 1
    """),
    "integers that outgrow 64 bits": ("k * 3", COMPILED["factorial"][1]),
    "an exception inside": ("10 - k", """
        def g(n): return 1.0 / n if n <= 3 else g(n - 1) / (n - 3)
    """),
    "an assertion inside": ("k", """
        def g(n):
            assert n < 12
            return 0 if n == 0 else g(n - 1) + 1
    """),
    "results of a type for each condition": ("k", """
        def g(n): return 1 if n == 0 else (g(n - 1) * 0.5 if n > 4 else g(n - 1) + 1)
    """),
    "one that prints": ("k % 3", """
        def g(n):
            said.append(n)
            return 0 if n == 0 else g(n - 1) + 1
        said = []
    """),
    "one that is remembered": ("k", """
        @cache
        def g(n): return n if n < 2 else g(n - 1) + g(n - 2)
    """),
    "a global array": ("k % 4", """
        def g(n):
            if n == 0: return x[0]
            x[n] += 1.0
            return g(n - 1) + x[n]
        x = np.zeros(5)
    """),
    "an array twice": ("x, x, k % 4", """
        def g(a, b, n):
            a[n] += 1.0
            return b[n] if n == 0 else g(a, b, n - 1) + b[n]
        x = np.zeros(5)
    """),
    "parts of an array": ("x, k % 4", """
        def g(a, n):
            return a[0] if n == 0 else g(a[1:], n - 1)
        x = np.arange(5.0)
    """),
    "an index out of bounds": ("x, k % 8", """
        def g(a, n):
            a[n] += 1.0
            return a[0] if n == 0 else g(a, n - 1)
        x = np.arange(5.0)
    """),
    "an array that may not be written": ("x, k % 4", """
        def g(a, n):
            a[n] += 1.0
            return a[0] if n == 0 else g(a, n - 1)
        x = np.arange(5.0)
        x.flags.writeable = False
    """),
    "nothing": ("k", """
        def g(n): return None if n == 0 else g(n - 1)
    """),
}  # fmt: skip


def program(arguments: str, text: str, loop: str = LOOP, begin: str = "") -> Any:
    text = textwrap.dedent(text) + loop.format(arguments=arguments, begin=begin, call=arguments)
    return written(text, np=np, math=math, cache=cache)


@pytest.mark.parametrize("name", [*COMPILED, *ARRAYS])
def test_loops_that_call_them(name: str) -> None:
    begin, call, text = ARRAYS.get(name) or ("", *COMPILED[name])
    plain, f = (program(call, text, LOOP_OF_ARRAYS if name in ARRAYS else LOOP, begin) for _ in range(2))
    want, f = outcome(plain, (20,)), dc.accelerate(f)
    assert outcome(f, (20,)) == want
    before = settle().loops
    assert outcome(f, (20,)) == want
    assert settle().loops == before + 1


@pytest.mark.parametrize("name", PYTHONS)
def test_what_python_does(name: str) -> None:
    plain = program(*PYTHONS[name])
    f = dc.accelerate(program(*PYTHONS[name]))
    for _ in range(3):
        want = outcome(plain, (20,))
        assert outcome(f, (20,)) == want


def test_lists_of_ever_new_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    traced, function = [], Recursions._function
    monkeypatch.setattr(Recursions, "_function", lambda *args: (traced.append(1), function(*args))[1])
    f = written("def f(a):\n m = len(a) // 2\n l, r = (f(a[:m]), f(a[m:])) if m else (a, [])\n return l + r")
    assert dc.accelerate(f)(list(range(100))) == list(range(100))
    assert 0 < len(traced) <= 3 * MOST_TRACES


def test_compiled_calls_go_no_deeper_than_python() -> None:
    g = dc.accelerate(written("def f(n):\n    return 0 if n == 0 else f(n - 1) + 1"))
    before = settle().runs
    for n in (20, MOST_CALLS - 1, MOST_CALLS, MOST_CALLS + 1):
        assert g(n) == n
    assert settle().runs >= before + 2

    def below(depth: int) -> int:
        return g(300) if depth == 0 else below(depth - 1)

    with pytest.raises(RecursionError):
        below(sys.getrecursionlimit() - 200)


def test_near_the_limit_python_runs_the_statements() -> None:
    leaf = written("def f(n):\n    t = 0\n    for k in range(n):\n        t += k\n    return t")
    down = written("def f(d):\n    return leaf(3) if d == 0 else f(d - 1)", leaf=leaf)

    def deepest() -> int:
        for d in range(sys.getrecursionlimit()):
            try:
                assert down(d) == 3 and gc.isenabled()
            except RecursionError:
                return d
        return -1

    want, site = deepest(), put_sites(leaf)[0]
    site.heat()
    assert deepest() == want and site.runs


def test_a_function_that_is_bound_anew() -> None:
    """The name by which it calls itself is looked up in each call."""
    f = program("k", "\n    def g(n): return 1 if n == 0 else g(n - 1) + 2\n    def h(n): return 100\n")
    g = dc.accelerate(f)
    assert g(10) == 19 == g(10)
    names = f.__globals__
    names["old"], names["g"] = names["g"], names["h"]
    assert g(10) == 100
    names["g"] = names["old"]
    assert g(10) == 19


def random_function(draw: random.Random) -> str:
    """A function that calls itself with smaller numbers, of a number of its own and an array."""

    def number(depth: int) -> str:
        if depth == 0:
            return draw.choice(["n", "x", "n % 3", "2", "-1", "0.5", "a[n % 4]", "b[n]"])
        x, y = number(depth - 1), number(depth - 1)
        return draw.choice([
            f"({x} + {y})", f"({x} - {y})", f"({x}) * 0.5", f"({x} if n % 2 else {y})", f"abs({x})",
            f"min({x}, {y})", f"g(n - 1, {x}, a, b) + {y}", f"g(n - 2, {x}, a, b)",
            f"(0.0 if n > 5 else g(n - 3, {x}, a, b))",
        ])  # fmt: skip

    lines = ["def g(n, x, a, b):", f"    if n <= 0: return {draw.choice(['x', '1.5', 'a[2]', '1'])}"]
    for _ in range(draw.randrange(4)):
        lines += draw.choice([
            [f"    x = {number(1)}"],
            [f"    if x > {draw.randrange(3)}: x = {number(2)}"],
            [f"    for i in range({draw.randrange(3)}): x += {number(1)}"],
            [f"    a[n % 4] = {number(1)}"],
            ["    a *= 0.5"],
            [f"    a[{draw.randrange(4)}] += {number(1)}"],
        ])  # fmt: skip
    return "\n".join(["", *lines, f"    return {number(2)}", ""])


@pytest.mark.parametrize("seed", range(60))
def test_random_functions(seed: int) -> None:
    text = random_function(random.Random(seed))
    begin = "x, y = np.linspace(0.0, 3.0, 4), [3, 1, 4, 1, 5, 9]"
    plain, f = (program("g(k % 6, k * 0.5, x, y)", text, LOOP_OF_ARRAYS, begin) for _ in range(2))
    want, g = outcome(plain, (12,)), dc.accelerate(f)
    for _ in range(2):
        assert outcome(g, (12,)) == want, text
