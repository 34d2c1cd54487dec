"""Functions with sites behave as before."""

import ast
import inspect
import linecache
import pickle
import textwrap
import traceback
from types import FunctionType, SimpleNamespace
from weakref import ref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_source import indent, programs
from site_oracle import Oracle
from written import written

from dcarray.jit.loops.entry.names import RANGE, RETURNED
from dcarray.jit.loops.sites.functions import functions_of, put_sites, remove_sites, with_sites
from dcarray.jit.loops.sites.site import Site
from dcarray.jit.loops.syntax.liveness import Liveness
from dcarray.jit.loops.syntax.originals import original, originals
from dcarray.jit.loops.syntax.source import source_of


def sites_of(f: FunctionType) -> list[Site]:
    made = with_sites(f)
    return [] if made is None else made[1]


def loops_of(f: FunctionType) -> list[Site]:
    return [site for site in sites_of(f) if site.source.is_loop]


def outcome(f: FunctionType, args: tuple[object, ...]) -> object:
    try:
        return f(*args)
    except Exception as error:
        return type(error), str(error), traceback.extract_tb(error.__traceback__)[-1].lineno


def agree(f: FunctionType, *args: object) -> object:
    """The same with and without sites."""
    want = outcome(f, args)
    for site in put_sites(f):
        site.heat()
    assert outcome(f, args) == want
    remove_sites(f)
    return want


# ---- random programs ---------------------------------------------------------------------------------
@settings(max_examples=120, derandomize=True, deadline=None)
@given(body=programs, a=st.integers(0, 4), b=st.integers(-2, 2), every=st.integers(1, 3))
def test_random_functions_behave_as_before(body: list[str], a: int, b: int, every: int) -> None:
    from contextlib import suppress

    text = "\n".join(["def f(a, b):", *indent([*body, "return a, b, c"])])
    f = written(text, suppress=suppress, c=7, d=8)
    with pytest.MonkeyPatch.context() as patch:
        oracle = Oracle(patch, every)
        want = agree(f, a, b)
        unbound = type(want) is tuple and len(want) == 3 and want[0] in (NameError, UnboundLocalError)
        assert unbound or not oracle.missing


def test_the_oracle_serves_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    f = written("""
        def f(a, b):
            for i in range(a):
                t = b + i
                for j in range(3):
                    b = t * j
            while b > 100:
                b = b - k
            return b, i
    """, k=17)  # fmt: skip
    oracle = Oracle(monkeypatch)
    agree(f, 9, 11)
    assert oracle.served == 2 and not oracle.missing


def test_the_oracle_serves_loops_that_have_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    f = written("""
        def f(a, b):
            for i in range(a, 0, -2):
                b = b + i
            while b > 3:
                b = b - 1
            return b, i
    """)
    oracle, want = Oracle(monkeypatch, 3), f(9, 11)
    put_sites(f)
    for site in loops_of(f):
        site.heat()
    assert f(9, 11) == want and oracle.served == oracle.resumed == 2 and not oracle.missing


def test_the_oracle_serves_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    f = written("""
        def f(a, b):
            c = a + b
            if c > 3:
                b = c * 2
            print(b)
            d = b - c
            return d, a
    """, print=lambda b: None)  # fmt: skip
    oracle = Oracle(monkeypatch)
    agree(f, 9, 11)
    assert oracle.served == 2 and not oracle.missing


# ---- which names ----------------------------------------------------------------------------------------
def test_needed_and_live_names() -> None:
    f = written("""
        def f(n, x, y):
            t = y
            for k in range(1, n):
                t = x[k]
                s = t * y
                x[k] = s + g(K)
            for k in range(n):
                last = x[k]
            return x, last
    """, g=len, K=3)  # fmt: skip
    first, second = loops_of(f)
    assert first.source.needed == ("n", "x", "y") and first.source.live == ()
    assert first.source.others == ("K", "g", "range")
    assert second.source.needed == ("n", "x") and second.source.live == ("last",)
    assert first.source.source.startswith("for k in range(1, n):\n    t = x[k]\n")


def test_conditionally_bound_live_names_are_needed() -> None:
    f = written("""
        def f(n, x):
            best = x[0]
            for k in range(n):
                if x[k] > best:
                    best = x[k]
            return best
    """)
    (site,) = loops_of(f)
    assert site.source.needed == ("best", "n", "x") and site.source.live == ("best",)


def test_no_sites_where_names_may_be_unbound() -> None:
    f = written("""
        def f(n, x):
            if n > 3:
                t = 1
            for k in range(n):
                x[k] = t
    """)
    assert not loops_of(f)


