"""Functions that are defined in functions, closures and lambdas, called in loops."""

import functools
import itertools
import math
import warnings
import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from outcomes import outcome
from written import written

import dcarray as dc
from dcarray.core.counters import settle
from dcarray.jit.loops.sites.functions import put_sites, remove_sites, with_sites

pytestmark = pytest.mark.eager


# Programs whose loops are compiled, with how many runs of loops at least.
COMPILED = {
    "no variables of others": """
        def f(n):
            def g(x):
                return x * x + 1.0
            s = 0.0
            for i in range(n):
                s += g(i * 0.5)
            return s
    """,
    "a docstring over several lines": '''
        def f(n):
            def g(x):
                """Return something

                of x."""
                return x * x + 1.0
            s = 0.0
            for i in range(n):
                s += g(i * 0.5)
            return s
    ''',
    "a number": """
        def f(n):
            k = 0.25
            def g(x): return x * k + 1.0
            s = 0.0
            for i in range(n):
                s += g(i)
            return s
    """,
    "an int that an array has as length": """
        def f(n):
            m = n + 1
            u = np.zeros(m)
            def g(i): return (i * 3) % m
            for i in range(n):
                u[g(i)] += i
            return u
    """,
    "an array": """
        def f(n):
            w = np.arange(n) * 0.5
            def g(i): return w[i] * 2
            s = 0.0
            for i in range(n):
                s += g(i)
            return s
    """,
    "an array that is written": """
        def f(n):
            w = np.arange(n) * 0.5
            def g(i):
                w[i] += i
                return w[i - 1]
            s = 0.0
            for i in range(1, n):
                s += g(i)
            return s, w
    """,
    "an array that the loop writes, too": """
        def f(n):
            w = np.arange(n) * 0.5
            def g(i):
                w[i] += i
            for i in range(1, n):
                w[i - 1] = w[i] * 2
                g(i)
            return w
    """,
    "made by one function": """
        def make(k):
            def g(x): return k * x
            return g
        def f(n):
            g, h = make(2.0), make(3.0)
            s = 0.0
            for i in range(n):
                s += g(i) - h(i * 0.5)
            return s
    """,
    "of a global name": """
        def make(k):
            def g(x): return k * x
            return g
        h = make(3.5)
        def f(n):
            s = 0.0
            for i in range(n):
                s += h(i * 0.5)
            return s
    """,
    "lambdas": """
        def f(n):
            c = 3.0
            g, h = lambda x: x * c, lambda x, a=2: x + c * a
            s = 0.0
            for i in range(n):
                s += g(i * 0.5) - h(i)
            return s
    """,
    "a global lambda": """
        g = lambda x, a=2.0: math.exp(-x * x) * a
        def f(n):
            s = 0.0
            for i in range(n):
                s += g(i * 0.5)
            return s
    """,
    "a lambda over several lines": """
        def f(n):
            g = (lambda x:
                 x * 2
                 + 1)
            s = 0.0
            for i in range(n):
                s += g(i * 0.5)
            return s
    """,
    "a module of the function": """
        def f(n):
            import math as m
            from math import cos
            def g(x): return m.sin(x) + cos(x)
            s = 0.0
            for i in range(n):
                s += g(i) + m.sqrt(i)
            return s
    """,
    "functions that call each other": """
        def f(n):
            a = 2.0
            def g(x): return a * x
            def h(x): return g(x) + 1.0
            s = 0.0
            for i in range(n):
                s += h(i * 0.25)
            return s
    """,
    "functions as arguments": """
        def integrate(g, a, b, n):
            h = (b - a) / n
            s = 0.0
            for i in range(n):
                s += g(a + (i + 0.5) * h)
            return s * h
        def f(n):
            w = 2.0
            return [integrate(lambda x: math.sin(w * x), 0.0, k, n) for k in range(3)]
    """,
    "functions as arguments of functions that are inlined": """
        def twice(g, x): return g(g(x))
        def f(n):
            w = 2.0
            s = 0.0
            for i in range(n):
                s += twice(lambda_, i * 0.5) if False else twice(g, i * 0.5)
            return s
        def g(x): return x * 0.5 + 1
        lambda_ = g
    """,
    "a counter": """
        def f(n):
            hits = 0
            def g(x):
                nonlocal hits
                if x > 0.5:
                    hits += 1
            x = 0.1
            for i in range(n):
                x = 3.7 * x * (1 - x)
                g(x)
            return x, hits
    """,
    "a counter inside of an expression": """
        def f(n):
            hits = 0
            def g(x):
                nonlocal hits
                if x > 0.5: hits += 1
                return x * 0.5
            s = 0.0
            x = 0.1
            for i in range(n):
                x = 3.7 * x * (1 - x)
                s += g(x)
                if g(x * 0.5) < 0.1:
                    s = 2.0 - 0.5 * g(x)
            return s, hits
    """,
    "returns before the end": """
        def f(n):
            calls = 0
            def g(x):
                nonlocal calls
                calls += 1
                if x > 0.5: return 1.0 - x
                return (
                    x * 2)
            s = 0.0
            x = 0.3
            for i in range(n):
                x = 3.9 * x * (1 - x)
                s += g(x)
            return s, calls
    """,
    "one variable of two functions": """
        def f(n):
            a, b = 0, 0.0
            def up():
                nonlocal a, b
                a += 2
                b += a * 0.5
            def down():
                nonlocal a
                a -= 1
            for i in range(n):
                up()
                down()
            return a, b
    """,
    "defaults that change": """
        def f(n):
            found = []
            for k in range(3):
                def g(x, k=k): return x * k + 1.0
                s = 0.0
                for i in range(n): s += g(i * 0.5)
                found.append(s)
            return found
    """,
    "an object": """
        class Rng:
            def __init__(self): self.state = 42
            def next(self):
                self.state = (1103515245 * self.state + 12345) % 2147483648
                return self.state / 2147483648.0
        def f(n):
            r = Rng()
            def g(): return r.next()
            hits = 0
            for i in range(n):
                x = g()
                if x < 0.5:
                    hits += 1
            return hits, r.state
    """,
    "methods inside of expressions": """
        class Rng:
            def __init__(self): self.state = 42
            def next(self):
                self.state = (1103515245 * self.state + 12345) % 2147483648
                return self.state / 2147483648.0
        def f(n):
            r = Rng()
            s = 0.0
            for i in range(n):
                if r.next() < 0.25: s += r.next()
                else: s = s - 0.5 * r.next()
            return s, r.state
    """,
    "classes and functions that change": """
        class A:
            def __init__(self, x): self.x, self.v = x, 0.1
            def step(self, dt): self.x += self.v * dt; self.v -= self.x * dt
        class B(A):
            def step(self, dt): self.x += 2 * self.v * dt; self.v -= self.x * dt
        def run(p, n):
            for i in range(n): p.step(1e-3)
            return p.x, p.v
        def f(n):
            return run(A(1.0), n), run(B(1.0), n), run(A(2.0), n), run(B(0.5), n)
    """,
    "a loop that binds a variable of the function around it": """
        def f(n):
            a, s = 1, 0.0
            def g(k):
                nonlocal a, s
                for i in range(k):
                    a += i
                    s += a * 0.5
                return s
            return [g(n), g(7), a, s]
    """,
}
# Programs that are right, in whichever way they run.
OTHERS = {
    "a loop that binds a variable of the function around it, as what it calls does": """
        def f(n):
            a, s = 1, 0.0
            def h():
                nonlocal a
                a += 2
                return a
            def k(): return a * 3
            def g(m):
                nonlocal a, s
                for i in range(m):
                    a += i
                    s += a * 0.5 + h() + k()
                for i in range(m):
                    s += k()
                    a = i
                return s
            return [g(n), g(7), a, s]
    """,
    "the loop reads the variable": """
        def f(n):
            a = 1
            def g():
                nonlocal a
                a += 2
            s = 0
            for i in range(n):
                g()
                s += a
            return s, a
    """,
    "the loop binds the variable": """
        def f(n):
            a = 1
            def g(x): return a * x
            s = 0
            for a in range(n):
                s += g(a)
            return s, a
    """,
    "the variable is unbound": """
        def f(n):
            def g(x): return a * x
            s = 0
            for i in range(n):
                s += g(i)
            a = 2
            return s
    """,
    "the variable is unbound in the middle": """
        def f(n):
            a, s = 1, 0
            def g(x): return a * x
            for i in range(n):
                s += g(i)
                if i == 5: del a
            return s
    """,
    "the function is bound anew": """
        def f(n):
            s = 0.0
            def g(x): return x + 1
            for i in range(n):
                s += g(i)
                if i == 7:
                    def g(x): return x - 1
            return s
    """,
    "another function each time": """
        def f(n):
            gs = [lambda x, k=k: x * k for k in range(7)]
            s = 0.0
            for g in gs:
                for i in range(n): s += g(i)
            return s
    """,
    "late binding": """
        def f(n):
            gs = []
            for k in range(3):
                gs.append(lambda x: x * k)
            k = 7
            s = 0.0
            g = gs[1]
            for i in range(n): s += g(i)
            return s
    """,
    "recursion": """
        def f(n):
            def g(k): return 1 if k < 2 else k * g(k - 1)
            s = 0
            for i in range(12): s += g(i)
            return s
    """,
    "a recursive function with loops": """
        def f(n):
            total = 0
            def g(depth):
                nonlocal total
                for i in range(3):
                    total += i
                    if depth: g(depth - 1)
            g(3)
            return total
    """,
    "the same function, in frames of its own": """
        def f(n, depth=3):
            k = depth * 0.5
            def g(x): return k * x
            s = f(n, depth - 1) if depth else 0.0
            for i in range(n): s += g(i)
            return s
    """,
    "reads before a call that binds": """
        def f(n):
            a, s = 1, 0
            def g():
                nonlocal a
                a += 1
                return a
            def h():
                return a + g() + a * g()
            for i in range(n):
                s += h()
            return s, a
    """,
    "in place before a call": """
        def f(n):
            u = np.ones(3)
            s = np.zeros(3)
            c = 0
            def g():
                nonlocal c
                c += 1
                u[:] = u * 1.5
                return 1.0
            for i in range(5):
                s = u * 2 + g()
                s = s + g()
            return s, u, c
    """,
    "short circuits": """
        def f(n):
            c, s = 0, 0
            def g(x):
                nonlocal c
                c += 1
                return x % 3 == 0
            for i in range(n):
                if i % 2 == 0 and g(i): s += 1
                s += 2 if g(i) else 3
                if 0 <= g(i) < 1: s += 5
            return s, c
    """,
    "a branch of several": """
        def f(n):
            c, s = 0, 0
            def g(x):
                nonlocal c
                c += 1
                return x % 3 == 0
            for i in range(n):
                if i % 4 == 0: s += 1
                elif g(i): s += 2
                elif i % 5 == 0 : s += 3; s += g(i) * 2
                else: s -= g(i)
                if i == 7: s += 1; t = 2 + g(i)
                while g(i + c):
                    s += 1
            return s, c
    """,
    "an exception in the middle": """
        def f(n):
            c = 0
            def g(x):
                nonlocal c
                c += 1
                return 1 / (x - 7)
            s = 0.0
            try:
                for i in range(n): s += g(i)
            except ZeroDivisionError:
                s = -s
            return s, c
    """,
    "names like those of compiled code": """
        def f(n):
            g__cell__a = 2.0
            a = 3.0
            def g(x): return a * x + g__cell__a
            s = 0.0
            for i in range(n): s += g(i) * g__cell__a
            return s
    """,
}
HEAD = {"np": np, "math": math}


