"""Loops that append to lists."""

import math
from typing import Any

import numpy as np
import pytest
from outcomes import outcome
from written import written

import dcarray as dc
from dcarray.core.counters import settle

pytestmark = pytest.mark.eager


X = np.linspace(-1.0, 2.0, 40)

# The bodies of functions of an array, an int and a list, and whether their loop is compiled.
BODIES = [
    ("for i in range(n): l.append(x[i] * 2)", True),
    ("for i in range(n): l.append(i)", True),
    ("for i in range(n): l.append(i * 0.5)", True),
    ("for i in range(n): l.append(x[i] > 0.5)", True),
    ("for i in range(n): l.append(float(x[i]) + 1)", True),
    ("for v in x:\n if v > 0: l.append(v)", True),
    ("for v in x:\n if v > 0: l.append(v)\n else: l.append(-v)", True),
    ("for i, v in enumerate(x):\n if v > 0:\n  l.append(i)\n  l.append(2 * i)", True),
    ("out = []\nfor i in range(n):\n l.append(i)\n out.append(x[i])\nreturn l, out", True),
    ("t = 0.0\nfor i in range(n):\n t += x[i]\n if i % 3 == 0: l.append(t)\nreturn l, t", True),
    ("u = x * 0\nfor i in range(n):\n u = u + x\n l.append(u.max())\nreturn l, u", True),
    ("for i in range(n):\n if x[i] > 1: break\n l.append(i)\nreturn l, i", True),
    ("for i in range(n):\n if x[i] > 1: return i\n l.append(i)\nreturn -1", True),
    ("for i in range(n):\n if x[i] < 0: continue\n l.append(math.sqrt(x[i]))", True),
    ("for i in range(n, 0, -2): l.append(x[i])", True),
    ("for i in range(n):\n for j in range(3): l.append(i * j)", True),
    ("for i in range(n):\n s = 0.0\n for j in range(i): s += x[j]\n l.append(s)", True),
    ("for i in range(n): l.append(i / (i - 5))", False),
    ("for i in range(n): l.append(l[-1] + 1 if l else 0)", False),
    ("for i in range(n): l.append(len(l))", False),
    ("m = l\nfor i in range(n):\n l.append(i)\n if len(m) > 5: break", False),
    ("for i in range(n): l.append(x[:3] * i)", False),
    ("for i in range(n): l.append((i, 2 * i))", True),
    ("for i in range(n):\n if x[i] > 0: l.append((float(x[i]), i * 0.5))", True),
    ("for i in range(n): l.append((i, float(x[i])) if i > n else (-i, 0.5))", False),
    ("for i in range(n):\n if x[i] > 0: l.append((i, float(x[i])))\n else: l.append((0.5, -i))", True),
    ("for i in range(n): l.append([x[i], x[i] * 2])", True),
    ("for i in range(n): l.append([k * i for k in range(4)])", True),
    ("out = []\nfor i in range(n):\n l.append([i, i + 1])\n out.append((x[i], -x[i]))\nreturn l, out", True),
    ("out = [(i, i % 3) for i in range(n) if x[i] > 0]\nfor i, k in out: l.append(i * k)\nreturn out", True),
    ("out = [[i, x[i]] for i in range(n) if x[i] > 0]\nfor i in range(0): l.append(1)\nreturn out", False),
    ("r = [1, 2]\nfor i in range(n):\n r[0] = i\n l.append(r)", False),
    ("t = (1, 2)\nfor i in range(n): l.append(t)", True),
    ("for i in range(n): l.append((i, x[i]))", False),
    ("for i in range(n): l.append((i, True))", False),
    ("for i in range(n): l.append((i, (1, 2)))", False),
    ("for i in range(n):\n if i > 3: l.append((i, 1))\n else: l.append([i, 1])", False),
    ("for i in range(n):\n if i > 3: l.append((i, 1))\n else: l.append((i, 1, 2))", False),
    ("for i in range(n): l.append(i if i < 9 else i * 0.5)", False),
    ("for i in range(n): l.append(2 ** 62 + i * 2 ** 58)", False),
    ("k = 0\nwhile k < n:\n l.append(k)\n k += 1", False),
    ("for i in range(n): l.append(x[i + 20])", False),
    ("for i in range(n):\n l.append(i)\n if i == 7: l = []\nreturn l", False),
    ("for i in range(0): l.append(i)", False),
]


@pytest.mark.parametrize(("body", "compiled"), BODIES)
def test_loops_that_append(body: str, compiled: bool) -> None:
    text = "\n".join(["def f(x, n, l):", *(f"    {line}" for line in body.split("\n")), "    return l"])
    f = written(text, np=np, math=math)
    accelerated = dc.accelerate(f)
    before = settle().loops
    begins: list[list[Any]] = [[], ["a"], [0.5, 1]]
    for n, items in zip((19, 25, 31), begins, strict=True):
        assert outcome(accelerated, (X, n, items)) == outcome(f, (X, n, items))
    assert settle().loops - before >= 3 or not compiled, dc.report().fallbacks


def test_other_classes_of_lists() -> None:
    class Named(list[Any]):
        def append(self, item: Any) -> None:
            super().append(("named", item))

    f = written("def f(n, l):\n    for i in range(n): l.append(i)\n    return l")
    accelerated = dc.accelerate(f)
    assert accelerated(5, []) == [0, 1, 2, 3, 4]
    assert accelerated(5, Named()) == f(5, Named()) and type(accelerated(5, Named())) is Named


def test_lists_that_are_parts_of_objects() -> None:
    text = """
        class A:
            def __init__(self): self.l, self.t = [], 0.5
            def run(self, n):
                l = self.l
                for i in range(n):
                    self.t += 0.25
                    l.append(self.t)
                for i in range(n):
                    self.l.append(i)
                return self.l
        def f(n): return A().run(n)
    """
    f = written(text)
    assert dc.accelerate(f)(9) == f(9)