def test_indented_and_multiline_source() -> None:
    f = written("""def f(n, x):
    if n:
        for k in range(n):
            x[
      k] = (1 +
    2)  # less indented than the loop
# this too
            x[0] = '''a
            text'''
        for k in range(n):
            x[
      k] = (1 +
    2)
    return x
""")
    (site,) = loops_of(f)  # the text of the other one would be another with less indentation
    assert site.source.line == 10 and ast.parse(site.source.source)


# ---- eligible loops -----------------------------------------------------------------------------------
@pytest.mark.parametrize("body", [
    "for k in f(x):\n    n = k",
    "for k in zip(x, f(x)):\n    n = k",
    "for k in zip(x, strict=True):\n    n = k",
    "for k in [x for x in n]:\n    n = k",
    "for x[0] in range(n):\n    n = k",
    "for k in range(*x):\n    n = k",
    "for k in range(n):\n    n = {x for x in n}",
    "for k in range(n):\n    n = (x for x in n)",
    "for k in range(n):\n    n = sum((y := x) for x in n)",
    "for k in range(n):\n    n = lambda: 3",
    "for k in range(n):\n    def n(): pass",
    "for k in range(n):\n    import os",
    "for k in range(n):\n    x = f(**n)",
    "for k in range(n):\n    x = f(*n)",
    "for k in range(n):\n    with n: pass",
    "for k in range(n):\n    try: pass\n    finally: pass",
    "for k in range(n):\n    del x",
    "while x.popleft():\n    n = 2",
])  # fmt: skip
def test_ineligible_loops(body: str) -> None:
    f = written("def f(n, x):\n" + textwrap.indent(body, "    ") + "\n    return n\n")
    assert not loops_of(f)


def test_loops_inside_ineligible_loops() -> None:
    f = written("""
        def f(n, x):
            for k in range(n):
                for j in range(k):
                    x[j] = k
                if x[0]:
                    del k
            while True:
                while x[0] > 3:
                    x[0] -= 1
                if x[0]:
                    import os
    """)
    assert [site.source.line for site in sites_of(f)] == [4, 9, 10]


def test_loops_inside_eligible_loops() -> None:
    f = written("""
        def f(n, x):
            for k in range(n):
                for j in range(k):
                    x[j] = k
    """)
    outer, inner = sites_of(f)
    assert outer.outer is None and inner.outer is outer and outer.inner == [inner]
    assert inner.source.needed == ("k", "x") and inner.source.counters == {"k"}
    assert not (outer.enabled or inner.enabled)


def test_functions_that_read_frames_are_not_rewritten() -> None:
    assert with_sites(written("def f(n):\n    for k in range(n): j = k\n    return locals()")) is None
    assert with_sites(written("def f(n):\n    for k in range(n): j = k\n    return eval('j')")) is None


# ---- the function stays what it is ------------------------------------------------------------------------
def test_closures_and_inner_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    f = written("""
        def outer(step):
            def f(n, x=0):
                for k in range(n):
                    x = x + step
                for k in range(n):
                    seen = k
                return x, lambda: seen
            return f
        f = outer(3)
    """)
    site, _ = put_sites(f)
    assert site.source.needed == ("n", "step", "x") and f.__code__.co_freevars == ("step",)
    assert f(4)[0] == 12 and f(4)[1]() == 3
    Oracle(monkeypatch)
    site.heat()
    assert f(4)[0] == 12 and f(4)[1]() == 3


def test_lines_and_positions() -> None:
    f = written("""
        def f(n,
              x):
            for k in range(n):

                x = x + \\
                    1 // (2 - k)

            y = x * 2
            return (y +
                1 // x)
    """)
    plain = f.__code__
    put_sites(f)
    made = f.__code__
    assert made.co_firstlineno == plain.co_firstlineno and made.co_name == "f"
    assert {line for *_, line in made.co_lines() if line} == {line for *_, line in plain.co_lines()}
    for args in ((5, 1), (0, 0)):
        frames = []
        for code in (plain, made):
            f.__code__ = code
            with pytest.raises(ZeroDivisionError) as caught:
                f(*args)
            frames.append(traceback.extract_tb(caught.value.__traceback__)[-1])
        first, second = frames
        assert (first.lineno, first.end_lineno, first.colno, first.end_colno, first.line, first.name) == (
            second.lineno, second.end_lineno, second.colno, second.end_colno, second.line, second.name
        )  # fmt: skip


def test_no_names_are_added() -> None:
    f = written("def f(n):\n    for k in range(n):\n        t = k\n    return t")
    names = set(f.__code__.co_varnames)
    put_sites(f)
    assert set(f.__code__.co_varnames) == {*names, RANGE.format(0)} and not RANGE.isidentifier()
    asked = {"asks", "asks_again", "enter", "leave", "resume", "done", "on"}
    assert set(f.__code__.co_names) == {"range", *asked}
    g = written("def f(n):\n    return n + 1")
    put_sites(g)
    assert set(g.__code__.co_varnames) == {"n", RETURNED} and not RETURNED.isidentifier()


