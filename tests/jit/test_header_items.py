"""Loops over what NumPy, ``sorted`` and the like make: the program computes it, once, and compiled code goes
through it."""

import sys
import traceback
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc
from dcarray.jit.loops.sites.functions import put_sites
from dcarray.jit.loops.sites.headers import Headers
from dcarray.jit.loops.sites.site_server import SiteServer
from dcarray.tiering import admission

pytestmark = pytest.mark.eager(eager_below=0)

HEADS = {
    "for i in np.argsort(x)[::-1]": True, "for i in sorted([3, 1, 2])": True,
    "for i, v in enumerate(np.sort(x))": True, "for i in reversed(sorted(range(4)))": True,
    "for i in np.flatnonzero(x > 1).tolist()": True, "for i in np.random.default_rng(3).permutation(5)": True,
    "for i, j in np.argwhere(np.outer(x, x) > 1)": None, "for (i, v) in sorted(zip([2, 0], [1, 5]))": True,
    "for i in np.ndindex(3)": None, "for i in told(sorted)([2, 1])": False,
    "for i in sorted(k for k in range(3))": False, "for i in sorted([2, 1], key=lambda k: k)": False,
}  # fmt: skip
TEXT = """
import numpy as np
def told(one):
    return one
def f(x, stop):
    total, last = 0.0, -1
    {}:
        if x[i] > stop:
            break
        total += x[i] * 2.0
        last = i
    else:
        total += 1000.0
    return total, last
"""


def same(text: str, *args: Any, runs: int = 4) -> None:
    functions = written(text), dc.accelerate(written(text))
    for k in range(runs):
        results = []
        for f in functions:
            try:
                results.append(repr(f(*args) if args else f([0.5, 1.5, 2.5] if k != 2 else [0.5])))
            except Exception as error:
                frames = traceback.extract_tb(error.__traceback__)
                results.append((repr(error), [one.lineno for one in frames if one.name in ("f", "tolist")]))
        assert results[0] == results[1]


@pytest.mark.parametrize("head", [*HEADS])
@pytest.mark.parametrize("stop", [99.0, 2.5])
def test_results_are_pythons(head: str, stop: float) -> None:
    same(TEXT.format(head), np.array([3.0, 1.0, 2.0, 0.5, 4.0]), stop)
    compiled = not [one for one in dc.report().fallbacks if one.kind == "loop"] and dc.report().loops > 0
    assert HEADS[head] in (None, compiled)


@pytest.mark.parametrize("items", ["x", "x.tolist()", "box.xs", "np.sort(x)[::-1]", "x[:, None]"])
def test_the_rest_of_numbered_items_is_compiled(items: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_SLOW_ITERATION", 1e9)
    monkeypatch.setattr(admission, "_SOON", 0.0)
    value = "v[0]" if "None" in items else "v"
    head = f"def f(x, box):\n    t = 0.0\n    for k, v in enumerate({items}):\n"
    f = written(f"import numpy as np\n{head}        t = t * 0.5 + {value} * k\n    return t, k, {value}")
    x, box = np.linspace(3.0, 5.0, 2000) ** 3 % 1.0, SimpleNamespace(xs=[0.5, 3.0, 2.5] * 700)
    wanted = f(x, box)
    loops = [site for site in put_sites(f) if site.resumable]
    for _ in range(3):
        for loop in loops:
            loop.resuming = True
        assert f(x, box) == wanted
    assert bool(dc.report().loops) == bool(loops) == ("None" not in items)


COUNTED = """
class Rows(list):
    def tolist(self):
        self.calls = getattr(self, "calls", 0) + 1
        {}
        return [*self]
rows = Rows([2, 0, 1, 1])
def f(x):
    t = 0.0
    for i in rows.tolist():
        t += x[i] {}
    return t, rows, rows.calls
"""
MORE = ["pass", "if self.calls == 2: raise KeyError(4)", "self.append(1)"]
BODY = ["", "* rows[i]", "; rows.append(0) if len(rows) < 9 else 0", "/ (i - 1)"]


@pytest.mark.parametrize("more", MORE)
@pytest.mark.parametrize("body", BODY)
def test_items_are_computed_once(more: str, body: str) -> None:
    same(COUNTED.format(more, body))


@pytest.mark.parametrize("test", ["q.item() < 20", "q.uniform < 0.9", "max(len(x), q.uniform) < 20"])
def test_conditions_that_methods_compute_are_computed_once(test: str) -> None:
    text = f"""
    import numpy as np
    class Source:
        def __init__(self): self.rng, self.seen = np.random.default_rng(3), np.zeros(2)
        def item(self):
            self.seen[0] += 1.0
            return self.seen[0]
        @property
        def uniform(self): return self.rng.random()
    def f(x):
        q, t, k = Source(), 0.0, 0
        while {test} and k < 30:
            t += x[k % 3]
            k += 1
        return t, k, q.seen[0], q.uniform
    """
    same(text, np.ones(3))


def test_items_that_a_call_of_the_same_function_computes() -> None:
    text = """
def f(n, x):
    t = 0.0
    for i in sorted([f(n - 1, x), 0.25 * n] if n else [1.0, 2.0]):
        t += i * x[0]
    return t
"""
    same(text, 4, [0.5])


def test_items_are_dropped_if_an_exception_comes_before_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def f(xs, y):\n    t = 0.0\n    for x in sorted(xs):\n        t += x * y[0]\n    return t\n"
    f, y = dc.accelerate(written(text)), np.array([2.0])
    assert f([3.0, 1.0], y) == 8.0
    with monkeypatch.context() as patch:

        def interrupted(*args: Any) -> None:
            raise KeyboardInterrupt

        patch.setattr(SiteServer, "enter", interrupted)
        with pytest.raises(KeyboardInterrupt):
            f([5.0, 7.0], y)
    with dc.options(jit="off"):
        assert f([3.0, 1.0], y) == 8.0
    assert f([1.0, 1.5], y) == 5.0


def test_items_of_each_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    f = dc.accelerate(
        written("def f(xs):\n    t = 0.0\n    for x in list(xs):\n        t += x\n    return t\n")
    )
    release, inner = Headers.release, list[Any]()

    def interrupted(self: Headers, *results: Any) -> Any:
        if not inner:
            inner.append(None)
            inner[0] = f([7.0])
        return release(self, *results)

    monkeypatch.setattr(Headers, "release", interrupted)
    assert [f(iter([1.0, 2.0])) for _ in range(3)] == [3.0] * 3 and inner == [7.0]


def test_names_that_the_header_unbinds() -> None:
    drop = "g = 2.0\ndef drop(x):\n    global g\n    del g\n    return x\n"
    loop = "def f(x, n):\n    t = 0.0\n    for v in sorted(drop(x)):\n        t += v * g\n    return t\n"
    same(drop + loop, [], 1, runs=1)


def test_a_loop_leaves_no_name_behind() -> None:
    text = "def f(n):\n    t = 0\n    for k in range(n):\n        t += k\n    return names()"
    f = written(text, names=lambda: set(sys._getframe(1).f_locals))
    assert put_sites(f)[0].resumable and f(3) == {"n", "t", "k"}
