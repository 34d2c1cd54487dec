"""Which Python compiles: a loop for each construct, and whether it runs as compiled code.

``python -m conformance.language`` prints the table of ``docs/language.md``; a test runs all of it.  The
columns for Numba and Pythran say what their own documentation lists.
"""

from __future__ import annotations

import textwrap
from typing import Any, NamedTuple

import numpy as np

__all__ = ["ROWS", "Row", "arguments", "source", "table"]


class Row(NamedTuple):
    """A construct.

    Attributes
    ----------
    name : str
    body : str
        Of a function of ``x``, 50 floats, ``n``, an int, and ``l``, a list of floats.
    compiled : str
        "yes", or what happens instead.
    numba, pythran : str
        "yes", "no", or what they do.
    head : str
        What stands before the function.
    """

    name: str
    body: str
    compiled: str
    numba: str
    pythran: str
    head: str


# For each row its name, whether dcarray, Numba and Pythran compile it if one of them does not, what stands
# before the function, if anything does, and the function.
_TEXT = """
== `while` over data
i = 0
s = 0.0
while i < n and x[i] < 1.5:
    s += x[i]
    i += 1
return s
== `break`, `continue`
s = 0.0
for i in range(len(x)):
    if x[i] < 0: continue
    if x[i] > 1: break
    s += x[i]
return s
== `return` out of loops
s = 0.0
for i in range(len(x)):
    for j in range(i):
        if x[i] * x[j] > 1: return i, j
        s += x[j]
return s
== `else` of an inner loop
s = 0.0
for i in range(len(x)):
    for j in range(2, i):
        if i % j == 0: break
    else:
        s += i
return s
== `else` of the outermost loop
r = 0
for i in range(n):
    r += i
else:
    r += 1
return r
== chained comparisons
s = 0.0
for i in range(len(x)):
    if 0 < x[i] <= 1: s += 1
return s
== `and`, `or`, `not` of conditions
s = 0.0
for i in range(len(x)):
    if not (x[i] < 0 or x[i] > 1) and i % 2: s += 1
return s
== `a if c else b`
s = 0.0
for i in range(len(x)):
    s += x[i] if x[i] > 0 else -1.0
return s
== `:=` | yes | yes | no
s = 0.0
v = 2.0
while (d := math.sqrt(v) * 0.5) > 0.1:
    if (h := d * d) > 0.2: s += h
    v -= d * 0.1
return s
== tuples, unpacking
s = 0.0
last = (0.0, 1)
for i in range(len(x)):
    a, b = x[i], i * 2
    b, a = a, b
    s += a - b + last[0]
    last = x[i] * last[1], i
return s
== `enumerate`
s = 0.0
for i, v in enumerate(x):
    s += i * v
return s
== `zip`
s = 0.0
for a, b in zip(x, x):
    s += a * b
return s
== `reversed` | yes | no | yes
s = 0.0
for v in reversed(x):
    s = s * 0.5 + v
return s
== `x.flat`, `np.ndindex`
a = x.reshape(5, 10)
s = 0.0
for v in a.flat:
    s = s * 0.5 + v
for k in np.ndindex(a.shape):
    s += a[k] * k[1]
return s
== ranges with any step
s = 0.0
for i in range(n - 1, -1, -2):
    s = s * 0.5 + x[i]
return s
== a few items in the source
s = 0.0
for i in range(len(x)):
    for k, w in [(0, 0.5), (1, 0.25)]:
        s += x[i - k] * w
return s
== functions, keywords, defaults
def h(v, k=2.0):
    return v * k if v > 0 else -v
--
s = 0.0
for i in range(len(x)):
    s += h(x[i]) + h(x[i], k=3.0)
return s
== functions with loops and `return`
def h(v):
    for k in range(2, 40):
        if v % k == 0: return k
    return v
--
s = 0.0
for i in range(len(x)):
    s += h(i)
return s
== functions that return tuples
def h(v):
    return v + 1, v - 1
--
s = 0.0
for i in range(len(x)):
    a, b = h(x[i])
    s += a * b
return s
== functions as arguments, by name
def h(v):
    return v * v
--
s = 0.0
for i in range(len(x)):
    s += g(x[i])
return s
== recursion with numbers | yes | with types | yes
def h(k):
    return k if k < 2 else h(k - 1) + h(k - 2)
--
s = 0.0
for i in range(len(x)):
    s += h(i % 5)
return s
== recursion with arrays | yes | with types | yes
def h(v, k):
    return v[0] if k < 2 else h(v, k - 1) + v[k]
--
s = 0.0
for i in range(len(x)):
    s += h(x, i % 5)
return s
== functions inside of functions
def h(v):
    return v * 2
s = 0.0
for i in range(len(x)):
    s += h(x[i])
return s
== variables of functions around a function | yes | if not bound | not seen
c = 0
def h(v):
    nonlocal c
    if v > 0: c += 1
    return v * n
s = 0.0
for i in range(len(x)):
    s += h(x[i])
return s, c
== functions in tuples, `functools.reduce`
def h(v, w):
    return v * w + 1
t = (h, max)
s = 0.0
for i in range(len(x)):
    s += t[0](x[i], s) * 0.5
    s += functools.reduce(h, x, 1.0)
return s
== `lambda`
h = lambda v: v * n + 1
s = 0.0
for i in range(len(x)):
    s += h(x[i])
return s
== global arrays and numbers that functions use | yes | as constants | as constants
K, W = 0, np.arange(50.0)
def h(i):
    global K
    if W[i] > 7: K += 1
    return W[i] * K
--
s = 0.0
for i in range(len(x)):
    s += h(i)
return s
== attributes and methods of objects | yes | of its `jitclass` | no
class O:
    def __init__(self): self.scale = 2.0
    def of(self, v): return v - self.scale
o = O()
--
s = 0.0
for i in range(len(x)):
    s += o.scale * o.of(x[i])
return s
== items of dictionaries, constant keys | yes | of its `typed.Dict` | yes
c = {'a': 2.0}
--
s = 0.0
for i in range(len(x)):
    s += c['a'] * x[i]
return s
== other dictionaries, sets | Python's | yes | yes
d = {}
for i in range(n):
    d[i % 7] = i
return d
== strings | Python's | yes | yes
s = ''
for i in range(n):
    s += 'a'
return s
== lists of numbers: items | yes | of its `typed.List` | yes
c = [1j] * n
for i in range(1, len(l)):
    l[i] += l[i - 1] * 0.5
    c[i] = c[i - 1] * l[i]
return l, c
== lists of lists, of any lengths | yes | of its `typed.List` | yes
a = [[k * 0.5] * (k % 3 + 1) for k in range(n)]
s = 0.0
for row in a:
    for v in row:
        s += v
    row[-1] = s
return a
== lists of ints and floats | yes | no | no
m = [0] * n
for i in range(1, n):
    m[i] = m[i - 1] + (l[i] if l[i] > 9 else i)
return m
== lists of numbers: `append` | yes | yes | yes
m = []
t = 0.0
for i in range(len(x)):
    t += x[i]
    for k in range(i):
        if t > k: m.append(t)
return m
== `pop()`, `len`, items of lists that grow
s = 0
for i in range(n):
    m = [i]
    while m:
        k = m.pop()
        s += k
        if k > 1: m.append(k // 2)
return s
== `[0.0] * n`
l = [0.0] * n
for i in range(1, n):
    l[i] = l[i - 1] * 0.5 + i
return l
== comprehensions over a few items
s = 0.0
for i in range(len(x)):
    s += sum([x[i] * k for k in range(3)])
return s
== lists of many numbers, with `if`
s = 0.0
for i in range(1, len(x)):
    r = [v * i for v in x[:i] if v < 1]
    s += len(r) + sum(v * 0.5 for v in l)
return s
== `np.array` of a comprehension
return np.array([math.sin(x[i]) for i in range(n)])
== `sum`, `any`, `all`, `min`, `max` of many items
s = 0.0
for i in range(1, len(x)):
    if any(x[j] > x[i] for j in range(i)): s += sum(x[j] * x[i] for j in range(n) if j != i)
    s += max(abs(v - x[i]) for v in x)
return s
== the same as a statement of its own
return sum(x[i] * x[j] for i in range(n) for j in range(i))
== comprehensions of other items | Python's | yes | yes
return [(v, i) for i, v in enumerate(x)]
== NumPy's ufuncs and reductions
for i in range(n):
    x = np.where(x > 1, np.sqrt(np.abs(x)), x + 0.1)
return x.sum()
== slices, masks, places from data
s = 0.0
for i in range(len(x)):
    part = slice(0, i + 1)
    k = x[part] > 0
    s += x[part][k].sum() + x[int(abs(x[i]))]
return s
== small arrays
p = np.zeros(3)
v = np.array([1.0, 2.0, 3.0])
for i in range(n):
    v = v - p * 0.1
    p = p + v * 0.01
return p
== `A @ B`, `np.dot`
m = np.array([[0.9, 0.1], [0.2, 0.8]])
v = np.array([1.0, 0.0])
for i in range(n):
    v = m @ v
return v
== `np.linalg`, `np.fft`, `np.sort` | the library's | yes | yes
s = 0.0
for i in range(len(x)):
    s += np.sort(x)[i]
return s
== `math`
s = 0.0
for i in range(len(x)):
    s += math.sin(x[i]) + math.erf(x[i]) + math.atan2(x[i], 2) + math.floor(x[i])
return s
== complex numbers, `cmath`
s = 0j
for i in range(n):
    s += cmath.exp(1j * i) / (s - 2.0).conjugate() + abs(s)
return s
== `abs`, `min`, `max`, `any`, `all`, `sum`
s = 0.0
for i in range(len(x)):
    s = max(s, x[i]) + min(x[i], 0.5) + any([x[i] > 0, i > 3]) + abs(-i)
return s
== `int`, `float`, `bool`, `round`, `divmod`, `pow`
s = 0.0
for i in range(len(x)):
    q, r = divmod(i * 7, 5)
    s += int(x[i]) + round(float(x[i])) + q * r + pow(i, 2)
return s
== bit operations
s = 1
for i in range(n):
    s = (s ^ (i << 2)) | (s >> 1) & ~i
return s
== ints beyond 64 bits | right, by Python | wrong: they wrap | wrong: they wrap
s = 1
for i in range(1, n):
    s *= i
return s
== division by zero of Python's numbers | yes | yes | not seen
s = 0.0
for i in range(1, n):
    s += 1 / i
return s
== `assert`, `if ...: raise`
s = 0.0
for i in range(len(x)):
    assert x[i] > -5
    if x[i] < -6: raise ValueError('no')
    s += x[i]
return s
== `try`, if no handler runs | yes | in part | yes
s = 0.0
for i in range(len(x)):
    try:
        s += 1 / (i + 1)
    except ZeroDivisionError:
        s += 1
return s
== `try`, if one runs | Python's | in part | yes
s = 0.0
for i in range(len(x)):
    try:
        s += 1 / i
    except ZeroDivisionError:
        s += 1
return s
== `np.random`, in NumPy's order | yes | other numbers | other numbers
np.random.seed(1)
s = 0.0
for i in range(n):
    s += np.random.normal()
return s
== `np.random.Generator` | yes | yes | no
rng = np.random.default_rng(3)
--
s = 0.0
for i in range(n):
    s += rng.normal()
return s
== `random`, in Python's order | yes | other numbers | other numbers
random.seed(1)
s = 0.0
for i in range(n):
    s += random.random() * random.randint(0, 9)
return s
== `random.Random` | yes | no | no
rng = random.Random(3)
--
s = 0.0
for i in range(n):
    s += rng.gauss(0.0, 1.0)
return s
== `print` in a loop | beside compiled statements | yes | yes
s = 0.0
for i in range(len(x)):
    s += x[i] * x[i]
    if i % 20 == 9: print(end='')
return s
== `match` of numbers | Python's | no | no
s = 0
for i in range(n):
    match i % 3:
        case 0: s += 1
        case _: s -= 1
return s
== `global`, `nonlocal` | yes | no | no
K = 0
--
global K
for i in range(n):
    K += i
return K
== `yield` | Python's | yes | yes
def h():
    for i in range(n):
        yield i
return sum(h())
"""


def _row(text: str) -> Row:
    title, _, code = text.partition("\n")
    name, *kinds = title.split(" | ")
    head, _, body = code.rpartition("--\n")
    return Row(name, body.rstrip("\n"), *(kinds or ["yes"] * 3), head)


ROWS = tuple([_row(part) for part in _TEXT.split("\n== ")[1:]])


def source(row: Row) -> str:
    """Return the source of a row's function."""
    return f"{row.head}def f(x, n, l, g=None):\n{textwrap.indent(row.body, '    ')}\n"


def arguments() -> tuple[Any, ...]:
    """Return the arguments of the functions."""
    return np.linspace(-1.0, 2.0, 50), 50, [float(k) for k in range(50)]


def table() -> str:
    """Return the table as Markdown."""
    out = ["| | compiled | Numba | Pythran |", "|---|---|---|---|"]
    out += [f"| {row.name} | {row.compiled} | {row.numba} | {row.pythran} |" for row in ROWS]
    return "\n".join(out)


if __name__ == "__main__":
    print(table())
