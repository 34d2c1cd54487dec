"""Loops with data-dependent indices, loop bounds, integers and conditions: results, errors and warnings."""

import random
from typing import Any

import numpy as np
import pytest
from compare_accelerated import alike
from loop_requests import check, request
from written import written

from dcarray.core.errors import Untraceable
from dcarray.jit.loops.tracing.trace import trace

R = np.random.default_rng(7)


def function(body: str, head: str = "def f(x, y, z, n):") -> Any:
    lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    return written(f"import numpy as np\n{head}\n{lines}")


DATA: dict[str, Any] = {"x": R.uniform(-2, 2, 30), "y": np.zeros((9, 9)), "z": R.integers(-9, 9, 30), "n": 9}

PROGRAMS = {
    "counts": "for i in range(30):\n    y[0, z[i]] += 1\nreturn y",
    "weights": "for i in range(30):\n    y[z[i], z[i]] -= x[i] * 2\nreturn y",
    "rows": "for i in range(20):\n    y[z[i]] = y[z[i + 1]] * x[z[i]]\nreturn y",
    "parts of rows": "for i in range(20):\n    y[z[i], 1:4] *= x[i]\n    y[:, z[i]] += y[z[i]]\nreturn y",
    "rows that are exchanged": """
for i in range(20):
    r = y[z[i]].copy() + x[i]
    y[z[i]] = y[z[i + 1]]
    y[z[i + 1], ::-1] = r
return y""",
    "the last one before the first": "for i in range(30):\n    x[i] += 0.5 * x[i - 1]\nreturn x",
    "around corners": """
for i in range(9):
    for j in range(9):
        y[i, j] = 0.25 * (y[i - 1, j] + y[i, j - 1] + y[j - i, i - 2]) + x[i + j]
    y[i - 1, 1:] -= y[2 - i, :-1]
    y[i - 3, i - 2] *= x[1 - i]
return y""",
    "around, at places": "for i in range(9):\n    y[i - 1, z[i]] += y[z[i], 4 - i] + i\nreturn y",
    "places of places": "for i in range(30):\n    z[z[i] % 30] = z[z[z[i]]] + 1\nreturn z",
    "exchanged": "for i in range(30):\n    a = z[i]\n    x[i], x[a] = x[a], x[i]\nreturn x",
    "bytes": "b = (z + 9).astype('u1')\nc = np.zeros(256, int)\nfor v in b:\n    c[v] += 1\nreturn c",
    "integers of Python": """
k = 0
for i in range(30):
    k = (k * 7 + 3) % 9
    y[k, 8 - k] += i
    x[k] = x[2 * k] + k
return x, y, k""",
    "halves": """
out = np.zeros(20, int)
s = np.sort(x)
for i in range(20):
    low, high = 0, 30
    while low < high:
        mid = (low + high) // 2
        if s[mid] < x[i]:
            low = mid + 1
        else:
            high = mid
    out[i] = low
return out""",
    "insertion": """
for i in range(1, 30):
    key = x[i]
    j = i - 1
    while j >= 0 and x[j] > key:
        x[j + 1] = x[j]
        j -= 1
    x[j + 1] = key
return x""",
    "merge": """
a, b = np.sort(x[:12]), np.sort(x[12:])
i = j = 0
for k in range(30):
    if j >= 18 or (i < 12 and a[i] <= b[j]):
        x[k] = a[i]
        i += 1
    else:
        x[k] = b[j]
        j += 1
return x""",
    "a queue": """
grid = y
grid[2, :7] = 1
dist = np.full((9, 9), -1)
qi, qj = np.zeros(81, int), np.zeros(81, int)
head, tail = 0, 1
dist[0, 0] = 0
while head < tail:
    i, j = qi[head], qj[head]
    head += 1
    for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        a, b = i + di, j + dj
        if 0 <= a < n and 0 <= b < n and grid[a, b] == 0 and dist[a, b] < 0:
            dist[a, b] = dist[i, j] + 1
            qi[tail] = a
            qj[tail] = b
            tail += 1
return dist, head, tail""",
    "rows of a sparse matrix": """
ptr = np.cumsum(np.abs(z[:8]) % 4)
out = np.zeros(7)
for i in range(7):
    s = 0.0
    for k in range(ptr[i], ptr[i + 1]):
        s += x[k] * x[z[k]]
    out[i] = s
return out""",
    "sums of nothing": """
out = np.zeros(9)
for i in range(9):
    s, c = 0, 0
    for j in range(i):
        s += x[j] * y[j, i]
        c += z[j]
    out[i] = (x[i] - s) / 2.0 + c
return out""",
    "a range downwards": """
for i in range(8):
    for c in range(n + 20, z[i] + 8, -1):
        x[c] = max(x[c], x[c - z[i] - 9] + x[i])
return x""",
    "whole numbers": """
for v in x:
    k = int((v + 2.0) / 4.0 * n)
    if 0 <= k < n:
        y[k, int(z[3]) % n] += float(k)
return y""",
    "pairs": """
p = z.reshape(15, 2)
s = 0.0
for i in range(15):
    a, b = p[i]
    y[a, b] += 1
    (c, d), e = p[i], a
    s += x[c] - x[d] * e
for a, b in p:
    y[b, a] -= 2
return y, s""",
    "labels": """
m = np.arange(9)
changed = True
while changed:
    changed = False
    for i in range(15):
        a, b = z[i], z[i + 15]
        low = min(m[a], m[b])
        if m[a] != low or m[b] != low:
            m[a] = low
            m[b] = low
            changed = True
return m""",
}


