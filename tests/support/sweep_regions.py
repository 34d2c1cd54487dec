"""Random loops that sweep over rows or columns."""

import random

from dcarray.ir.nodes import Region
from dcarray.ir.text import parse

LINES = [
    "p[i,k] = add(p[i,k-1], a[i,k+1]) for i<{n}",
    "p[i+1,k+1] = subtract(p[i+1,k], q[i+1,k]) for i<{m}",
    "q[k,i] = maximum(q[k-1,i], a[i,k]) for i<{n}",
    "q[i,k] = multiply(q[i,k+1], p[i,k-1]) for i<{n}",
    "t[i] = add(p[i,k], a[k,i]) for i<{n}",
    "p[i,k] = multiply(t[i], iota(i)) for i<{n}",
    "v[i] add= a[i,j] for i<{n}, j<3",
    "v[i] = add(v[i], size(k)) for i<{n}",
    "q[i,k] = v[i] for i<{n}",
    "c[] = a[k,k]",
    "q[i,0] = subtract(q[i,0], a[i,k]) for i<k",
    "v[i] = subtract(v[i], a[i,k]) for i<12-k",
    "v[i] = add(v[i], c[]) for i<{n}",
    "b[i,j] = add(b[i,j], a[i,j]) for i<{n}, j<{m}",
    "b[i,j] = multiply(b[i,j], a[k,j]) for i<{n}, j<{m}",
    "v[i] = b[i,k] for i<{n}",
    "v[i] scan i add= t[i] init 0 for i<12",
    "b[i,j] scan i add= a[i,j] init 0 for i<{n}, j<{m}",
    "b[i,j] scan j maximum= a[i,j] init 0 for i<{n}, j<{m}",
    "nest {{\nv[i] = multiply(v[i], 2) for i<{n}\nq[i,k] = v[i] for i<{n}\n}}",
]


def sweeps(rng: random.Random) -> Region:
    """One or two loops, perhaps in another one; whole numbers, so that all sums are exact."""

    def some(count: int) -> str:
        return "\n".join(line.format(n=12, m=11) for line in rng.choices(LINES, k=count))

    def loop(body: str) -> str:
        bounds = rng.choice(["1, 11, 1", "10, 0, -1", "1, 11, 2", "2, 9, 3"])
        return f"for k in range({bounds}) {{\n{body}\n}}"

    body = loop(some(rng.randint(1, 3)))
    if rng.random() < 0.5:
        body += "\n" + loop(some(rng.randint(1, 2)))
        if rng.random() < 0.7:
            body = f"for n in range(0, 2, 1) {{\n{body}\n}}"
    return parse(
        "region() {\nin a: i64[13, 13];  inout p: i64[13, 13];  inout q: i64[13, 13];  inout b: i64[13, 13]\n"
        f"inout v: i64[12];  temp t: i64[12];  temp c: i64[]\nt[i] = 0 for i<12\nc[] = 1\n{body}\n}}"
    )