def ran(text: str, count: int = 3) -> int:
    """Compare a program plainly and accelerated, called several times; returns how many of its loops and runs
    of statements ran as compiled code."""
    want = [outcome(written(text, **HEAD), (30 + k,)) for k in range(count)]
    f = written(text, **HEAD)
    accelerated = dc.accelerate(f)
    before = settle().loops + settle().runs
    assert [outcome(accelerated, (30 + k,)) for k in range(count)] == want
    for one in list(f.__globals__.values()):
        if type(one) is type(f):
            remove_sites(one)
    return settle().loops + settle().runs - before


@pytest.mark.parametrize("name", COMPILED)
def test_loops_that_are_compiled(name: str) -> None:
    with_sites_before = settle().loops
    assert ran(COMPILED[name]) >= 3 and settle().loops - with_sites_before >= 3, dc.report()


@pytest.mark.parametrize("name", OTHERS)
def test_loops_that_are_right(name: str) -> None:
    ran(OTHERS[name])


def test_functions_in_functions_have_sites() -> None:
    f = written("""
        def f(n):
            k = 2.0
            def g(u):
                for i in range(1, len(u)):
                    u[i] = u[i - 1] * 0.5 + k
                return u
            def h(n):
                u = np.zeros(n)
                print(n)
                return g(u)
            return h(n)
    """, np=np, print=lambda n: None)  # fmt: skip
    want = f(9)
    made = with_sites(f)
    assert made is not None and any(site.source.source.startswith("for i in") for site in made[1])
    put_sites(f)
    for site in made[1]:
        site.heat()
    before = settle().loops + settle().runs
    assert repr(f(9)) == repr(want) and settle().loops + settle().runs > before
    remove_sites(f)


