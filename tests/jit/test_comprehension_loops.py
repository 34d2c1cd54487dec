"""Comprehensions over many items, loops with an ``else``, and names bound in conditions, in compiled code:
what Python gives, to the type."""

import math
import random
import sys
import textwrap
from typing import Any

import numpy as np
import pytest
from outcomes import outcome
from site_oracle import serve_some_resumes
from written import written

import dcarray as dc
from dcarray.core.counters import settle
from dcarray.jit.loops.tracing import comprehensions

pytestmark = pytest.mark.eager

X = np.linspace(-1.0, 2.0, 40)
L = [float(v) for v in np.cos(X)]
K = [int(v) for v in np.arange(40) * 7 % 11]
HEAD = """
import math
import numpy as np
def square(v):
    return v * v
def count(seen, v):
    seen[0] += 1
    return v > 1
def total(x, n):
    return sum(x[i] for i in range(n)) + max(v * 2 for v in x)
def peaks(x):
    return [v * 2 for v in x]
"""


LOOPS = (
    1 if sys.version_info < (3, 12) else None
)  # some sums of Python's floats are left to Python from then on


def function(body: str) -> Any:
    return written(f"{HEAD}def f(x, l, k, n):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n")


def agree(body: str, loops: int | None = 1, n: int = 40, x: Any = X, y: Any = L, k: Any = K) -> None:
    """The same with compiled code, of which so many loops are served in each call."""
    f = function(body)
    want = outcome(f, (x, y, k, n))
    g = dc.accelerate(f)
    for _ in range(2):
        before = settle().loops
        assert outcome(g, (x, y, k, n)) == want
        if loops is not None:
            assert settle().loops - before == loops, [one.function for one in dc.report().fallbacks]


# ---- reductions -----------------------------------------------------------------------------------------
REDUCTIONS = """
sum(x[i] * l[i] for i in range(n))
sum(v * w for v, w in zip(x, l))
sum(v * v for v in l)
sum(v for v in l if v > 0.5)
sum(l[i] * l[j] for i in range(n) for j in range(i) if j != 2)
sum(v for v in k)
sum(i * i % 7 for i in range(n) if i % 3 if i > 5)
sum(1 for v in x if v > 0.5)
sum(v > 0.5 for v in x)
sum((x[i] for i in range(n)), 0.5)
sum((l[i] for i in range(n)), start=2)
sum(square(v) for v in l)
sum(x[i] * x[j] for i in range(n) for j in range(i) if i != 3)
sum([math.sin(v) for v in l])
sum(i * v for i, v in enumerate(reversed(x)))
any(v > 1.9 for v in x)
any(v > 9 for v in x)
any(x[i] > x[j] + 2.5 for i in range(n) for j in range(n) if i != j)
any(i for i in range(n))
any([v > 1.9 for v in x])
all(abs(v) < 3 for v in x)
all(x[i] <= x[i + 1] for i in range(n - 1))
all(x[i] >= x[j] for i in range(n) for j in range(i))
all([v < 1.9 for v in x])
max(abs(x[i] - l[i]) for i in range(n))
max(l[i] for i in range(n) if l[i] < 0.9)
max(x[i] * x[j] for i in range(n) for j in range(i))
max(i * 7 % 11 for i in range(n))
max([v * v for v in x])
max(v > 1 for v in x)
max(np.float32(v) for v in x)
min(v for v in k)
min(l[i] - i for i in range(0, n, 3))
min(abs(x[i] - x[j]) for i in range(n) for j in range(i))
sum(max(x[i] * l[j] for j in range(n)) for i in range(n))
(x[0] if n > 3 else 0) + sum(v for v in x) * 2 - max(v for v in x)
n > 3 and any(v > 1 for v in x)
""".strip().splitlines()


@pytest.mark.parametrize("expression", REDUCTIONS)
def test_reductions(expression: str) -> None:
    """As statements of their own, and inside of a loop."""
    agree(f"return {expression}")
    agree(f"r = {expression}\nreturn r")
    inside = expression.replace("range(n)", "range(m)").replace("l[j]", "l[j % 40]")
    agree(f"r = []\ns = 0.0\nfor m in range(2, 7):\n    s += {inside}\nreturn s")


