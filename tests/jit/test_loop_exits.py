"""Loops that are left by ``return``, or have an ``else``: compiled, with the program's results and errors."""

import random
import textwrap
from typing import Any

import numpy as np
import pytest
from outcomes import outcome
from site_oracle import serve_some_resumes
from written import written

import dcarray as dc
from dcarray.core.counters import settle
from dcarray.jit.loops.sites.functions import put_sites
from dcarray.jit.loops.sites.site import Site
from dcarray.tiering import admission

pytestmark = pytest.mark.eager(debug=False)


def agree(text: str, *arguments: tuple[Any, ...], loops: int | None = 1) -> None:
    """The same with compiled code, of which so many loops are served in each call."""
    f = written(text)
    want = [outcome(f, args) for args in arguments]
    g = dc.accelerate(f)
    for _ in range(2):
        for args, expected in zip(arguments, want, strict=True):
            before = settle().loops
            assert outcome(g, args) == expected
            if loops is not None:
                assert settle().loops - before == loops, [f.function for f in dc.report().fallbacks]


X = np.linspace(-1.0, 2.0, 40)
CASES: dict[str, tuple[str, Any]] = {
    "an index": ("for i in range(len(x)):\n    if x[i] > n: return i\nreturn -1", 1),
    "an element": (
        "i = 0\nwhile i < len(x):\n    if x[i] > n: return x[i] * 2, i\n    i += 1\nreturn 0.0",
        1,
    ),
    "nothing": ("for i in range(len(x)):\n    x[i] += 1\n    if x[i] > n: return\nreturn 7", 1),
    "of two loops": (
        "for i in range(len(x)):\n    for j in range(i):\n        if x[i] * x[j] > n: return i, j\nreturn -1",
        1,
    ),
    "several": (
        """
        for i in range(len(x)):
            t = x[i] * 3
            if t > 4 + n: return None
            for j in range(i):
                s = x[i] * x[j]
                if s > n: return s, j
            if t > 3: return t
        return -1
        """,
        1,
    ),
    "until it has converged": (
        """
        for k in range(300):
            y = x * 0.9 + 0.1
            e = abs(y - x).max()
            x = y
            if e < 10.0 ** -n: return x, k, e
        return x, None, e
        """,
        1,
    ),
    "else": (
        """
        c = 0
        for i in range(2, 60):
            for j in range(2, i):
                if i % j == 0: break
            else:
                c += i
            if c > 100 * n: return c, i
        return c
        """,
        1,
    ),
    "else with a jump": (
        """
        c = 0
        for i in range(2, 60):
            for j in range(2, i):
                if i % j == 0: break
            else:
                if i > 20 * n: break
                continue
            c += i
        return c
        """,
        1,
    ),
    "while with an else": (
        """
        c = 0
        for i in range(1, 30):
            k = i
            while k > n:
                k = k - 3
                if k == 5: break
            else:
                c += k
        return c
        """,
        1,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_loops_that_are_left(name: str) -> None:
    body, loops = CASES[name]
    text = "def f(x, n):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"
    agree(text, *[(X, n) for n in (1, 0, 2, 100)], loops=loops)


HELPERS = """
def smallest(v):
    for k in range(2, 40):
        if v % k == 0:
            return k
    return v
def is_prime(n):
    if n < 2:
        return False
    i = 2
    while i * i <= n:
        if n % i == 0:
            return False
        i += 1
    return True
def collatz(n):
    steps = 0
    while True:
        if n == 1:
            return steps
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
        if steps > 50:
            return -steps
def halved(v):
    while 1:
        if v < 1.0:
            break
        v = v / 2
        if v == 3.0:
            return v
    return v - 1.0
def find(x, v):
    for i in range(len(x)):
        for k in range(i):
            if x[i] - x[k] > v:
                return i, k
    return 0, 0
"""


@pytest.mark.parametrize("line", [
    *["s += smallest(i)", "if is_prime(i): s += i", "a, b = find(x, i * 0.1)\n        s += a * b"],
    *["s += collatz(i % 9 + 1)", "s += halved(i * 0.75)"],
])  # fmt: skip
def test_functions_that_return_out_of_loops(line: str) -> None:
    text = f"{HELPERS}\ndef f(x, n):\n    s = 0\n    for i in range(2, n):\n        {line}\n    return s\n"
    agree(text, (X, 60), (X, 11))


def test_division_by_zero_is_pythons() -> None:
    for op in ("//", "%", "/"):
        body = f"    s = 0\n    for i in range(10):\n        s += (7 + i) {op} (i - n)\n    return s\n"
        text = f"def f(x, n):\n{body}"
        agree(text, (X, 20), (X, -1))
        agree(text, (X, 4), loops=None)


def test_powers_of_ints() -> None:
    body = "    s = 0\n    for i in range(n):\n        s += i**3 - i**2\n        s %= 1000\n    return s\n"
    text = f"def f(x, n):\n{body}"
    agree(text, (X, 30))


def test_a_name_that_is_not_bound_is_an_error() -> None:
    text = """
        def f(x, n):
            s = 0.0
            for i in range(n, 40):
                for j in range(i):
                    if x[j] > 1.5:
                        return j
                s += j
            return s
    """
    agree(textwrap.dedent(text), (X, 0), (X, 1), loops=None)


def test_the_rest_of_a_loop_may_return(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
        def f(x, n):
            for t in range(2, 500):
                x[:] = x * 0.99
                if x[0] < n: return t, x[0]
            return None
    """
    f = written(text)
    monkeypatch.setattr(admission, "_SLOW_ITERATION", 1e9)  # plans are made between two iterations
    monkeypatch.setattr(admission, "_SOON", 0.0)
    want = [f(np.ones(300), n) for n in (0.5, 0.001, 0.7)]
    loop = next(site for site in put_sites(f) if site.source.is_loop)
    serve_some_resumes(monkeypatch)
    for n, expected in zip((0.5, 0.001, 0.7), want, strict=True):
        loop.resuming = True
        loop.enabled = False
        assert repr(f(np.ones(300), n)) == repr(expected)
        assert not loop.done()
    assert dc.report().loops


def test_the_time_of_loops_that_return_is_known() -> None:
    f = written("def f(x, n):\n    for i in range(n):\n        if x[i] > 1: return i\n    return -1\n")
    with dc.options(jit="background", cache_dir=None):
        (site,) = [site for site in put_sites(f) if site.source.is_loop]
        x = np.zeros(20_000)
        x[19_000] = 2.0
        for _ in range(30):
            site.heat()
            assert f(x, 20_000) == 19_000
            dc.wait()
        assert site.runs, site.refused


# ---- random programs -----------------------------------------------------------------------------------
def random_program(seed: int) -> str:
    """A function with nested loops that are left in all ways there are."""
    r = random.Random(seed)

    def test() -> str:
        a, b = r.choice(["i", "j", "n", "s", "t"]), r.choice(["3", "n", "x[k]", "5", "k"])
        return f"{a} {r.choice(['<', '>', '==', '!='])} {b}"

    def simple() -> str:
        return r.choice(
            ["s += k", "t = s * 2 - t", "x[k] += 1", "s = s - x[k]", "i += 1", "j = k + 1", "t = x[k] + 0.5"]
        )

    def block(depth: int, looped: bool) -> list[str]:
        lines = []
        for _ in range(r.randint(1, 3)):
            kind = r.random()
            if kind < 0.35 or depth > 2:
                lines.append(simple())
            elif kind < 0.6:
                leave = [r.choice(["return s", "return t, k", "return i", "return", "break", "continue"])]
                inner = leave if looped and r.random() < 0.6 else block(depth + 1, looped)
                lines += [f"if {test()}:", *indented(inner)]
                if r.random() < 0.3:
                    lines += ["else:", *indented(block(depth + 1, looped))]
            else:
                lines += [f"for k in range({r.choice(['4', 'n', '1', 'n - 2'])}):"]
                lines += indented(block(depth + 1, True))
                if r.random() < 0.4:
                    lines += ["else:", *indented(block(depth + 1, looped))]
        return lines

    body = ["i, j, k, s, t = 0, 1, 0, 0.0, 1.0", *block(0, False), *block(0, False), "return i, j, k, s, t"]
    return "\n".join(["def f(x, n):", *indented(body)]) + "\n"


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int) -> None:
    agree(random_program(seed), *[(np.arange(6.0), n) for n in (3, 5, 0)], loops=None)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_that_python_runs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = random_program(seed)
    cases = [(np.arange(6.0), n) for n in (3, 5, 0)]
    want = [outcome(written(text), case) for case in cases]
    monkeypatch.setattr(Site, "ask", lambda *_: ())
    monkeypatch.setattr(Site, "leave", lambda _: None)
    for asked in (False, True):
        f = written(text)
        for site in put_sites(f):
            site.asks = asked
        assert [outcome(f, case) for case in cases] == want


LEAVES = """
def f(x, n):
    row = col = -1
    for row in range(5):
        for col in range(4):
            if x[row * 4 + col] > n:
                break
        else:
            continue
        break
    else:
        return "none", row, col
    return row, col
"""


@pytest.mark.parametrize("asked", [False, True])
def test_two_loops_that_are_left_together(asked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Site, "ask", lambda *_: ())
    monkeypatch.setattr(Site, "leave", lambda _: None)
    f = written(LEAVES)
    for site in put_sites(f):
        site.asks = asked
    assert f(np.arange(20.0), 9.5) == (2, 2)
    assert f(np.arange(20.0), 99.0) == ("none", 4, 3)
