"""Factors and addends of products: random ones, those that are refused, and what raises exceptions."""

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
from dcarray.ir.passes.portable.product_terms import LoopProduct, product_of
from dcarray.ir.text import dump
from dcarray.ir.verify import verify

ARRAYS = """in a: f64[{k}, {m}];  in b: f64[{n}, {k}];  in p: f64[{m}];  in q: f64[{n}];  in w: f64[{k}];
  in s: f64[];  in h: f32[{k}, {m}];  inout c: f64[{m}, {n}];  inout d: f64[{n}, {m}]"""
LEFT = (
    "a[k,i]", "subtract(a[k,i], p[i])", "exp(a[k,i])", "divide(a[k,i], w[k])", "cast:f64(h[k,i])",
    "multiply(a[k,i], w[k])", "where(less(a[k,i], p[i]), w[k], a[k,i])", "divide(w[k], add(p[i], a[k,i]))",
    "multiply(add(s[], p[i]), a[k,i])", "subtract(p[i], w[k])", "add(a[k,i], size:f64(i))",
)  # fmt: skip
RIGHT = (
    "b[j,k]", "subtract(b[j,k], q[j])", "multiply(w[k], b[j,k])", "divide(b[j,k], q[j])", "sqrt(b[j,k])",
    "multiply(b[j,k], multiply(w[k], w[k]))", "divide(multiply(b[j,k], 0.5), add(w[k], q[j]))",
)  # fmt: skip
REST = ("s[]", "p[i]", "q[j]", "multiply(p[i], q[j])", "add(d[j,i], 1.0)")


def random_term(rng):
    factors = [rng.choice(LEFT), rng.choice(RIGHT)]
    rng.shuffle(factors)
    term = f"multiply({factors[0]}, {factors[1]})"
    for rest in rng.choices(REST, k=rng.choice([0, 0, 1, 2])):
        how = rng.choice(["multiply({0}, {1})", "multiply({1}, {0})", "divide({0}, {1})"])
        term = how.format(term, rest)
    return f"negative({term})" if rng.random() < 0.1 else term


def random_nest(seed):
    rng = random.Random(seed)
    k, m, n = (rng.randint(8, 12) for _ in range(3))
    term = random_term(rng)
    for _ in range(rng.choice([0, 0, 1, 2])):
        term = f"{rng.choice(['add', 'subtract'])}({term}, {random_term(rng)})"
    stmt = f"c[i,j] = {rng.choice(['add', 'subtract'])}(c[i,j], {term})"
    first = rng.choice(["0", "0", "1"] + (["i"] if n >= m else []))
    loops = [f"for i in range(0, {m}, 1) {{", f"for j in range({first}, {n}, 1) {{"]
    terms = f"for k in range({rng.choice([0, 0, 1])}, {k}, 1) {{"
    loops.insert(rng.choice([0, 2]), terms)
    body = "\n".join([*loops, stmt, "}" * 3])
    return parse(f"region() {{\n{ARRAYS.format(k=k, m=m, n=n)}\n{body}\n}}")


@pytest.mark.parametrize("block", range(10))
def test_random_terms(block):
    products = 0
    for seed in range(block * 20, block * 20 + 20):
        region = random_nest(seed)
        verify(region)
        made = LOOP_PRODUCTS.fn(region, Log())
        products += made is not region
        same_products(region, made, CPU.run(region), seed=seed)
    assert products >= 10


def nest(term, arrays="", terms="0, 12, 1"):
    arrays = ARRAYS.format(k=12, m=12, n=12) + ";  in e: f64[12, 12];  in u: i64[12];  in z: f64[9];" + arrays
    loops = f"for i in range(0, 12, 1) {{ for j in range(0, 12, 1) {{ for k in range({terms}) {{"
    return parse(f"region() {{\n{arrays}\n{loops}\nc[i,j] = add(c[i,j], {term})\n}} }} }}\n}}")


