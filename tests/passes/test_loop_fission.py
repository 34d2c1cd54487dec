"""Terms that share loops with other statements: those that leave them, those that may not, random nests."""

import random

import numpy as np
import pytest
from plan_runs import same_products
from written import written

import dcarray as dc
from dcarray.ir.parse import parse
from dcarray.ir.passes.base import Log
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.passes.portable.loop_products import LOOP_PRODUCTS
from dcarray.ir.text import dump
from dcarray.ir.verify import verify

ARRAYS = """in a: f64[{m}, {n}];  in b: f64[{n}, {m}];  inout c: f64[{m}, {n}];  inout p: f64[{n}];
  inout q: f64[{m}];  inout r: f64[{m}];  inout s: f64[{n}];  inout t: f64[];  in k: f64[];  temp w: f64[];
  inout flat: f64[{all}];  temp square: f64[{m}, {n}] base flat"""
COLUMNS = "s[j] = add(s[j], multiply(r[i], a[i,j]))"
ROWS = "q[i] = add(q[i], multiply(a[i,j], p[j]))"

INNER = (
    COLUMNS,
    ROWS,
    "q[i] = subtract(q[i], multiply(a[i,j], p[j]))",
    "q[i] = add(multiply(multiply(k[], a[i,j]), add(p[j], 1.0)), q[i])",
    "s[j] = add(s[j], multiply(b[j,i], multiply(r[i], r[i])))",
    "s[j] = add(s[j], multiply(square[i,j], r[i]))",
    "w[] = add(w[], multiply(a[i,j], p[j]))",
    "t[] = add(t[], multiply(multiply(a[i,j], p[j]), r[i]))",
    "c[i,j] = multiply(q[i], a[i,j])",
    "c[i,j] = add(c[i,j], multiply(r[i], p[j]))",
    "flat[j] = add(flat[j], multiply(a[i,j], r[i]))",
    "p[j] = add(p[j], 0.25)",
    "r[i] = multiply(s[j], 0.5)",
    "t[] = a[i,j]",
)
OUTER = (
    "q[i] = 0.0", "w[] = 0.0", "r[i] = add(w[], 1.0)", "t[] = add(t[], w[])", "r[i] = multiply(q[i], 0.125)",
    "s[j] = add(s[j], multiply(a[i,j], w[])) for j<{n}", "c[i,j] = multiply(a[i,j], q[i]) for j<{n}",
)  # fmt: skip


def random_nest(seed):
    rng = random.Random(seed)
    m, n = rng.randint(8, 12), rng.randint(8, 12)
    lines = ["w[] = 0.5", *(rng.choice(OUTER) for _ in range(rng.randint(0, 2)))]
    for _ in range(rng.choice([1, 1, 2])):
        low = rng.choice(["0", "0", "0", "i", "1"]) if n >= m else "0"
        lines += [f"for j in range({low}, {n}, 1) {{", *rng.choices(INNER, k=rng.randint(1, 4)), "}"]
        lines += [rng.choice(OUTER) for _ in range(rng.randint(0, 2))]
    body = "\n".join(line.replace("{n}", str(n)) for line in lines)
    steps = f"for z in range(0, 2, 1) {{ for i in range(0, {m}, 1) {{\n{body}\n}} }}"
    once = f"for i in range(0, {m}, 1) {{\n{body}\n}}"
    text = f"region() {{\n{ARRAYS.format(m=m, n=n, all=m * n)}\n{rng.choice([steps, once, once])}\n}}"
    return parse(text)


@pytest.mark.parametrize("block", range(20))
def test_random_nests(block):
    """What is made of them gives what they give; many of them have products."""
    products = 0
    for seed in range(block * 15, block * 15 + 15):
        region = random_nest(seed)
        verify(region)
        made = LOOP_PRODUCTS.fn(region, Log())
        products += made is not region
        same_products(region, made, CPU.run(region), seed=seed)
    assert products >= 2


def nest(*inner, outer=(), after=()):
    body = "\n".join([*outer, "for j in range(0, 12, 1) {", *inner, "}", *after])
    arrays = ARRAYS.format(m=9, n=12, all=108)
    return parse(f"region() {{\n{arrays}\nfor i in range(0, 9, 1) {{\n{body}\n}}\n}}")


