"""Runs of statements as compiled code: results, errors, warnings, aliases and memory are the program's."""

import traceback
import warnings
from typing import Any

import numpy as np
import pytest
from as_written import as_written
from written import written

import dcarray as dc
from dcarray.core.counters import settle
from dcarray.jit.loops.sites.functions import put_sites

pytestmark = pytest.mark.eager(debug=False)


def reasons() -> list[str]:
    return [f"{f.function} {f.where}" for f in dc.report().fallbacks if f.kind == "loop"]


def outcome(f: Any, args: Any) -> Any:
    """The result or the error of a call with its line, its arguments afterwards, what it warned of, and which
    results are arguments, or share memory."""
    args = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = f(*args)
        except Exception as error:
            places = [p for p in traceback.extract_tb(error.__traceback__) if "<written" in p.filename]
            result = type(error), str(error), places[-1].lineno
    every = [*(result if isinstance(result, tuple) else [result]), *args]
    arrays = [a for a in every if isinstance(a, np.ndarray)]
    same = [(a is b, np.shares_memory(a, b)) for a in arrays for b in arrays]
    said = sorted((str(w.message), w.lineno) for w in caught)
    steps = [[s for n, s in zip(a.shape, a.strides, strict=True) if n > 1 and a.size] for a in arrays]
    return [(type(v), getattr(v, "dtype", None), repr(v)) for v in every], same, steps, said


def agree(text: str, *args: Any, served: int | None = None) -> None:
    """The same with and without compiled code, of which so many runs are served."""
    f = written(text, np=np)
    want = as_written(outcome, f, args)
    g = dc.accelerate(f)
    for _ in range(3):
        before = settle().runs
        assert outcome(g, args) == want
        if served is not None:
            assert settle().runs - before == served, reasons()


X, Y = np.linspace(0.5, 2, 30), np.linspace(3, 1, 30)


@pytest.mark.parametrize(("body", "served"), [
    ("return x * 2 + y", 1),
    ("z = x + y\nreturn z, z * 2", 1),
    ("z = x + y\nreturn z, z", 1),
    ("z = x + y\nreturn (z, (x, 3), 'a', None, 1.5, True), z.sum()", 1),
    ("z = x.sum()\nreturn z, float(z), len(x), z > 3", 1),
    ("z = x * 1j\nreturn z, z[0]", 1),
    ("x[1:] = y[:-1] * 2\nx += 1\nreturn x", 1),
    ("x[:] = x + y\nw = x\nreturn w, x, w is x", None),
    ("if x[0] > 3:\n    x = x * 2\nelse:\n    x = y + 1\nreturn x", None),
    ("if len(x) > 3:\n    x = x * 2\nreturn x", 1),
    ("z = np.zeros(4)\nz[1] = x[0] * 2\nreturn z", 1),
    ("z = np.where(x > 1, x, y * 2)\nreturn z.max(), z.astype('f4')", 1),
    ("k = 3\nk = k * 2 + len(x)\nreturn x[k - 9] * k, k", 1),
    ("return -x", 1),
    ("n = x.shape[0] // 2\nz = x[n:] * y[:n]\nreturn z, n", 1),
])  # fmt: skip
def test_results(body: str, served: int | None) -> None:
    agree("def f(x, y):\n    " + body.replace("\n", "\n    "), X, Y, served=served)


@pytest.mark.parametrize("body", [
    "z = x[1:]\nw = z * 2\nreturn z, w", "return x.T + 0 if False else x[::2]",
    "z = x.reshape(5, 6)\nreturn z * 2, z", "z = x[x > 1]\nw = z * 2\nreturn w, z", "w = x * 2\nreturn w[1:]",
    "z = y\nz = z[::-1]\nw = z + 1\nreturn z, w",
])  # fmt: skip
def test_views_and_selections_are_numpys(body: str) -> None:
    """A run whose results would be views is left to Python, and what is written to them is seen."""
    text = "def f(x, y):\n    " + body.replace("\n", "\n    ")
    agree(text, X, Y)
    f = written(text)
    x, again = X.copy(), X.copy()
    want, got = as_written(f, x, Y.copy()), dc.accelerate(f)(again, Y.copy())
    for one, memory in ((want, x), (got, again)):
        view = one if isinstance(one, np.ndarray) else one[0]
        view[...] = 7
        assert np.isfinite(memory).all()
    np.testing.assert_array_equal(x, again)