@pytest.mark.parametrize(("term", "factors"), [
    ("multiply(a[k,i], e[k,j])", 0),
    ("multiply(multiply(s[], a[k,i]), e[k,j])", 0),
    ("divide(multiply(a[k,i], e[k,j]), 3.0)", 0),
    ("negative(multiply(a[k,i], multiply(q[j], e[k,j])))", 0),
    ("multiply(subtract(a[k,i], p[i]), subtract(a[k,j], p[j]))", 1),
    ("multiply(multiply(a[k,i], w[k]), e[k,j])", 1),
    ("multiply(exp(a[k,i]), log(e[k,j]))", 2),
    ("divide(multiply(a[k,i], e[k,j]), s[])", 1),
    ("divide(multiply(a[k,i], e[k,j]), q[j])", 1),
    ("divide(multiply(a[k,i], e[k,j]), w[k])", 1),
    ("add(multiply(a[k,i], e[k,j]), multiply(e[k,i], a[k,j]))", 0),
    ("subtract(multiply(a[k,i], w[k]), p[i])", "not products of elements"),
    ("add(multiply(a[k,i], e[k,j]), w[k])", "not products of elements"),
    ("divide(multiply(a[k,i], e[k,j]), multiply(p[i], q[j]))", "not an element of a row"),
    ("divide(multiply(a[k,i], w[k]), q[j])", 1),
    ("divide(multiply(a[k,i], w[k]), e[k,j])", 1),
    ("divide(a[k,i], e[k,j])", "only divides"),
    ("divide(w[k], a[k,i])", "a matrix would be computed"),
    ("multiply(w[k], subtract(a[k,i], p[i]))", "a matrix would be computed"),
    ("multiply(exp(add(a[k,i], e[k,j])), a[k,i])", "not an element of a row"),
    ("multiply(a[k,i], gather(e, u[k], u[j]))", "not an element of a row"),
    ("multiply(a[k,i], checked(less(e[k,j], 9.0), e[k,j]))", "not an element of a row"),
    ("multiply(subtract(a[k,i], d[i,k]), e[k,j])", 1),
])  # fmt: skip
def test_what_is_a_product(term, factors):
    region = nest(term)
    log = Log()
    made = LOOP_PRODUCTS.fn(region, log)
    names = [array.name for array in made.arrays if array.name.startswith("factor_")]
    if isinstance(factors, int):
        assert made is not region and len(names) == factors
    else:
        assert made is region
        found = product_of(
            region.body[0].body[0].body[0], frozenset("ij"), {a.name: a for a in region.arrays}
        )
        assert factors in (str(log) if isinstance(found, LoopProduct) else found.text)
    if "gather" not in term and "checked" not in term:
        same_products(region, made, CPU.run(region))


def test_a_matrix_is_computed_where_all_arrays_have_it():
    """The shortest one says how large it is; one that has less than the loops may read is none."""
    text = """region(n: int>=0, m: int>=0) {
      in a: f64[12, 20];  in b: f64[12, 12];  in p: f64[EXTENT];  inout c: f64[12, 12]
      for i in range(0, LAST, 1) {
        for j in range(0, 12, 1) {
          for k in range(0, 12, 1) {
            c[i,j] = add(c[i,j], multiply(subtract(a[k,i+4], p[i+1]), b[k,j]))
          }
        }
      }
    }"""
    for extent, last, shape in (("13", "12", "12, 13"), ("30", "12", None), ("n", "m", None)):
        region = parse(text.replace("EXTENT", extent).replace("LAST", last))
        log = Log()
        made = LOOP_PRODUCTS.fn(region, log)
        if shape is None:
            assert made is region and "may not have all" in str(log)
        else:
            assert f"factor_1: f64[{shape}]" in dump(made)
            same_products(region, made, CPU.run(region))


SOURCES = {
    "weights": """
        for k in range(len(a)):
            for i in range(len(p)):
                for j in range(len(p)):
                    c[i, j] += 2.0 * w[k] * math.exp(a[k, i]) * a[k, j] / p[j]
    """,
    "two products": """
        for i in range(len(p)):
            for j in range(i + 1):
                for k in range(len(a)):
                    c[i, j] += a[k, j] * s * a[k, i] + a[k, i] * w[k] * a[k, j]
    """,
    "rows": """
        for i in range(len(p)):
            c[i, i:] = ((a[:, i] - p[i]) * (a[:, i:] - p[i:]).T).sum(axis=1)
    """,
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("shape", [(20, 15), (60, 70), (1, 9), (0, 12), (9, 0)])
def test_compiled_loops(name, shape):
    """Accelerated, and as a program whose sizes are not known, they give what Python gives."""
    rng = np.random.default_rng(3)
    a, p, w = rng.random(shape), rng.random(shape[1]) + 0.5, rng.random(shape[0])
    types = "a: dc.types.float64[M, N], p: dc.types.float64[N], w: dc.types.float64[M], "
    types += "c: dc.types.float64[N, N], s: dc.types.float64"
    head = "import math\nimport dcarray as dc\nM, N = dc.symbol('M'), dc.symbol('N')\n"
    source = written(head + f"def f({types}):" + SOURCES[name])
    want = np.zeros((shape[1], shape[1]))
    source(a, p, w, want, 1.5)
    with dc.options(jit="eager", eager_below=0, cache_dir=None):
        for made in (dc.accelerate(source), dc.program(source)):
            got = np.zeros_like(want)
            made(a, p, w, got, 1.5)
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("columns", [14, 15])
def test_exceptions_of_factors(columns):
    """A matrix is computed in columns, too, that no loop reads: what that raises is nobody's, what the loops
    raise is the program's."""
    source = written("""
        import numpy as np
        def f(a, b, c, columns):
            for i in range(columns):
                for j in range(15):
                    total = np.float64(0.0)
                    for k in range(20):
                        total += np.exp(a[k, i]) * b[k, j]
                    c[i, j] = total
    """)
    rng = np.random.default_rng(4)
    a, b, c = rng.random((20, 15)), rng.random((20, 15)), np.zeros((15, 15))
    a[3, 14] = 1e4
    with dc.options(jit="eager", eager_below=0, cache_dir=None), np.errstate(all="raise"):
        made = dc.accelerate(source)
        for _ in range(3):
            if columns == 14:
                made(a, b, c, columns)
                np.testing.assert_allclose(c[:14], (np.exp(a[:, :14]).T @ b), rtol=1e-12)
                assert not c[14].any()
            else:
                with pytest.raises(FloatingPointError):
                    made(a, b, c, columns)