def test_what_a_module_is_asked_for_may_be_bound_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
        def f(n):
            import math as m
            def g(x): return m.sin(x)
            s = 0.0
            for i in range(n):
                s += g(i) + m.cos(i)
            return s
    """
    f = written(text)
    accelerated = dc.accelerate(f)
    assert accelerated(9) == f(9)
    monkeypatch.setattr(math, "sin", lambda x: 0.5)
    assert accelerated(9) == f(9)
    monkeypatch.setattr(math, "cos", lambda x: 0.25)
    assert accelerated(9) == f(9) == 9 * 0.75


class Counting:
    def __init__(self, f: Any) -> None:
        functools.update_wrapper(self, f)

    def __call__(self, x: Any) -> float:
        return 0.5


OWNERS = {"m": math, "np": np, "np.linalg": np.linalg}


@pytest.mark.parametrize(("call", "other"), [
    *itertools.product(
        ["m.sin(i)", "sin(i)", "np.sqrt(i)", "np.linalg.norm(a)", "np.sum(a)"],
        [lambda f: functools.wraps(f)(lambda x: 0.25), Counting],
    ),
    ("m.pi", lambda _: 3), ("np.pi", lambda _: True), ("np.linalg.norm(a)", lambda _: len),
    ("np.linalg", lambda _: SimpleNamespace(norm=len)),
])  # fmt: skip
def test_what_has_the_name_of_an_object_is_not_taken_for_it(
    call: str, other: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, _, name = call.partition("(")[0].rpartition(".")
    monkeypatch.setattr(OWNERS[owner or "m"], name, other(getattr(OWNERS[owner or "m"], name)))
    f = written(f"""
        import math as m
        from math import sin
        def f(a):
            s = 0.0
            for i in range(len(a)):
                s += {call + ".norm(a)" * (name == "linalg")} * a[i]
            return s
    """, np=np)  # fmt: skip
    accelerated, a = dc.accelerate(f), np.arange(9.0)
    assert [accelerated(a) for _ in range(3)] == [f(a)] * 3


def test_variables_of_functions_are_not_kept_alive() -> None:
    """Those of functions around the ones for which code was compiled, and that have returned."""
    alive: weakref.WeakSet[Any] = weakref.WeakSet()

    class Held:
        factor = 2.0

    def f(n: int) -> float:
        held = Held()
        alive.add(held)
        w = held.factor * n

        def step(x: float) -> float:
            return x * w + held.factor

        s = 0.0
        for k in range(n):
            s = step(s * 0.1) + k
        return s

    accelerated, before = dc.accelerate(f), settle().loops + settle().runs
    for n in (300, 300, 301, 302):
        assert accelerated(n) == f(n) and not alive
    assert settle().loops + settle().runs > before


@pytest.mark.eager(debug=False)
def test_warnings_of_the_source_are_not_repeated() -> None:
    with pytest.warns(SyntaxWarning, match="literal"):
        f = written("def f(n):\n    t = 0\n    for i in range(n):\n        if i is 5: t += 1\n    return t")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert dc.accelerate(f)(300) == 1
    assert not caught