@pytest.mark.parametrize("expression", REDUCTIONS)
def test_reductions_of_little_and_of_what_is_no_number(expression: str) -> None:
    for n in (0, 1, 2):
        agree(f"return {expression}", None, n)
    nan = X.copy()
    nan[[0, 7]] = np.nan
    agree(f"return {expression}", None, 40, nan, [math.nan, *L[1:]])
    nan[:9] = [0.0, -0.0, np.inf, -np.inf, np.nan, 0.0, -0.0, 1e308, 1e308]
    with np.errstate(all="ignore"):
        agree(f"return {expression}", None, 40, nan, nan.tolist())
    agree(f"return {expression}", None, 40, X[:0], [], [])


@pytest.mark.parametrize("name", ["max", "min"])
def test_ties_and_order_of_extrema(name: str) -> None:
    for values in (
        [0.0, -0.0, 0.0], [-0.0, 0.0], [math.nan, 1.0], [1.0, math.nan, 2.0], [2.0, math.nan, 1.0],
    ):  # fmt: skip
        loops = None if math.nan in values else 1  # Python finds a NaN by identity
        agree(f"return {name}(v for v in l), {name}(v for v in x)", loops, 40, np.array(values), values)


def test_the_place_of_an_extremum_may_be_anywhere() -> None:
    agree("""
        s = 0.0
        for i in range(n):
            t = 0.5 - max(x[j] * l[i] for j in range(i + 1)) if i % 3 else x[i]
            s += t if t > 0 and any(x[j] > t for j in range(n)) else min(l[j] for j in range(n - i))
        return s
    """)


def test_sums_of_what_may_be_nothing_in_loops() -> None:
    agree("s = 0.0\nfor i in range(n):\n    s += sum(x[j] * x[i] for j in range(i))\nreturn s")
    agree("s = -0.0\nfor i in range(n):\n    s += sum(l[j] for j in range(i)) * 0.5\nreturn s")
    agree("s = -0.0\nfor i in range(n):\n    s += -sum(l[j] for j in range(i))\nreturn s", None, 1)
    agree("s = t = 0\nfor i in range(n - 3):\n    t = sum(x[j] for j in range(i))\nreturn s, t")
    agree("for i in range(n):\n    x[i] = 2.0 - sum(l[j] for j in range(i)) / 3\nreturn x")
    agree("for i in range(n):\n    l[i] = sum(l[j] for j in range(i))\nreturn l", None)  # an int, and floats
    agree("return [sum(l[j] for j in range(i)) for i in range(n)]", None)


def test_of_whole_iterables() -> None:
    agree(
        """
        s = 0.0
        for i in range(n):
            s += sum(l) + max(x) - min(l) + any(x) + all(x) + sum(range(i)) + max(range(i + 1)) + sum(x[:i])
        return s
    """,
        LOOPS,
    )


def test_in_functions_that_loops_call() -> None:
    agree(
        """
        s = 0.0
        for i in range(1, n):
            s += total(x, i) * total(l, i) + peaks(x)[i] + sum(peaks(l))
        return s
    """,
        LOOPS,
    )


def test_names_are_their_own() -> None:
    agree("i = 7\nr = sum(i for i in range(n))\nreturn i, r")
    agree("i = 3\nr = sum(i * j for i in range(i) for j in range(i))\nreturn i, r")
    agree("v = 2\nreturn sum(v * max(v for v in range(v + 1)) for v in range(n)) + v")
    agree("s = 0\nfor i in range(n):\n    s += sum(i for i in range(i)) + i\nreturn s, i")
    agree("return sum(j for i in range(n) for j in range(j))", None)  # j is not bound


def test_ints_beyond_64_bits_are_pythons() -> None:
    agree("return sum(i ** 5 * 10 ** 15 for i in range(n))", None)
    agree("return sum(2 ** 62 for i in range(n))", None)
    agree("return max(3 ** i for i in range(n))", None, 45)
    agree("return [1 << i for i in range(n)]", None, 70)


