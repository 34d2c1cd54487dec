"""Programs that random ones were reduced to: what they print compiled is what Python prints."""

from __future__ import annotations

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