def test_the_ranges_of_running_loops_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    f = written("def f(a):\n    for k in range(a.n):\n        t = k\n        a.n += 1\n    return t")
    (site,), ranges = [one for one in put_sites(f) if one.resumable], []
    resume = lambda start, items, *values: ranges.append(items) or ()  # noqa: E731
    monkeypatch.setattr(Site, "asking", lambda _, step: resume)
    site.resuming = True
    for n in (2, 3):  # whatever `a.n` is in the meantime
        assert f(SimpleNamespace(n=n)) == n - 1
    assert ranges == [*[range(2)] * 2, *[range(3)] * 3]


def test_functions_with_sites_can_be_sent_to_other_processes() -> None:
    f = written("def f(n):\n    for k in range(n):\n        t = k\n    return t")
    (site,) = put_sites(f)
    site.heat()
    sent = pickle.loads(pickle.dumps(site))
    made = f.__code__
    f.__code__ = made.replace(co_consts=tuple(sent if c is site else c for c in made.co_consts))
    assert f(3) == 2


def test_changed_files_have_no_source() -> None:
    f = written("def f(n):\n    for k in range(n):\n        t = k\n    return t")
    lines = linecache.cache[f.__code__.co_filename][2]
    lines[2] = "        t = k + 1\n"
    assert source_of(f, f.__code__) is None and with_sites(f) is None
    lines[2] = "        t = k\n"
    assert source_of(f, f.__code__) is not None
    del linecache.cache[f.__code__.co_filename]
    assert source_of(f, f.__code__) is None


def test_assertions_rewritten_by_pytest_have_no_source() -> None:
    def f(n: int) -> int:
        for k in range(n):
            assert k == k
        return n

    assert not loops_of(f)


@pytest.mark.parametrize(
    "head",
    ["from written import *", "import math\nfrom written import *", "import numpy\nnp = numpy", "",
     "import numpy as np\nfrom written import linecache as lines", "if 1:\n    import numpy as np"],
)  # fmt: skip
def test_names_imported_without_an_import_statement(head: str) -> None:
    """Calls of their attributes are compiled in another way."""
    body = "\ndef f(n):\n    for k in range(n):\n        t = np.add(k, 1)\n    return t, lines.getline('', 1)"
    f = written(head + body, np=np, lines=linecache)
    source = source_of(f, f.__code__)
    assert source is not None and source.imported == tuple(
        name for name in ("np", "lines") if f"import numpy as {name}" in head or f"as {name}" in head
    )
    assert len(loops_of(f)) == 1
    agree(f, 3)


def test_the_source_of_this_file() -> None:
    source = source_of(indent, indent.__code__)
    assert source is not None and source.text([source.tree]) == inspect.getsource(indent).rstrip()
    assert Liveness(source.tree.body, frozenset(), frozenset()) is not None


def test_functions_get_their_own_code_back() -> None:
    f = written("""
        def helper(n):
            for k in range(n):
                t = k
            return t

        def other(n):
            for k in range(n):
                t = k

        def f(n):
            return helper(n) if n else 1
    """)
    helper, other = f.__globals__["helper"], f.__globals__["other"]
    codes = [g.__code__ for g in (f, helper, other)]
    for _ in range(2):
        assert functions_of(f) == [f, helper]
        sites = [site for g in functions_of(f) for site in put_sites(g)]
        assert f(3) == 2 and other.__code__ is codes[2]
        changed = helper.__code__
        assert changed is not codes[1] and originals[id(changed)] == (changed, codes[1])
        assert original(helper) is codes[1]
        assert [site for g in functions_of(f) for site in put_sites(g)] == sites
        for g in (f, helper, other):
            remove_sites(g)
        assert [g.__code__ for g in (f, helper, other)] == codes
    put_sites(helper)
    assert helper.__code__ is changed  # and its sites are the same
    helper.__code__ = codes[2]  # somebody else's
    remove_sites(helper)
    assert helper.__code__ is codes[2]


def test_functions_that_share_a_code_object() -> None:
    """A `def` inside of a function makes another function with the same code each time it runs."""
    f = written("""
        def f(a):
            def inner(n):
                for k in range(n):
                    a[k] = k
                return a
            return inner
    """)
    first, second = f([0] * 3), f([0] * 3)
    code = first.__code__
    assert put_sites(first) == put_sites(second)
    assert first.__code__ is second.__code__ is not code
    remove_sites(first)
    assert first.__code__ is code is not second.__code__
    gone = ref(first)
    del first
    assert gone() is None  # nor is it kept, with all that it holds


