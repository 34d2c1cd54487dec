"""Comprehensions over a few known items in compiled code."""

from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc
from dcarray.core.counters import settle
from dcarray.jit.loops.syntax.syntax_facts import facts, loads, stores

pytestmark = pytest.mark.eager

X = np.linspace(0.5, 2, 30).reshape(5, 6)
K = np.arange(30).reshape(5, 6) % 7


def agree(text: str, served: int, *args: Any, **names: Any) -> None:
    """The same results with and without compiled code, of which so many runs are served."""
    f = written(text, np=np, **names)
    want = f(*[a.copy() for a in args])
    g = dc.accelerate(f)
    for _ in range(2):
        before = settle().runs
        got = g(*[a.copy() for a in args])
        assert settle().runs - before == served, dc.report().fallbacks
        assert repr(got) == repr(want)


@pytest.mark.parametrize(("body", "served"), [
    ("return sum(np.roll(np.roll(x, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)", 1),
    ("return sum([x * i for i in range(4)])", 1),
    ("c = [k * 0.5 for k in range(3)]\nz = x * c[0] + c[2]\nreturn z", 1),
    ("return max([x[k, 0] for k in range(3)]), min(x[k, 1] for k in (1, 2))", 1),
    ("i = 2\nz = [x + i for i in (5, 6)]\nw = z[0] * z[1] + i\nreturn w, i", 1),  # its names are its own
    ("return np.array([x[k, k] for k in range(5)])", 1),
    ("z = np.stack([x[k] * 2 for k in (0, 3)])\nreturn z", 1),
    ("z = sum(x[a, b] * 2 for a, b in ((0, 1), (2, 3)))\nreturn z", 1),
    ("z = sum(i * j for i in (1, 2) for j in (3, 4))\nreturn x * z", 1),
    ("return x * sum([j * 2 for i in ([1, 2], [3]) for j in i if j != 2])", 0),
    ("z = [t for t in range(200)]\nreturn x * 2, len(z)", 1),  # a loop of its own
    ("z = [v for v in (1, 2) if x[0, 0] < v]\nreturn x * 2, z", 0),  # taken by values
    ("z = (x * i for i in (1, 2))\nreturn sum(z)", 0),  # which may be used later
    ("z = {i: 2 for i in (1, 2)}\nreturn x * z[1]", 1),  # beside it
])  # fmt: skip
def test_results(body: str, served: int) -> None:
    agree("def f(x):\n    " + body.replace("\n", "\n    "), served, X)


def test_functions_with_comprehensions_are_inlined() -> None:
    """Before Python 3.12 the variables that they read are cells."""
    text = """
        def near(x):
            return sum(np.roll(np.roll(x, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1))
        def f(x):
            for _ in range(3):
                x = (near(x) + x) % 5
            return x
    """
    f = written(text, np=np)
    want = f(K)
    before = settle().loops
    assert repr(dc.accelerate(f)(K)) == repr(want) and settle().loops == before + 1


def test_a_global_name_like_that_of_a_comprehension_is_not_read() -> None:
    f = written("def f(x):\n    return x + sum(i * 2 for i in (1, 2))", i=7, np=np)
    g = dc.accelerate(f)
    for k in range(3):
        f.__globals__["i"] = k
        before = settle().runs
        assert repr(g(X)) == repr(X + 6) and settle().runs == before + 1


def test_an_error_in_a_comprehension_is_raised_in_it() -> None:
    f = written("def f(x):\n    y = x * 2\n    return sum([y[k, 9 * k] for k in range(3)])", np=np)
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        dc.accelerate(f)(X)


def test_names_of_comprehensions() -> None:
    import ast

    node = ast.parse("z = [i + u for i in i if (j := i) for k in v(i)]").body[0]
    assert stores(node) >= {"z", "j"}  # the walrus binds outside
    node = ast.parse("z = [i + u + k for i in i if w for k in v(i)]").body[0]
    assert stores(node) == {"z"} and loads(node) == {"i", "u", "w", "v"}
    assert ast.ListComp in facts(node).kinds
