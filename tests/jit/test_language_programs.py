"""Programs that random ones were reduced to: what they print compiled is what Python prints."""

from pathlib import Path

import pytest
from sited_programs import compare

import dcarray as dc

PROGRAMS = {
    "an operation on bits fails for floats that nothing reads": """
def power(n, d):
    for i in range(n):
        s = d["a"] ^ 1
def shift(n, a):
    for i in range(n):
        s = a << 1
    t = a & 1
def main():
    return told(power, 5, {"a": 0.5}), told(shift, 5, 0.5), told(shift, 5, 1j), told(shift, 5, 2)
""",
    "ints of so many bits that no float has them exactly": """
def chosen(t, n, a):
    for i in range(n):
        if a > 1:
            continue
        t = abs(0.5)
    return t
def late(t, n, a):
    for i in range(n):
        if i < a:
            t = 0.5
    return t
def stored(l, n, big):
    for i in range(n):
        if i % 2:
            l[i] = big
        else:
            l[i] = 0.5
    return l
def compared(x, n):
    s = 0
    for i in range(n):
        if x[i] <= 2**63 - 1: s += 1
        if x[i] < 2**53 + 1: s += 10
        if x[i] == 2**63: s += 100
    return s
def main():
    ints = 2**63 - 2, 5, 2**53 + 1, -(2**53) - 3
    found = [f(t, 4, a) for f in (chosen, late) for t in ints for a in (2.5, 0.5, 4, 0)]
    lists = [stored([k] * 5, 5, t) for t in ints for k in (1, 0.5)]
    return found, lists, [compared([v] * 3, 3) for v in (2.0**63, 2.0**53, 2.0**53 + 2, 1.0)]
""",
    "a variable of a loop that gets an int that is large": """
def inside(n, s):
    for i in range(5, 0, -2):
        for i in range(min(n, 8)):
            s = 2 ** 63 - 1
    return s
def both(x, u, s, t):
    for i in x:
        s, t = (s if u == 2 ** 63 - 1 else 2 ** 62, abs(0.5))
    return s, t
def main():
    return inside(9, -2), inside(0, 5), both([1.0, 2.0], 4, 1, 1.5)
""",
    "objects whose classes hear of each look at them": """
SEEN = []
class Told:
    def __getattr__(self, name):
        SEEN.append(name)
        raise KeyError(name)
class Heard:
    def __getattribute__(self, name):
        SEEN.append(name)
        return object.__getattribute__(self, name)
class Posing:
    __class__ = property(lambda self: SEEN.append("class") or int)
    __module__ = property(lambda self: SEEN.append("module"))
    __name__ = property(lambda self: SEEN.append("name"))
p = Posing()
def passed(o, n):
    l = []
    for i in range(n):
        l.append(o)
    return len(l)
def placed(o, n):
    for i in range(n):
        o[i] = i
def shared(n):
    s = 0
    for i in range(n):
        s += i
        if s < 0: s += p.k
    return s
def main():
    found = [told(f, o, 50) for o in (Told(), Heard(), p) for f in (passed, placed)]
    return found, shared(50), SEEN
""",
    "objects that note how often a condition asks them": """
class Lines:
    def __init__(self, n): self.left, self.asked = n, 0
    @property
    def line(self):
        self.left -= 1
        return self.left
    def __len__(self):
        self.asked += 1
        return max(0, self.left - self.asked)
    def __lt__(self, n):
        self.asked += 1
        return self.asked < n
def read(o, s):
    while o.line > 0: s += o.left
    return s, o.left
def drained(o, s):
    while o: s += 1
    else: s = -s
    return s, o.asked
def below(o, n):
    s = 0
    while n > 0 and o < n:
        s += 1
        if s > 5: break
    return s, o.asked
def turns(o, s):
    for k in range(len(o) + 40): s += o.left + k
    return s, o.asked
def main():
    calls = [(read, 0), (drained, 1), (below, 7), (turns, 2)]
    return [told(f, Lines(k), s) for f, s in calls for k in range(9)]
""",
}

TOLD = """
def told(f, *args):
    try:
        return f(*args)
    except Exception as error:
        return repr(error)
"""


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_programs_do_as_in_python(program: str, tmp_path: Path) -> None:
    with dc.options(jit="eager", cache_dir=None):
        compare(TOLD + program + "\nfor turn in range(3):\n    print(main())\n", tmp_path / "program.py")