@pytest.mark.parametrize(("inner", "others", "done", "why"), [
    ((COLUMNS, ROWS), {}, 2, None),
    ((COLUMNS, ROWS), {"outer": ["q[i] = 0.0"], "after": ["c[i,0] = q[i]"]}, 2, None),
    ((COLUMNS, "c[i,j] = multiply(q[i], a[i,j])"), {}, 1, None),
    ((ROWS, "c[i,j] = multiply(q[i], a[i,j])"), {}, 0, "the loop over j has other uses of q"),
    ((ROWS, "q[0] = 1.0"), {}, 0, "the loop over j has other uses of q"),
    ((COLUMNS, "r[i] = 1.0"), {}, 0, "the loop over i writes r"),
    ((COLUMNS,), {"after": ["s[0] = 1.0"]}, 0, "the loop over i has other uses of s"),
    (("q[i] = add(q[i], multiply(multiply(a[i,j], p[j]), t[]))", "t[] = a[i,j]"), {}, 0, "j writes t"),
    (("s[j] = add(s[j], multiply(square[i,j], r[i]))", "flat[j] = 1.0"), {}, 0, "over i writes square"),
    (
        ("q[i] = add(q[i], multiply(square[i,j], p[j]))", "c[i,j] = 1.0"),
        {"after": ["flat[i] = 1.0"]},
        0,
        "square is written in the loops",
    ),
])  # fmt: skip
def test_what_leaves_its_loop(inner, others, done, why):
    region = nest(*inner, **others)
    log = Log()
    made = LOOP_PRODUCTS.fn(region, log)
    assert sum(note.kind == "done" for note in log.notes) == done, log
    assert why is None or any(why in note.text for note in log.notes), log
    same_products(region, made, CPU.run(region))


def test_computed_factors_are_computed_before():
    """If they are the same for all results; one of them is written in the loops, and stays."""
    made = LOOP_PRODUCTS.fn(nest("s[j] = add(s[j], multiply(a[i,j], add(r[i], k[])))"), Log())
    lines = [line.strip() for line in dump(made).splitlines()]
    assert "factor_1[i] = add(r[i], k[]) for i<9" in lines
    assert "product_1[l] add= multiply(a[i,l], factor_1[i]) init 0.0 for i<9, l<12" in lines
    log = Log()
    region = nest("s[j] = add(s[j], multiply(a[i,j], add(r[i], t[])))", after=["t[] = s[0]"])
    assert LOOP_PRODUCTS.fn(region, log) is region


SOURCES = {
    "both": """
        for i in range(len(q)):
            q[i] = 0.0
            for j in range(len(s)):
                s[j] += r[i] * a[i, j]
                q[i] += a[i, j] * p[j]
    """,
    "one after the other": """
        for i in range(len(q)):
            total = 0.0
            for j in range(len(s)):
                total += a[i, j] * p[j]
            q[i] = total
            for j in range(len(s)):
                s[j] += a[i, j] * total
    """,
    "two sums": """
        for i in range(len(q)):
            first = 0.0
            second = r[i]
            for j in range(len(s)):
                first += a[i, j] * p[j]
                second -= a[i, j] * s[j]
            q[i] = 2.0 * first + second
    """,
    "needed in the loop": """
        for i in range(len(q)):
            for j in range(len(s)):
                s[j] += r[i] * a[i, j]
                q[i] += a[i, j] * s[j]
    """,
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("shape", [(9, 12), (40, 30), (1, 9), (0, 3), (3, 0)])
def test_compiled_loops(name, shape):
    """Accelerated, and as a program whose sizes are not known, they give what Python gives."""
    m, n = shape
    rng = np.random.default_rng(m)
    values = [rng.random(shape), *(rng.random(k) for k in (n, m, m, n))]
    types = "a: dc.types.float64[M, N], p: dc.types.float64[N], q: dc.types.float64[M], "
    types += "r: dc.types.float64[M], s: dc.types.float64[N]"
    head = f"import dcarray as dc\nM, N = dc.symbol('M'), dc.symbol('N')\ndef f({types}):"
    f = written(head + SOURCES[name])
    want = [x.copy() for x in values]
    f(*want)
    with dc.options(jit="eager", eager_below=0, cache_dir=None):
        for function in (dc.accelerate(f), dc.program(f)):
            got = [x.copy() for x in values]
            function(*got)
            for x, y in zip(got, want, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)