def test_errors_are_raised_where_they_are() -> None:
    agree("s = 1\nreturn sum(x[i] for i in range(n + 5))", None)
    agree("s = 1\nreturn max(v for v in l if v > 3)", None)
    agree("s = 1\nt = (s +\n     sum(1 / (i - 20)\n         for i in range(n)))\nreturn t", None)
    agree("return [1.0 / v\n    for v in k]", None)
    agree("return any(1 / (i - 20) > 0.9 for i in range(n))", None)
    agree("return any(1 / (20 - i) > 0.9 for i in range(n))")  # it has ended before
    agree("return any([1 / (20 - i) > 0.9 for i in range(n)])", None)
    agree("return all(math.sqrt(30 - i) > 3 for i in range(n))")


def test_effects_end_with_the_answer() -> None:
    agree("seen = np.zeros(1)\nr = any(count(seen, v) for v in x)\nreturn r, seen")
    agree("seen = np.zeros(1)\nr = any([count(seen, v) for v in x])\nreturn r, seen")
    agree("seen = np.zeros(1)\nr = seen[0] + sum(count(seen, v) for v in x) + seen[0]\nreturn r, seen")
    agree("seen = np.zeros(1)\nr = 0\nfor i in range(n):\n    r += any(count(seen, v + i) for v in (1, 2))"
          "\nreturn r, seen", None)  # fmt: skip


DRAWS = """
any(r.random() > 0.5 for _ in range(3))
any([r.random() > 0.5 for _ in k])
r.random() - sum(r.random() for _ in k) / r.random()
r.random() if r.random() > 0.5 else max(r.random() for _ in k)
""".strip().splitlines()


@pytest.mark.parametrize("items", DRAWS)
def test_draws_are_in_order(items: str) -> None:
    f = written(f"def f(r, k, n):\n    s = 0\n    for i in range(n):\n        s += {items}\n    return s\n")
    made = []
    for g in (f, dc.accelerate(f)):
        r = np.random.default_rng(4)
        made.append((g(r, K, 30), r.random()))
    assert made[0] == made[1]


def test_warnings_of_dead_results() -> None:
    for line in ("s = sum(x[i] / x[i - i] for i in range(m))", "s = max(x[i] / x[m - m] for i in range(m))"):
        f = function(f"for m in range(5, 9):\n    {line}\n    s = m\nreturn s")
        x = np.zeros(40)
        for g in (f, dc.accelerate(f)):
            with pytest.warns(RuntimeWarning, match="invalid value"):
                assert g(x, L, K, 40) == 8


def compensated(items: Any, start: float = 0) -> float:
    """The sum of Python 3.12 on."""
    total, lost = float(start), 0.0
    items = [*items]
    if not items:
        return start
    for x in items:
        new = total + x
        lost += (total - new) + x if abs(total) >= abs(x) else (x - new) + total
        total = new
    return total + lost if lost and math.isfinite(lost) else total


@pytest.mark.parametrize(("body", "tail"), [
    ("v for v in l", ""), ("v * 0.1 for v in l", ""), ("v for v in l if v > 0", ""),
    ("(v for v in l)", ", 1.5"), ("0.5 + SUM(l[j] for j in range(i)) for i in range(n)", ""),
    ("l[i] * l[j] for i in range(n) for j in range(i)", ""), ("(v for v in l)", ", 0"),
])  # fmt: skip
def test_compensated_sums(body: str, tail: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comprehensions, "_COMPENSATED", True)
    r = random.Random(body)
    g = dc.accelerate(function(f"return sum({body}{tail})".replace("SUM", "sum")))
    tried = [[0.1] * 40, [-0.0] * 40, [1e100, 1.0, -1e100, 2.0] * 10, [float(k) for k in range(40)]]
    for values in tried + [
        [r.uniform(-1, 1) * 10.0 ** r.randint(-20, 20) for _ in range(40)] for _ in range(8)
    ]:
        want = eval(f"SUM({body}{tail})", {"SUM": compensated, "l": values, "n": 40})
        for _ in range(2):
            before = settle().loops
            got = g(X, values, K, 40)
            assert repr(got) == repr(want) and settle().loops == before + 1


def test_compensated_sums_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comprehensions, "_COMPENSATED", True)
    agree("return sum(v * v for v in x) + sum(v * v for v in k)")
    agree("return sum(v for v in l if v > 99)")
    agree("return sum(v * 1j for v in l)", 0)


