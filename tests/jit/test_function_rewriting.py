"""Functions rewritten with loop sites behave as before."""

from __future__ import annotations

import ast
import inspect
import linecache
import pickle
import textwrap
import traceback
from types import FunctionType
from typing import Any
from weakref import ref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written import written

from dcarray.jit.loops.entry.globals import originals
from dcarray.jit.loops.sites import loop_sites
from dcarray.jit.loops.sites.rewrite import ModuleRewrites, with_loop_sites
from dcarray.jit.loops.syntax.liveness import Liveness
from dcarray.jit.loops.syntax.source import source_of


def sites_of(code: Any) -> list[loop_sites.LoopSite]:
    return [c for c in code.co_consts if isinstance(c, loop_sites.LoopSite)]


class Oracle:
    """Serves every loop by running its source with the names that it is given and no others."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.served = 0
        oracle = self

        def enter(self: loop_sites.LoopSite, *values: Any) -> Any:
            return oracle.run(self, values)

        monkeypatch.setattr(loop_sites.LoopSite, "enter", enter)

    def run(self, site: loop_sites.LoopSite, values: tuple[Any, ...]) -> Any:
        place = site.loop
        given = dict(zip(place.needed, values, strict=True))
        names = {n: site._names[n] for n in place.others if n in site._names}
        scope = {**names, **given}
        loop = ast.parse(place.source).body[0]
        if isinstance(loop, ast.For) and not eval(ast.unparse(loop.iter), scope):
            return ()
        try:
            exec(place.source, scope)
        except Exception:
            return ()
        if not all(name in scope for name in place.live):
            return ()
        self.served += 1
        return (tuple(scope[name] for name in place.live),)


def agree(f: FunctionType, *args: Any) -> None:
    def run() -> Any:
        try:
            return f(*args)
        except Exception as error:
            return type(error), str(error), traceback.extract_tb(error.__traceback__)[-1].lineno

    code = f.__code__
    want = run()
    made = with_loop_sites(f)
    if made is not None:
        f.__code__ = made
        assert run() == want
        f.__code__ = code


# ---- random programs ---------------------------------------------------------------------------------
NAMES = "abcde"
names = st.sampled_from(NAMES)
atoms = st.one_of(names, st.integers(0, 3).map(str))
exprs = st.one_of(  # no products: numbers that are squared again and again take all time there is
    atoms,
    st.tuples(atoms, st.sampled_from(["+", "-", "%", "//"]), atoms).map(" ".join),
)
tests = st.tuples(atoms, st.sampled_from(["<", ">", "=="]), atoms).map(" ".join)


def block(inner: Any) -> Any:
    return st.lists(inner, min_size=1, max_size=3).map(
        lambda parts: [line for part in parts for line in part]
    )


def indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


simple = st.one_of(
    st.tuples(names, exprs).map(lambda p: [f"{p[0]} = {p[1]}"]),
    st.tuples(names, exprs).map(lambda p: [f"{p[0]} += {p[1]}"]),
    st.tuples(names, names, exprs).map(lambda p: [f"{p[0]}, {p[1]} = {p[2]}, {p[0]}"]),
    names.map(lambda n: [f"del {n}"]),
)
jumps = st.sampled_from([["break"], ["continue"], ["return a"]])


def counted(test: str, body: list[str]) -> list[str]:
    """A loop with a counter of its own, so that it ends whatever loops there are inside."""
    w = f"w{sum('while' in line for line in body)}"
    return [f"{w} = 0", f"while {w} < 3 and {test}:", *indent([f"{w} = {w} + 1", *body])]


def compound(inner: Any) -> Any:
    body = block(inner)
    loop_body = st.tuples(body, st.one_of(st.just([]), st.just([]), jumps), tests).map(
        lambda p: p[0] if not p[1] else [*p[0], f"if {p[2]}:", *indent(p[1])]
    )
    return st.one_of(
        st.tuples(tests, body, body).map(lambda p: [f"if {p[0]}:", *indent(p[1]), "else:", *indent(p[2])]),
        st.tuples(tests, body).map(lambda p: [f"if {p[0]}:", *indent(p[1])]),
        st.tuples(names, atoms, loop_body).map(
            lambda p: [f"for {p[0]} in range({p[1]} % 5):", *indent(p[2])]
        ),
        st.tuples(tests, loop_body).map(lambda p: counted(*p)),
        st.tuples(body, names, body).map(
            lambda p: ["try:", *indent(p[0]), "except ZeroDivisionError as x:", *indent(p[2])]
        ),
        st.tuples(body, body).map(lambda p: ["try:", *indent(p[0]), "finally:", *indent(p[1])]),
        st.tuples(body).map(lambda p: ["with suppress(ZeroDivisionError):", *indent(p[0])]),
    )


programs = block(st.recursive(simple, compound, max_leaves=12))


@settings(max_examples=300, derandomize=True, deadline=None)
@given(body=programs, a=st.integers(0, 4), b=st.integers(-2, 2))
def test_rewritten_programs_behave_as_before(body: list[str], a: int, b: int) -> None:
    from contextlib import suppress

    text = "\n".join(["def f(a, b):", *indent([*body, "return a, b, c"])])
    f = written(text, suppress=suppress, c=7, d=8)
    with pytest.MonkeyPatch.context() as patch:
        Oracle(patch)
        agree(f, a, b)


def test_the_oracle_runs_loops(monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert oracle.served == 2


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
    first, second = sites_of(with_loop_sites(f))
    assert first.loop.needed == ("n", "x", "y") and first.loop.live == ()
    assert first.loop.others == ("K", "g", "range")
    assert second.loop.needed == ("n", "x") and second.loop.live == ("last",)
    assert first.loop.source.startswith("for k in range(1, n):\n    t = x[k]\n")


def test_conditionally_bound_live_names_are_needed() -> None:
    f = written("""
        def f(n, x):
            best = x[0]
            for k in range(n):
                if x[k] > best:
                    best = x[k]
            return best
    """)
    (site,) = sites_of(with_loop_sites(f))
    assert site.loop.needed == ("best", "n", "x") and site.loop.live == ("best",)


def test_no_sites_where_names_may_be_unbound() -> None:
    f = written("""
        def f(n, x):
            if n > 3:
                t = 1
            for k in range(n):
                x[k] = t
    """)
    assert with_loop_sites(f) is None


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
    (site,) = sites_of(with_loop_sites(f))  # the text of the other one would be another with less indentation
    assert site.loop.line == 10 and ast.parse(site.loop.source)


# ---- eligible loops -----------------------------------------------------------------------------------
@pytest.mark.parametrize("body", [
    "for k in f(x):\n    n = k",
    "for k in zip(x, f(x)):\n    n = k",
    "for k in zip(x, strict=True):\n    n = k",
    "for k in [x for x in n]:\n    n = k",
    "for x[0] in range(n):\n    n = k",
    "for k in range(*x):\n    n = k",
    "for k in range(n):\n    return k",
    "for k in range(n):\n    n = k\nelse:\n    n = 3",
    "for k in range(n):\n    n = [x for x in n]",
    "for k in range(n):\n    n = lambda: 3",
    "for k in range(n):\n    def n(): pass",
    "for k in range(n):\n    import os",
    "for k in range(n):\n    x = f(**n)",
    "for k in range(n):\n    x = f(*n)",
    "for k in range(n):\n    with n: pass",
    "for k in range(n):\n    try: pass\n    finally: pass",
    "for k in range(n):\n    del x",
    "while (n := n - 1):\n    pass",
    "while x.pop():\n    n = 2",
    "while f():\n    n = 2",
    "global t\nfor k in range(n):\n    t = n",
])  # fmt: skip
def test_ineligible_loops(body: str) -> None:
    f = written("def f(n, x):\n" + textwrap.indent(body, "    ") + "\n    return n\n")
    assert with_loop_sites(f) is None


def test_loops_inside_ineligible_loops() -> None:
    f = written("""
        def f(n, x):
            for k in range(n):
                for j in range(k):
                    x[j] = k
                if x[0]:
                    return
            while True:
                while x[0] > 3:
                    x[0] -= 1
                if x[0]:
                    return
    """)
    assert [site.enabled for site in sites_of(with_loop_sites(f))] == [True, True]
    assert [site.loop.line for site in sites_of(with_loop_sites(f))] == [4, 9]


def test_loops_inside_eligible_loops() -> None:
    f = written("""
        def f(n, x):
            for k in range(n):
                for j in range(k):
                    x[j] = k
    """)
    outer, inner = sites_of(with_loop_sites(f))
    assert outer.enabled and not inner.enabled and inner.loop.needed == ("k", "x")


def test_functions_that_read_frames_are_not_rewritten() -> None:
    assert with_loop_sites(written("def f(n):\n    for k in range(n): j = k\n    return locals()")) is None
    assert with_loop_sites(written("def f(n):\n    for k in range(n): j = k\n    return eval('j')")) is None


# ---- the function stays what it is ------------------------------------------------------------------------
def test_closures_and_inner_functions() -> None:
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
    made = with_loop_sites(f)
    (site,) = sites_of(made)
    assert site.loop.needed == ("n", "step", "x") and made.co_freevars == ("step",)
    f.__code__ = made
    assert f(4)[0] == 12 and f(4)[1]() == 3


def test_lines_and_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    f = written("""
        def f(n,
              x):
            for k in range(n):

                x = x + \\
                    1 // (2 - k)

            return x
    """)
    plain = f.__code__
    made = with_loop_sites(f)
    assert made.co_firstlineno == plain.co_firstlineno and made.co_name == "f"
    assert {line for *_, line in made.co_lines() if line} == {line for *_, line in plain.co_lines()}
    agree(f, 5, 1)
    frames = []
    for code in (plain, made):
        f.__code__ = code
        with pytest.raises(ZeroDivisionError) as caught:
            f(5, 1)
        frames.append(traceback.extract_tb(caught.value.__traceback__)[-1])
    first, second = frames
    assert (first.lineno, first.end_lineno, first.colno, first.end_colno, first.line, first.name) == (
        second.lineno, second.end_lineno, second.colno, second.end_colno, second.line, second.name
    )  # fmt: skip


def test_no_names_are_added() -> None:
    f = written("def f(n):\n    for k in range(n):\n        t = k\n    return t")
    made = with_loop_sites(f)
    assert set(made.co_varnames) == set(f.__code__.co_varnames)
    assert set(made.co_names) == {"range", "enabled", "enter", "leave"}


def test_rewritten_functions_can_be_sent_to_other_processes() -> None:
    f = written("def f(n):\n    for k in range(n):\n        t = k\n    return t")
    made = with_loop_sites(f)
    (site,) = sites_of(made)
    sent = pickle.loads(pickle.dumps(site))
    f.__code__ = made.replace(co_consts=tuple(sent if c is site else c for c in made.co_consts))
    assert f(3) == 2


def test_changed_files_have_no_source() -> None:
    f = written("def f(n):\n    for k in range(n):\n        t = k\n    return t")
    lines = linecache.cache[f.__code__.co_filename][2]
    lines[2] = "        t = k + 1\n"
    assert source_of(f, f.__code__) is None and with_loop_sites(f) is None
    lines[2] = "        t = k\n"
    assert source_of(f, f.__code__) is not None
    del linecache.cache[f.__code__.co_filename]
    assert source_of(f, f.__code__) is None


def test_assertions_rewritten_by_pytest_have_no_source() -> None:
    def f(n: int) -> int:
        for k in range(n):
            assert k == k
        return n

    assert with_loop_sites(f) is None


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
    made = with_loop_sites(f)
    assert made is not None and len(sites_of(made)) == 1
    agree(f, 3)


def test_the_source_of_this_file() -> None:
    source = source_of(indent, indent.__code__)
    assert source is not None and source.text(source.tree) == inspect.getsource(indent).rstrip()
    assert Liveness(source.tree, frozenset()) is not None


def test_functions_get_their_original_code_back() -> None:
    f = written("""
        def helper(n):
            for k in range(n):
                t = k
            return t

        def other(n):
            for k in range(n):
                t = k

        def f(n):
            return helper(n) + 1
    """)
    helper, other = f.__globals__["helper"], f.__globals__["other"]
    codes = [g.__code__ for g in (f, helper, other)]
    rewrites = ModuleRewrites(f.__globals__)
    for _ in range(2):
        rewrites.put(f)
        assert f.__code__ is codes[0] and other.__code__ is codes[2]
        assert helper.__code__ is not codes[1] and originals[id(helper.__code__)][1] is codes[1]
        rewrites.put(f)
        changed = helper.__code__
        rewrites.restore()
        assert [g.__code__ for g in (f, helper, other)] == codes
    rewrites.put(f)
    assert helper.__code__ is changed  # and its sites are the same
    helper.__code__ = codes[2]  # somebody else's
    rewrites.restore()
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
    rewrites = ModuleRewrites(f.__globals__)
    first, second = f([0] * 3), f([0] * 3)
    code = first.__code__
    for one in (first, second, first):
        rewrites.put(one)
        assert len(sites_of(one.__code__)) == 1 and (first.__code__ is code or second.__code__ is code)
        rewrites.restore()
        assert first.__code__ is second.__code__ is code
    gone = ref(first)
    del first, one
    assert gone() is None  # nor are they kept, with all that they hold