PROGRAMS |= {
    "the first of some": """
found = -1
for i in range(30):
    if x[i] > 1:
        found = i
        y[0, 0] = x[i]
        break
    x[i] += 1
return found, x, y""",
    "as soon as it is small": """
for i in range(30):
    a = x[i] + 3.0
    r = 1.0
    for k in range(50):
        step = (r * r - a) / (2.0 * r)
        r -= step
        if abs(step) < 1e-9:
            break
    x[i] = r + k
return x""",
    "a line": """
a, b, c, d = 0, 1, 7, 4
dx, dy = abs(c - a), -abs(d - b)
sx = 1 if a < c else -1
sy = 1 if b < d else -1
err = dx + dy
while True:
    y[b, a] += 1
    if a == c and b == d:
        break
    e2 = 2 * err
    if e2 >= dy:
        err += dy
        a += sx
    if e2 <= dx:
        err += dx
        b += sy
return y""",
    "series that end early": """
s = 0.0
for i, (a, k) in enumerate(zip(x, z)):
    for b in x:
        if b > a:
            s += b
            continue
        s -= x[k]
        if s < -9 or i > 20:
            break
    x[i] = s
for i in reversed(range(3, n)):
    if x[i] < s:
        break
    s += x[z[i]] * i
return x""",
    "whiles that end early": """
i = 0
while i < 30 and z[i] < 9:
    j = i
    while j > 0:
        j -= 1
        if z[j] == z[i]:
            break
        x[j] += 0.5
    i += 1
return x, i""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    assert alike(function(PROGRAMS[name]), *DATA.values())


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u4", "i8", "u8"])
def test_dtypes_of_indices(dtype: str) -> None:
    given = {**DATA, "z": (np.abs(DATA["z"]) % 9).astype(dtype)}
    for name in ("counts", "weights", "pairs", "exchanged"):
        assert alike(function(PROGRAMS[name]), *given.values())


@pytest.mark.parametrize("odd", [9, 2**63, 2**63 + 5, 2**64 - 1])
@pytest.mark.parametrize("name", ["counts", "weights", "exchanged"])
def test_indices_without_sign_are_not_counted_from_the_end(name: str, odd: int) -> None:
    z = (np.abs(DATA["z"]) % 9).astype("u8")
    z[20] = odd if name != "exchanged" or odd != 9 else 30
    alike(function(PROGRAMS[name]), DATA["x"], DATA["y"], z, 9)


@pytest.mark.parametrize("body", [
    "for i in range(30):\n    x[i] += 1\n    y[0, z[i]] += 1",  # outside, after some turns
    "for i in range(30):\n    x[i] += 1\n    x[z[i] - 25] = 3.0",
    "for i in range(30):\n    x[i] = int(x[i] * 1e300 * x[i])",  # of which Python says what they are
    "for i in range(30):\n    x[i] = int(x[i] / (i - 12.0))",
    "for i in range(30):\n    x[i] = int(x[i] * 1e17)",
    "for i in range(4):\n    for k in range(z[i] << 55, (z[i] << 55) + 3):\n        x[k & 7] += 1",
    "for i in range(30):\n    if i < 29 or x[z[i] + 99] > 0:\n        x[i] = -1",
])  # fmt: skip
def test_invalid_indices(body: str) -> None:
    z = DATA["z"].copy()
    z[20] = 12
    alike(function(body + "\nreturn x"), DATA["x"], DATA["y"], z, 9)


def test_conditions_short_circuit() -> None:
    """A part that is left out is not looked at: neither its places, nor what its calls change."""
    source = """
import numpy as np
def next(u, k):
    u[0] += 1
    return u[k]
def f(x, y, z, n):
    s = 0
    for i in range(60):
        if i < 30 and x[i] > 0 and next(y, i % 9)[0] >= 0:
            s += 1
        if i >= 30 or (x[i] < 1 and not z[i] > 2):
            s += 2
        c = x[i % 30] > 1 and x[z[i % 30]] > 0
        s += 3 if c else 0
    return s
"""
    assert alike(written(source), *DATA.values())


@pytest.mark.parametrize("body", [
    "k = 0\nwhile x[k] < 9:\n    x[k] = 1\n    k += 1",  # leaves the array
    "for i in range(9):\n    k = int(x[i] / abs(i - 4) * 0) + 1\n    while k != 1:\n        k = k * 1",
    "k = z[0]\nwhile True:\n    x[k] = 2\n    if x[k - 40] > 3:\n        break",
    "for i in range(9):\n    a = float(x[i]) / (i - 4)\n    while not a < 1:\n        a -= abs(a) + 1",
    "k = 1\nwhile k > 0:\n    k = k * 3\n    x[k % 30] = 1 / (k - 3 ** 20)",
])  # fmt: skip
def test_loops_ended_by_an_error(body: str) -> None:
    """Where Python would leave a loop with an error, nothing goes on for ever."""
    alike(function(body + "\nreturn x"), *DATA.values())


def test_a_scalar_of_python_or_numpy() -> None:
    """Where a loop may not have run, the type of what it adds up is known at run time."""
    head = "for i in range(3):\n    s = 0.0\n    for j in range(z[0]):\n        s += x[j]\n    "
    for use in ("x[i] = s", "x[i] = s + x[0]", "x[i] = s * 2"):
        names = {"x": R.uniform(-1, 1, 5), "z": np.array([2, 0])}
        check(head + use, names, live=set())
        check(head.replace("z[0]", "z[1]") + use, names, live=set())
    traced = trace(request(head + "w = s", {**names, "w": np.float32(2)}, {"w", "s"}))
    assert {result.kind for _, result in traced.results} == {"either"}
    alike(function(head.replace("z[0]", "n - 9") + "x[i] = s / 2\nreturn x, s"), *DATA.values())


def test_unsupported_loops_run_in_python() -> None:
    names = {**DATA, "np": np, "k": np.array([[1, 1, 2]]), "b": np.True_}
    for body, reason in [
        ("x[k] = i", "written through"),
        ("x[k] += i", "written through|index"),
        ("a, c = x", "several targets"),
        ("for j in range(x[i]):\n        x[j] = 1", "range"),
    ]:
        with pytest.raises(Untraceable, match=reason):
            trace(request(f"for i in range(4):\n    {body}", names, set()))


class _Programs:
    """Random statements that read and write at places from data."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)

    def place(self, depth: int = 2) -> str:
        kind = self.r.randrange(7 if depth else 3)
        if kind < 3:
            return self.r.choice(["i", "k", "3", "-i"]) + (" % 9" if kind else " // 4")
        if kind < 5:
            return f"z[{self.place(depth - 1)}]"
        if kind == 5:
            return f"int(x[{self.place(depth - 1)}] * 3)"
        return f"({self.place(depth - 1)} + {self.place(depth - 1)}) % {self.r.choice(['9', '-9', '5'])}"

    def scalar(self) -> str:
        return self.r.choice(
            [
                "i", "k", "0.5", "s", f"x[{self.place()}]", f"y[{self.place()}, {self.place(1)}]",
                f"z[{self.place()}]",
            ]
        )  # fmt: skip

    def statement(self, depth: int = 1) -> list[str]:
        kind, sign = self.r.randrange(8), self.r.choice(["=", "+=", "-="])
        if kind == 0:
            return [f"y[{self.place()}, {self.place()}] {sign} {self.scalar()}"]
        if kind == 1:
            return [f"x[{self.place()}] {sign} {self.scalar()}"]
        if kind == 2:
            row = self.r.choice([f"y[{self.place()}]", f"y[:, {self.place()}]", f"y[{self.place()}, 2:9]"])
            other = self.r.choice(["y[i % 9, 1]", "0.5", self.scalar()])
            return [f"{row} {sign} {other}"]
        if kind == 3:
            return [f"k = {self.place()}"]
        if kind == 4:
            return [f"z[{self.place()}] = {self.place()}"]
        if kind == 5 and depth:
            also = self.r.choice(["and", "or"])
            test = f"{self.scalar()} > 1 {also} x[{self.place()}] < {self.scalar()}"
            return [f"if {test}:", *("    " + line for line in self.statement(0))]
        if kind == 6 and depth:
            ends = f"{self.place(1)}, {self.place(1)}"
            return [f"for j in range({ends}):", *("    " + line for line in self.statement(0)), "    k = j"]
        if kind == 7 and depth and self.r.random() < 0.5:
            head = self.r.choice(["for j in range(5):", "for j, b in enumerate(x):", "for b in y[3]:"])
            inner = [*self.statement(0), f"if {self.scalar()} > {self.scalar()}:", "    break"]
            inner += self.statement(0)
            return [head, *("    " + line for line in inner)]
        return [f"a, s = {self.scalar()}, {self.r.choice(['s', '0.25'])} * 0.5 + x[{self.place()}]"]

    def body(self) -> str:
        lines = [line for _ in range(self.r.randint(2, 4)) for line in self.statement()]
        return (
            "k, s = 1, 0.0\nfor i in range(12):\n" + "".join(f"    {line}\n" for line in lines) + "return k"
        )


@pytest.mark.parametrize("first", range(0, 50, 10))
def test_random_indices(first: int) -> None:
    served = 0
    for seed in range(first, first + 10):
        source = _Programs(seed).body()
        try:
            served += bool(alike(function(source), *DATA.values()))
        except AssertionError as error:
            raise AssertionError(source) from error
    assert served