# ---- lists ----------------------------------------------------------------------------------------------
LISTS = """
[x[i] * l[i] for i in range(n)]
[v * 2.0 for v in l]
[v for v in x]
[i * i for i in range(n)]
[i % 3 == 0 for i in range(n)]
[v > 0 for v in x]
[v * 1j for v in x]
[v * 2.0 for v in l if v > 0]
[v for v in x if v > 0 if v < 1.5]
[i for i in range(n) if k[i] > 99]
[float(v) for v in x]
[int(v * 10) for v in x]
[np.float32(v) for v in x]
[sum(x[j] for j in range(n)) * i for i in range(n)]
[[i * j for j in range(n)] for i in range(n)]
[[x[i] * j for j in range(9)] for i in range(n)]
[[v, v * 2] for v in l]
np.array([math.sin(v) for v in l])
np.array([i for i in range(n)])
np.array([x[i] * 2 for i in range(n)]) * 2
np.asarray([np.float32(v) for v in x])
np.array([[i * j for j in range(n)] for i in range(n)])
[v * 2 for v in x], [i for i in range(n)]
len([v for v in l if v > 0.3])
""".strip().splitlines()


@pytest.mark.parametrize("expression", LISTS)
def test_lists(expression: str) -> None:
    agree(f"return {expression}")
    agree(f"r = {expression}\nreturn r")
    for n in (0, 1):
        agree(f"return {expression}", None, n)
    agree(f"return {expression}", None, 40, X[:0], [], [])


def test_lists_in_loops() -> None:
    agree("""
        s = 0.0
        for i in range(1, n):
            y = [x[j] * i for j in range(n)]
            z = [l[j] * i for j in range(i)]
            w = [v for v in l if v > x[i]]
            for j in range(n): s += y[j] * y[n - 1 - j] + y[-1]
            y[i] = y[0]
            s += sum(v * 2 for v in z) * z[0] + len(w) + y[i]
        return s, y, z
    """)
    agree("""
        a = [[0.0 for j in range(n)] for i in range(n)]
        for i in range(n):
            for j in range(n): a[i][j] += i * j
        return a
    """, 2)  # fmt: skip


def test_lists_are_new_and_their_own() -> None:
    agree("""
        for i in range(3):
            y = [v * i for v in x]
            z = y
        y[0] = 7.0
        return y is z, y, z
    """, None)  # fmt: skip
    agree("y = [v for v in l]\nz = [y, y]\ny[0] = 5.0\nreturn z, l")
    agree("r = [0.5 for _ in range(n)]\nreturn [r for _ in range(n)][3] is r", None)
    agree("r = [[0.5 for _ in range(n)] for _ in range(n)]\nr[0][0] = 1.0\nreturn r")


OTHERS = """
[str(v) for v in x]
[(v, "v") for v in x]
[None for v in x]
{v for v in k}
[x for i in range(n)]
[[i, x] for i in range(n)]
np.array([i for i in range(n) if i > 3])
list(v for v in k)
[[i / 7 for i in range(n)] for j in range(n) if x[j] > 0]
[x[i] * x[j] for i in range(n) for j in range(i)]
""".strip().splitlines()


@pytest.mark.parametrize("expression", OTHERS)
def test_what_is_pythons(expression: str) -> None:
    agree(f"return {expression}", 0)


# ---- conditions -----------------------------------------------------------------------------------------
def test_conditions_have_sites_of_their_own() -> None:
    for body in (
        "if any(v > 1.9 for v in x): return 3\nreturn 4",
        "if n < 3: r = 1\nelif sum(v for v in x) > 9:\n    r = str(n)\nelse: r = str(n + 1)\nreturn r",
        "assert all(v < 3 for v in x), 'no'\nreturn 4",
        "assert all(v < 1 for v in x), 'no'\nreturn 4",
    ):
        agree(body)
    agree("""
        r = []
        for i in range(5):
            if any(v > i for v in x):
                r.append(str(i))
                continue
            r.append(i)
        return r
    """, 5)  # fmt: skip
    agree("if max(v for v in l if v > 5): return 1\nreturn 2", None)
    agree("if (t := sum(v for v in x)) > 3: return t\nreturn t + 1", None)


