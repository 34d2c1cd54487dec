"""Programs that see which object is which: cycles, shared parts, methods with effects, NaN, and ``is``."""

from pathlib import Path

import pytest
from sited_programs import compare
from written import written

import dcarray as dc
from dcarray.jit.loops.syntax.identity import text_compares_identity

PROGRAMS = {
    "a method changes an attribute and returns a name that was bound before": """
class T:
    def __init__(self):
        self.step = 0
    def step_until(self, limit):
        ret = (self.step < limit)
        if ret:
            self.step += 1
        return ret
    def go(self, depth):
        if depth and self.step_until(5):
            self.go(depth - 1)
def count(d, n):
    r = d["x"] < n
    if r:
        d["x"] += 1
    return r
def main():
    t, u, d = T(), T(), {"x": 0}
    u.go(100)
    return [t.step_until(5) for _ in range(8)], t.step, u.step, [count(d, 3) for _ in range(5)], d
""",
    "a ring of lists": """
def total(root):
    s, node = 0, root[1]
    while node is not root:
        s += node[2]
        node = node[1]
    return s
def main():
    root = []
    root[:] = [root, root, 0]
    for k in range(1, 100):
        last = root[0]
        node = [last, root, k]
        last[1] = root[0] = node
    return [total(root) for _ in range(5)]
""",
    "lists and tuples of which each item is the next one, many times": """
def depth(x):
    n = 0
    while x:
        x = x[0]
        n += 1
    return n
def main():
    x, t, y = [0], (), [1]
    for _ in range(60):
        x, t = [x, x], (t, t)
    for _ in range(7):
        y = [y] * 1000
    y = [[y, y], [y, y]]
    loop = []
    loop.append(loop)
    return depth(t), depth(x[0][0][:0]), first(y), first(loop)
def first(y):
    n = 0
    for k in range(5):
        n += len(y)
    return n
""",
    "a NaN is found by identity": """
import math
nan, NAN = float("nan"), math.nan
def members(values, special):
    found = 0
    for v in values:
        if v in (0.25, special):
            found += 1
    return found
def chosen(values, at):
    best = values[0]
    for k in range(len(values)):
        if k == at:
            best = values[k]
    return best
def other(k):
    if k > 3:
        return NAN
    return 1.0
def main():
    values = [nan if k % 5 == 0 else k % 4 / 4 for k in range(100)]
    many = []
    for k in range(50):
        many.append(nan)
    found = [members(values, special) for special in (0.5, nan, float("nan"), 0.75)]
    return found, chosen(values, 5) in values, many == [nan] * 50, many.index(nan), other(7) is math.nan
""",
    "numbers in attributes and lists are those of before": """
class T:
    def __init__(self, a, b):
        self.a, self.b = a, b
    def step(self, k):
        self.a = self.a + k
        self.a, self.b = self.b, self.a
def copied(l, m, n):
    for i in range(n):
        l[i] = m[i]
    return len(l)
def appended(l, m, n):
    for i in range(n):
        l.append(m[i])
    return len(l)
def kept(n, s):
    for j in range(n):
        break
        s = ~0.5
    return [s]
def sometimes(l, s):
    for v in l:
        if v > 5:
            s = v + 1
    return [s]
def main():
    b, m, l, more = 0.25 + len("x"), [k / 3 for k in range(9)], [0.5] * 9, [0.5]
    t = T(1, b)
    t.step(1.5), copied(l, m, 9), appended(more, m, 9)
    assert all(f[0] is b for f in (kept(3, b), sometimes(m, b))) and sometimes([7.0], b) == [8.0]
    return t.a is b, [one is other for one, other in zip(l + more[1:], m + m)]
""",
    "items that a called function moves": """
def sort(a):
    g = len(a) // 2
    while g:
        for i in range(g, len(a)):
            x, j = a[i], i
            while j >= g and a[j - g] > x:
                a[j] = a[j - g]
                j -= g
            a[j] = x
        g //= 2
    return a
def main():
    same = []
    for r in range(4):
        a = [(k * 7919 + r) % 655.5 for k in range(60)]
        before = sum(id(x) for x in a)
        sort(a)
        same.append(sum(id(x) for x in a) == before)
    return same
""",
    "rows with two names": """
def fill(m, n):
    for i in range(n):
        for j in range(3):
            m[i % 2][j] += i
    return m
def main():
    row = [0] * 3
    m = fill([row, row], 20)
    return m, m[0] is m[1] is row
""",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_programs_that_see_identity(program: str, tmp_path: Path) -> None:
    with dc.options(jit="eager", cache_dir=None):
        compare(program + "\nfor turn in range(4):\n    print(main())\n", tmp_path / "program.py")


def test_arrays_are_handed_on_where_numbers_may_not_be(tmp_path: Path) -> None:
    program = """
import numpy as np
def swapped(u, v, n):
    for k in range(n):
        u[1:] = v[:-1] + 1
        u, v = v, u
    return u, v
def main():
    x, y = np.arange(9.0), np.ones(9)
    p, q = swapped(x, y, 3)
    return p is y, q is x, p, q
print(main())
print(main())
"""
    with dc.options(jit="eager", cache_dir=None):
        assert compare(program, tmp_path / "program.py") >= 2


def test_objects_that_are_compared_by_identity_are_handed_on() -> None:
    text = """
        def f(a):
            best = a[0]
            for v in a:
                if v > best:
                    best = v
            return best
        def g(a, b):
            return f(a) is b
        """
    f = written(text)
    a = [float(k) for k in range(300)]
    with dc.options(jit="eager"):
        assert dc.accelerate(f)(a) is a[-1]
        assert not text_compares_identity("x is None or x is not None or y is True or type(x) is int")
        assert text_compares_identity("id(x) in seen") and text_compares_identity("node is not root")
        assert text_compares_identity("sum(map(id, x))") and text_compares_identity("sorted(x, key=id)")