def test_functions_that_share_a_code_object_have_their_own_global_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    f = written("def f(n):\n    t = 0\n    for k in range(n):\n        t += c\n    return t", c=2)
    g = FunctionType(f.__code__, {**f.__globals__, "c": 5}, "f")
    Oracle(monkeypatch)
    agree(f, 3)
    assert agree(g, 3) == 15 and sites_of(f) != sites_of(g)


TRIED = "def f(a, b):\n    try:\n        c = a + 1\n        return c // b\n"


@pytest.mark.parametrize("text", [
    TRIED + "    finally:\n        seen.append(c)\n",
    TRIED + "    except ZeroDivisionError:\n        return -c\n",
    "def f(a, b):\n    c = a + b\n    return c * 2\n    print(c)\n",
    "def f(a, b):\n    if a:\n        c = a + b; return c * 2\n    return c",
    "def f(a, b):\n    return (a + b, (a - b, b))\n",
    "def f(a, b):\n    c = lambda: d\n    d = a + b\n    e = d * 2\n    return e, c()\n",
])  # fmt: skip
@pytest.mark.parametrize("b", [0, 2])
def test_returns(monkeypatch: pytest.MonkeyPatch, text: str, b: int) -> None:
    seen: list[int] = []
    f = written(text, seen=seen)
    want = outcome(f, (3, b))
    count = len(seen)
    oracle = Oracle(monkeypatch)
    assert agree(f, 3, b) == want and seen == seen[:count] * 3
    assert oracle.served or b == 0 or "lambda" in text  # which reads d


def test_runs_end_at_what_is_not_known() -> None:
    f = written("""
        def f(x, y):
            x = x + 1
            y = sorted(x)
            z = y * 2
            print(z)
            for k in y:
                z = z + open(k)
            w = z - 1
            yield_ = w + 1
            return w, yield_
    """)
    found = sites_of(f)
    assert [(s.source.line, s.source.last) for s in found] == [(3, 3), (5, 5), (9, 11), (9, 10)]
    assert [s.source.returns for s in found] == [False, False, True, False]
    assert [s.is_alternative for s in found] == [False, False, False, True]
    found[2].refuse("for this test")
    assert not found[3].is_alternative


def test_parts_of_a_run_are_alternatives() -> None:
    f = written("""
        def f(x, y, rng, out):
            for k in range(3):
                z = x * k
                w = z + rng.normal(0, 1)
                v = w * z + y
                if v[0] > 0:
                    y = v
                t = [v * i for i in (1, 2)]
                u = t[0] + t[1]
                print(u)
    """)
    loop_run, *parts = [s for s in sites_of(f) if not s.source.is_loop]
    assert (loop_run.source.line, loop_run.source.last) == (4, 10)
    assert [(s.source.line, s.source.last) for s in parts] == [(4, 4), (6, 6), (10, 10)]
    assert all(s.outer is loop_run and s.is_alternative for s in parts)
    loop_run.doubtful = True
    assert not any(s.is_alternative for s in parts)


def test_statements_that_compute_nothing_have_no_sites() -> None:
    assert with_sites(written("def f(x, y):\n    z = x\n    x, y = y, 3\n    return x, y, z\n")) is None


def test_generators_have_no_sites() -> None:
    f = written("def f(n):\n    for k in range(n):\n        t = k * 2\n        yield t\n")
    assert with_sites(f) is None


def test_one_look_in_each_iteration_of_an_innermost_loop() -> None:
    """Whether any site in it is asked; a loop in its ``else`` has its own."""
    text = """
def f(x, n):
    i = 0
    while i < n:
        x[i] = i
        if x[i] > 2.0:
            i += 2
            continue
        i += 1
    else:
        for k in range(n):
            x[k] += 1.0
    return i
"""
    f = written(text)
    sites = put_sites(f)
    loop = next(site for site in sites if site.source.is_loop)
    run = next(site for site in sites if not site.source.is_loop and site.watches)
    watches = {watch for site in sites for watch in site.watches}
    assert len(watches) == 2 and watches.issubset(f.__code__.co_consts)
    assert not any(watch.on for watch in watches)
    run.enabled = True
    assert [bool(watch.on) for watch in watches if watch in run.watches] == [True]
    run.enabled = False
    loop.resuming = True
    assert loop.watches[0].on
    loop.refuse("no")
    assert not any(watch.on for watch in watches)
    assert f(np.zeros(9), 6) == written(text)(np.zeros(9), 6)
    assert pickle.loads(pickle.dumps(loop.watches[0])).on is False