def test_modules_get_no_new_names() -> None:
    from dcarray.jit.loops.sites.module_sites import rewritten

    text = """
x = [1.0, 2.0]
z = y = 0
if any(v > 1 for v in x):
    print(end='')
    y = 1
for i in range(3):
    y += i
else:
    z = str(y)
"""
    made = rewritten(text, "a_module.py", True)
    assert len([place for place in made.places if place.source.is_loop]) == 2
    names: dict[str, Any] = {}
    plain: dict[str, Any] = {}
    from dcarray.jit.loops.sites.site import sites_at
    from dcarray.jit.loops.sites.site_code import with_constants

    code = compile(text, "a_module.py", "exec")
    exec(with_constants(made.code, code, made.places, sites_at(made.places, names)), names)
    exec(text, plain)
    names.pop("__builtins__"), plain.pop("__builtins__")
    assert names == plain


# ---- else, and := ---------------------------------------------------------------------------------------
LEFT = [
    ("r = 0\nfor i in range(n):\n    r += i\nelse:\n    r += 1\nreturn r", 1),
    ("r = 0\nfor i in range(n):\n    r += i\n    if i == 30: break\nelse:\n    r = str(r)\nreturn r", 1),
    ("r = 0\nfor i in range(n):\n    r += i\n    if i == 30: return r\nelse:\n    return r + 1", 1),
    ("r = 0\nfor i in range(n):\n    r += i\n    if k[i] == 99: return r\n    if i == 99: break\n"
     "else:\n    i = -i\n    return r, i\nreturn r, i", 1),
    ("r = 0\nfor m in range(3):\n    for i in range(n):\n        r += i\n        if i * m == 34: break\n"
     "    else:\n        print(end='')\n        if m: continue\n        r += 9\n    r += 5\nreturn r", 3),
    ("r = i = 0\nwhile i < n:\n    i += 1\n    r += i * i\nelse:\n    r = -r\nreturn r", 1),
    ("r = i = 0\nwhile i < 0:\n    i += 1\nelse:\n    r = 3\nreturn r", 0),
    ("s = 0.0\nfor i in range(n):\n    if (v := x[i]) > 0: s += v\nreturn s, v", 1),
    ("s, y = 0.0, 5.0\nwhile (d := y * 0.25) > 0.01:\n    y -= d\n    s += d\nreturn s, y, d", 1),
    ("s, y = 0.0, 5.0\nwhile (d := math.sqrt(y) * 0.25) > 0.1:\n    y -= d * 0.1\n    s += d\n"
     "    if s > 9: break\nreturn s, y, d", 1),
    ("s, y = 0.0, 5.0\nwhile (d := math.sqrt(y)) > 9.0:\n    y -= d\n    s += d\nreturn s, y, d", 1),
    ("i = 0\nwhile (i := i + 1) < n: pass\nreturn i", 1),
    ("s = 0.0\nfor i in range(n):\n    if i % 3 and (v := x[i]) > 0: s += v\nreturn s", 1),
    ("s, m = 0, 5\nfor i in range(n):\n    if i % 3 and (m := i) > 7: s += m\n    s += m\nreturn s, m", 1),
    ("s = 0.0\nfor i in range(n):\n    s += (v := x[i] * 2) + v * v\nreturn s", 1),
    ("s, m = 0, 5\nfor i in range(n):\n    s += (m := i) if i % 3 else m\nreturn s, m", 1),
    ("m = 7.0\nfor i in range(n):\n    x[i] = (x[i] > 0 and (m := x[i] * 2) > 1) + m\nreturn x, m", 1),
    ("s, m = 0, 3\nfor i in range(n):\n    s += 0 < i < (m := i * 2) < 30\nreturn s, m", None),
]  # fmt: skip


@pytest.mark.parametrize(("body", "loops"), LEFT)
def test_else_and_bindings(body: str, loops: int | None) -> None:
    agree(body, loops)
    for n in (0, 1):
        agree(body, None, n)


def test_the_condition_of_a_while_is_asked_once() -> None:
    text = """
        def f(r, eps):
            s = 0.0
            while (d := r.random()) > eps:
                s += d
            return s, d
    """
    f, made = written(text), []
    for g in (f, dc.accelerate(f)):
        r = np.random.default_rng(5)
        made.append([(g(r, eps), r.random()) for eps in (0.1, 0.1, 2.0, 0.05)])
    assert made[0] == made[1]


