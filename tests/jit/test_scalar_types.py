"""Scalars that are Python's or NumPy's as conditions and loops have run."""

import random
import textwrap
from typing import Any

import numpy as np
import pytest
from written import written

import dcarray as dc

pytestmark = pytest.mark.eager(eager_below=0)


def agree(body: str, *args: Any) -> None:
    """The same values, types and warnings; the loop is compiled."""
    f = written(
        "import math\nimport numpy as np\ndef f(a, b):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    )
    g = dc.accelerate(f)
    for given in args:
        with np.errstate(all="ignore"):
            want, got = f(*given), g(*given)
        assert repr(want) == repr(got)
        assert dc.report().loops and not [one for one in dc.report().fallbacks if one.kind == "loop"]


def pairs() -> list[tuple[Any, Any]]:
    source = np.random.default_rng(3)
    made = [(source.random(n), source.random(n)) for n in (40, 3, 1, 12)]
    return [*made, *[(a * 0.0, b * 0.0) for a, b in made], (made[0][0] * np.nan, made[0][1])]


BODIES = {
    "a sum under a condition": """
        s = 0.0
        for i in range(len(a)):
            if a[i] > b[i]:
                s += a[i]
        return s
    """,
    "an int that may become a float": """
        s = 0
        for i in range(len(a)):
            if a[i] > 0.9:
                s += a[i]
        return s
    """,
    "NumPy's ints": """
        s, c = 0, (a * 10).astype(np.int64) if len(a) < 40 else (b * 10).astype(np.int64)
        for i in range(len(a)):
            if c[i] > 7:
                s += c[i]
        return s
    """,
    "an int that becomes NumPy's, in sums": """
        x, far, out, k = 5, 1, 0, 0
        steps = (a * 10).astype(np.int64) - 4
        while out < 6 and k < 100:
            x = 9 - k
            for i in range(len(a)):
                x += steps[i]
                r = np.hypot(x - 3, a[i])
                if r > far + 14 or x < -40:
                    out += 1
                    break
                if r > far:
                    far = r
            k += 1
        return x, far, out, x - k, 2 - far, a[x % len(a)]
    """,
    "the largest and its place": """
        best, last, at, n = None, None, None, 0
        for i in range(len(a)):
            if best is None or a[i] > best:
                best, at = a[i], i
            if last is not None and last > 0.5: n += 1
            last = a[i] if b[i] > 0.3 else None
        return best, at, n, last
    """,
    "extrema": """
        high, low = 0.0, 1e300
        for i in range(len(a)):
            high = max(high, a[i])
            low = min(b[i], low)
        return high, low, -high, abs(low), high > low
    """,
    "set back": """
        s = u = 0.0
        for i in range(len(a)):
            u = s
            if b[i] > 0.7:
                s += b[i]
                if a[i] > 0.5:
                    s = s * 0.5
            else:
                s = 0.0
        return s, s + 1.0, u
    """,
    "in a nest": """
        s = 0.0
        for i in range(len(a)):
            t = 0.0
            for j in range(i):
                if a[j] < b[i]:
                    t += a[j] * b[j]
            if t > 0.3:
                s = math.sqrt(t) + s
        return s
    """,
    "stored": """
        s = 0.0
        for i in range(len(a)):
            if a[i] > 0.3:
                s = a[i] - s
            b[i] = s
        return s, b.copy()
    """,
}


@pytest.mark.parametrize("name", [*BODIES])
def test_loops(name: str) -> None:
    agree(BODIES[name], *pairs())


STATEMENTS = [
    "s += a[i]", "s = s * 0.5", "s = 0.0", "t = s", "t = t + s", "s = max(s, b[i])", "t = -abs(t)",
    "s = t - a[i]", "t = a[i] * 2", "b[i] = s", "s = 1.5 if t > b[i] else s", "t = np.sqrt(abs(t))",
    "t = float(s)", "p = s", "p = None", "t = p if p is not None else s", "p = s if p is None else p + t",
]  # fmt: skip
OF_INTS = [
    "s += c[i]", "s = s + 1", "s = 3", "t = s", "t = t + s", "t = 7 - s", "s -= t", "t += a[i]",
    "t = len(a) - t", "b[i] = s", "s = 2 if t > 1 else s", "t = s + t", "s = i", "s = c[i] - s", "s = s * 2",
    "t = t + t", "b[s % len(b)] = t", "t = c[s % 1]", "p = None if t else i", "t = 1 if p is None else p",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(33))
def test_random_loops(seed: int) -> None:
    """As Python computes them, whether they are compiled or not."""
    source = random.Random(seed)
    has_ints = seed >= 25

    def block(depth: int, indent: str) -> list[str]:
        lines = []
        for _ in range(source.randint(1, 3)):
            if depth and source.random() < 0.4:
                lines.append(
                    f"{indent}if {source.choice(['a[i] > b[i]', 's > t', 'a[i] < 0.2', 't <= 0.5'])}:"
                )
                lines += block(depth - 1, indent + "    ")
                if source.random() < 0.4:
                    lines += [f"{indent}else:", *block(depth - 1, indent + "    ")]
            else:
                lines.append(indent + source.choice(OF_INTS if has_ints else STATEMENTS))
        return lines

    body = [
        "s, t, p = 0, 1, None" if has_ints else "s, t, p = 0.0, 0.25, None",
        "c = (a * 10).astype(np.int64) - 5",
        "for i in range(len(a)):",
        *block(2, "    "),
        "return s, t, p, s + t, b.tolist()",
    ]
    f = written("import numpy as np\ndef f(a, b):\n" + textwrap.indent("\n".join(body), "    "))
    g = dc.accelerate(f)
    for a, b in pairs():
        with np.errstate(all="ignore"):
            assert repr(f(a.copy(), b.copy())) == repr(g(a.copy(), b.copy())), "\n".join(body)


def test_what_a_function_returns() -> None:
    f = written("""
        def above(x, low):
            if x > low:
                return x
            return 0.0
        def f(a, b):
            s = 0.0
            for i in range(len(a)):
                s = above(a[i], b[i]) + s * 0.5
            return s
    """)
    g = dc.accelerate(f)
    for a, b in pairs():
        assert repr(f(a, b)) == repr(g(a, b))
    assert dc.report().loops


@pytest.mark.parametrize(
    ("scalar", "value", "compiles"),
    [
        *[("complex128", value, True) for value in ("0", "True", "2.5", "1j", "a[i]", "b[i]", "i", "c")],
        *[("complex128", "a[i] * 1j", True), ("complex64", "a[i]", True), ("complex64", "0.1", True)],
        *[("float64", value, True) for value in ("i", "b[i]")],
        *[("float32", "b[i]", False), ("complex64", "b[i]", False), ("complex64", "c", True)],
    ],
)  # fmt: skip
def test_constructors(scalar: str, value: str, compiles: bool) -> None:
    f = written(f"""
import numpy as np
def f(a, b, n):
    s, c = np.{scalar}(0), 0.5j
    x = t = s
    for i in range(n):
        x = np.{scalar}({value})
        s, t = s + x * x, abs(x)
    return s, x, t
""")
    big = np.array([2**53 + 1, -(2**62) - 1, 3, 2**24 + 1])
    before = dc.report().loops
    for given in ((np.array([0.1, -0.0, np.inf, 1e200]), big, 4), (np.arange(50) / 3, np.arange(50), 50)):
        with np.errstate(all="ignore"):
            assert repr(f(*given)) == repr(dc.accelerate(f)(*given))
    assert (dc.report().loops > before) is compiles


@pytest.mark.parametrize(("text", "args"), [
    ("np.arange(k + 3, dtype=float)", [(1, 1)]),
    ("np.arange(2049, 2060 + k, dtype=np.float16)", [(1, 1)]),
    ("np.arange(16777217, 16777230 + k, dtype=np.float32)", [(1, 1)]),
    ("(-2.0) ** a * k", [(2.0, 1), (3.0, 1)]),
    ("(-1j) + a", [(complex(0.0, 1.0), 1), (complex(-0.0, 1.0), 1)]),
    ("(2**60 + 1) / (k + 1), (k + 1) / (2**53 + 1), k / 2**64", [(1, 1)]),
    ("(a + k * 0) == 2**53 + 1", [(complex(2.0**53), 1)]),
    ("np.squeeze(a[:, :b]).ndim", [(np.ones((4, 6)), 5), (np.ones((4, 6)), 1)]),
    ("np.where(a > 0.5, a, 1.0)", [(np.array(0.7), 1)]),
    ("b.integers(0, 1, dtype=a.dtype)", [(np.arange(3), np.random.default_rng(1))]),
])  # fmt: skip
def test_rare_operands(text: str, args: list[Any]) -> None:
    """The same values and types, compiled or left to Python."""
    f = written(
        f"import numpy as np\ndef f(a, b):\n    s = []\n    for k in range(5):\n        r = {text}\n"
        "        s.append(repr(r))\n    return r, s\n"
    )
    g = dc.accelerate(f)
    assert [repr(g(*given)) for given in args] == [repr(f(*given)) for given in args]


@pytest.mark.parametrize("place", [3, 2**63 + 1, 2**64 - 1])
def test_unsigned_places_in_growing_lists(place: int) -> None:
    f = written(
        "def f(a, n):\n    s, t = [], 0\n    for k in range(n):\n        s.append(k * 2)\n"
        "        t += s[a[k]]\n    return t\n"
    )
    a = np.zeros(60, np.uint64)
    a[40] = place
    if place == 3:
        assert dc.accelerate(f)(a, 50) == f(a, 50)
    else:
        with pytest.raises(IndexError):
            dc.accelerate(f)(a, 50)