@pytest.mark.parametrize("body", [
    "z = x * 2\nw = z[40]\nreturn w", "z = x + y[:3]\nreturn z", "z = x * 2\nz[3] = missing\nreturn z",
    "x.fill(2)\nz = x + nothing\nreturn z", "x += 1\nx[1] = y[99]\nreturn x",
    "z = 1 / (len(x) - 30)\nreturn z", "x[:] = x + 1\nz = x @ y[:3]\nreturn z",
])  # fmt: skip
def test_errors_are_raised_where_they_are(body: str) -> None:
    agree("def f(x, y):\n    " + body.replace("\n", "\n    "), X, Y)


@pytest.mark.parametrize("state", ["ignore", "warn", "raise"])
@pytest.mark.parametrize("top", [0.0, 1.0, np.nan, np.inf])
def test_floating_point_exceptions(state: Any, top: float) -> None:
    x = X.copy()
    x[7] = top
    with np.errstate(all=state):
        agree(
            "def f(x, y):\n    y[:] = y * 2\n    z = y / x\n    w = np.sqrt(x - 1.0)\n    return z, w", x, Y
        )


def test_arguments_that_share_memory() -> None:
    text = "def f(x, y):\n    y[:] = x * 2\n    x[1:] = x[:-1] + y[1:]\n    return x.sum(), y.sum()"
    f = written(text)
    g = dc.accelerate(f)
    for at in (0, 1, 10):
        want, got = np.arange(60.0), np.arange(60.0)
        expected = as_written(f, want[:30], want[at : at + 30])
        for _ in range(2):
            got[:] = np.arange(60.0)
            assert g(got[:30], got[at : at + 30]) == expected
            np.testing.assert_array_equal(got, want)
        same, again = np.arange(30.0), np.arange(30.0)
        assert as_written(f, same, same) == g(again, again)
        np.testing.assert_array_equal(same, again)


def test_results_are_new_memory_each_time() -> None:
    f = dc.accelerate(written("def f(x):\n    z = x * 2\n    return z"))
    kept = [f(np.full(5000, float(k))) for k in range(6)]
    assert [a[0] for a in kept] == [0, 2, 4, 6, 8, 10] and all(a.flags.owndata for a in kept)
    assert all(a.flags.writeable and type(a) is np.ndarray for a in kept)


def test_read_only_arguments() -> None:
    f = written("def f(x, y):\n    y[:] = x * 2\n    return y.sum()")
    locked = X.copy()
    locked.flags.writeable = False
    g = dc.accelerate(f)
    assert g(locked, Y.copy()) == as_written(f, locked, Y.copy())
    with pytest.raises(ValueError, match="read-only"):
        g(X.copy(), locked)


def test_constants_that_change() -> None:
    f = written("c = 2.0\nk = 3\ndef h(v):\n    return v * k\ndef f(x):\n    z = h(x) + c\n    return z")
    g, names = dc.accelerate(f), f.__globals__
    for name, value in (("c", 2.0), ("c", 5.0), ("k", 4), ("k", 4.5), ("c", np.float32(2)), ("k", X)):
        names[name] = value
        np.testing.assert_array_equal(g(X), as_written(f, X), strict=True)


def test_what_is_no_array_is_pythons() -> None:
    for args in (([1, 2], [3]), ("ab", "c"), (3, 4), (2.5, 1), (np.float64(3), 2), ({}, {}), (None, 1)):
        agree("def f(x, y):\n    z = x + y\n    w = z * 2\n    return z, w", *args)


def test_runs_inside_of_branches_loops_and_handlers() -> None:
    text = """
        def f(x, y):
            total = 0.0
            for name in ("a", "b"):
                print(name)
                z = x * 2 + y
                total = total + z.sum()
            try:
                w = z / len(name)
                print(w)
                w = w + 1
            finally:
                w = w * 2
            with open() as o:
                w = w - o
            return w, total
    """

    class Opened:
        def __enter__(self) -> float:
            return 3.0

        def __exit__(self, *error: object) -> None:
            pass

    f = written(text, print=lambda *v: None, open=Opened)
    want = as_written(outcome, f, (X, Y))
    g = dc.accelerate(f)
    before = settle().runs
    assert outcome(g, (X, Y)) == want == outcome(g, (X, Y))
    assert settle().runs - before == 6