def test_the_else_of_a_resumed_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    from dcarray.jit.loops.sites.functions import put_sites
    from dcarray.tiering import admission

    f = written("""
        def f(x, n):
            r = 0
            for m in range(2):
                for t in range(2, 500):
                    x[:] = x * 0.99
                    if x[0] < n: break
                else:
                    r += 1
                    if m: continue
                r += 10
            return r, x[0], t
    """)
    monkeypatch.setattr(admission, "_SLOW_ITERATION", 1e9)  # plans are made between two iterations
    monkeypatch.setattr(admission, "_SOON", 0.0)
    want = [f(np.ones(300), n) for n in (0.5, 0.0, 0.7)]
    loop = [site for site in put_sites(f) if site.source.is_loop][-1]
    serve_some_resumes(monkeypatch)
    before = dc.report().loops
    for n, expected in zip((0.5, 0.0, 0.7), want, strict=True):
        loop.resuming, loop.enabled = True, False
        assert repr(f(np.ones(300), n)) == repr(expected)
    assert dc.report().loops > before


# ---- random programs ------------------------------------------------------------------------------------
class Programs:
    """A generator of loops and statements with comprehensions."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)

    def pick(self, *options: str) -> str:
        return self.r.choice(options)

    def number(self, names: tuple[str, ...], depth: int) -> str:
        if depth == 0 or self.r.random() < 0.35:
            at = self.pick(*names) if names else "3"
            return self.pick(*names, "2", "0.5", "s", "c", f"x[{at}]", f"l[{at}]", f"k[{at}]", f"x[-{at}]")
        if self.r.random() < 0.3:
            return self.reduction(names, depth - 1)
        a, b = self.number(names, depth - 1), self.number(names, depth - 1)
        return self.pick(f"({a} {self.pick('+', '-', '*')} {b})", f"({a} if {a} > {b} else {b})", f"abs({a})")

    def reduction(self, names: tuple[str, ...], depth: int) -> str:
        name = self.pick("i", "j", "v")
        over = self.pick(
            "range(n)", "range(4)", "range(1, n, 2)", *[f"range({one})" for one in names if one != "v"]
        )
        inner = (*[one for one in names if one != name], name)
        tail = f"for {name} in {over}"
        if self.r.random() < 0.35:
            tail += f" if {self.number(inner, 0)} {self.pick('<', '>')} {self.number(inner, 1)}"
        if self.r.random() < 0.25:
            inner = (*inner, "w")
            tail += f" for w in range({self.pick('n', name, '3')})"
        item = self.number(inner, depth)
        kind = self.pick("sum", "sum", "max", "min", "any", "all")
        if kind in ("any", "all"):
            item = f"{item} {self.pick('<', '>=')} {self.number(inner, 0)}"
        return f"{kind}([{item} {tail}])" if self.r.random() < 0.2 else f"{kind}({item} {tail})"

    def line(self, names: tuple[str, ...]) -> str:
        at = names[0] if names else "2"
        return self.pick(
            f"s = s * 0.5 + {self.reduction(names, 1)}",
            f"c = {self.reduction(names, 1)}",
            f"x[{at}] = {self.number(names, 2)}",
            f"if (t := {self.number(names, 1)}) > {self.reduction(names, 1)}: s -= t",
            f"y = [{self.number((*names, 'u'), 1)} for u in range(n)]; s += y[{at}]",
            f"y = [{self.number((*names, 'u'), 1)} for u in range(n) if x[u] > s]; s += len(y)",
        )

    def program(self) -> str:
        lines = ["s, c, y, p = 0.0, 1, [], 3"]
        for _ in range(self.r.randint(1, 3)):
            if self.r.random() < 0.5:
                lines += [f"for p in range({self.pick('n', '4', '1, n')}):"]
                lines += ["    " + self.line(("p",)) for _ in range(self.r.randint(1, 2))]
                if self.r.random() < 0.3:
                    lines += [f"    if {self.reduction(('p',), 0)} > 3: break", "else:", "    s += 1"]
            else:
                lines += [self.line(())]
        return "\n".join([*lines, "return s, c, y, p"])


@pytest.mark.parametrize("first", range(0, 60, 6))
def test_random_programs(first: int) -> None:
    served = 0
    for seed in range(first, first + 6):
        body = Programs(seed).program()
        before = settle().loops
        with np.errstate(all="ignore"):
            for n in (6, 1):
                agree(body, None, n)
        served += settle().loops - before
    assert served