def test_a_recursion_through_a_run() -> None:
    f = written(
        "def f(x, n):\n    y = x * 2\n    print(n)\n    z = f(y, n - 1) + y if n else y\n    return z, 1"
    )
    f = written("""
        def f(x, n):
            if n == 0:
                z = x * 2
                return z
            y = x + n
            print(n)
            z = f(y, n - 1)
            return z + y
    """, print=lambda n: None)  # fmt: skip
    np.testing.assert_array_equal(dc.accelerate(f)(X, 5), as_written(f, X, 5))


def test_a_run_that_fails_is_given_up_and_restores_what_it_wrote() -> None:
    f = written("def f(x, y):\n    x[:] = x * 2\n    y[:] = y / x\n    return x.sum()")
    g = dc.accelerate(f)
    with np.errstate(all="ignore"):
        g(X.copy(), Y.copy())
    zeros = np.zeros(30)
    for _ in range(4):
        x, y, u, v = zeros.copy(), Y.copy(), zeros.copy(), Y.copy()
        with np.errstate(all="raise"):
            for h, a, b in ((f, x, y), (g, u, v)):
                with pytest.raises(FloatingPointError):
                    as_written(h, a, b) if h is f else h(a, b)
        np.testing.assert_array_equal(x, u)
        np.testing.assert_array_equal(y, v)


def test_module_statements_of_a_script() -> None:
    from dcarray.jit.loops.sites.modules import compile_module
    from dcarray.jit.loops.sites.site import Site

    text = "import numpy as np\nx = np.ones(9)\nfor k in (3,):\n    y = x * 2 + k\n    print(y.sum(), x, y)\n"
    printed: list[Any] = []
    for compiled in (False, True):
        names: dict[str, Any] = {"__name__": "__main__", "print": lambda *values: printed.append(values)}
        code = (
            compile_module(text, "<text>", names, True)
            if compiled
            else compile(text, "<text>", "exec", dont_inherit=True)
        )
        for constant in code.co_consts:
            if isinstance(constant, Site):
                constant.heat()
        before = settle().runs
        exec(code, names)
        assert (settle().runs > before) is compiled, reasons()
    first, second = printed
    np.testing.assert_allclose(second[0], first[0], rtol=1e-14)
    np.testing.assert_array_equal(first[1:], second[1:])


def test_sites_of_several_statements_on_one_line() -> None:
    agree("def f(x, y):\n    z = x * 2; w = z + y; return z, w", X, Y, served=1)
    agree("def f(x, y):\n    x += 1; y = y + x\n    z = x * 2; return z, y", X, Y, served=1)
    agree("def f(x, y): x += 1; y = y + x; return x, y", X, Y, served=1)
    f = written("def f(x, y):\n    z = x * 2; w = (z +\n  y); return z, w")
    assert put_sites(f)
    for one, other in zip(dc.accelerate(f)(X, Y), as_written(f, X, Y), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("part", [
    *["(x * 2)[::-1]", "(x * 2)[::2]", "(x * 2)[1:]", "((x - 1)[::2])[::-1]", "((x * 4)[::2])[:]"],
    *["((x * 4)[::2])[:].ravel()", "np.ravel((x * 4)[::-1])", "np.flip(x + 4)", "np.arange(9.0)[::3]"],
    *["np.ones((4, 5))[:, 2]", "np.add.outer(x[:3], x[:4]).T", "(y + 1)[1:3, 1:4]", "(y + 1)[1:3]"],
    *["(y * 2)[:, ::-1]", "(y * 2)[::-1] + 1", "(y * 2).T", "np.swapaxes(y + 2, 0, 1)", "(y * 3)[0]"],
    *["(y * 3)[:, 0]", "(y * 3)[:, :3].T[1:]", "np.ascontiguousarray((y * 3)[:, :3])"],
])  # fmt: skip
def test_parts_of_new_arrays_lie_as_in_numpy(part: str) -> None:
    agree(
        f"def f(x, y): a = {part}; return a, x + 1", np.arange(20.0), np.arange(30.0).reshape(5, 6), served=1
    )


def test_names_that_are_set_to_none_free_their_objects() -> None:
    class Kept:
        alive = 0

        def __init__(self) -> None:
            seen.append(Kept.alive)
            Kept.alive += 1

        def __del__(self) -> None:
            Kept.alive -= 1

    seen: list[int] = []
    f = dc.accelerate(
        written("""
        def f(n, make):
            k = 0
            while k < n:
                print(end="")
                one = make()
                print(end="")
                one = None
                k += 1
            return k
    """)
    )
    assert f(4, Kept) == 4
    assert seen == [0, 0, 0, 0]
