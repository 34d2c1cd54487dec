"""Products of matrices out of loops: what is found, what is refused, and that results stay."""

import random

import numpy as np
import pytest
from plan_runs import same_products

import dcarray as dc
from benchmarks.polybench import agree
from benchmarks.polybench_kernels import KERNELS
from dcarray.ir import interp
from dcarray.ir.nodes import Call
from dcarray.ir.parse import parse
from dcarray.ir.passes.base import Log
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.passes.portable.loop_products import LOOP_PRODUCTS
from dcarray.ir.passes.portable.product_terms import LoopProduct, product_of
from dcarray.ir.statements import bodies
from dcarray.jit.program.static_region import static_region

TRIANGLE = """region() {{
  in a: f64[{m}, {n}];  in b: f64[{m}, {n}];  inout c: f64[{n}, {n}];  in s: f64[]
  for i in range(0, {n}, 1) {{
    for j in range({first}, {n}, 1) {{
      c[i,j] = {start}
      for k in range({low}, {m}, {step}) {{
        c[i,j] = {op}(c[i,j], multiply(multiply(s[], a[k,i]), b[k,j]))
      }}
      c[j,i] = c[i,j]
    }}
  }}
}}"""


def calls(statements):
    for stmt in statements:
        if isinstance(stmt, Call):
            yield stmt.op
        else:
            for body in bodies(stmt):
                yield from calls(body)


@pytest.mark.parametrize("seed", range(20))
def test_triangles_of_random_products(seed):
    rng = random.Random(seed)
    rows, low, step = rng.randint(8, 20), rng.randint(0, 2), rng.choice([1, 1, 2])
    text = TRIANGLE.format(
        m=rows, n=rng.randint(8, 14), first=rng.choice(["i", "i+1", "0"]), low=low, step=step,
        start=rng.choice(["0.0", "1.5", "c[i,j]"]), op=rng.choice(["add", "subtract"]),
    )  # fmt: skip
    region = parse(text)
    log = Log()
    after = LOOP_PRODUCTS.fn(region, log)
    assert [note.kind for note in log.notes] == ["done" if len(range(low, rows, step)) >= 8 else "refused"]
    same_products(region, after, CPU.run(region), valid=False)


LOOPS = """region() {{
  {arrays}
  for i in range(0, 12, 1) {{
    for k in range({bounds}) {{
      for j in range(0, 12, 1) {{
        {stmt}
      }}
    }}
  }}
}}"""
A, B, C = "in a: f64[12, 12];", "in b: f64[12, 12];", "inout c: f64[12, 12];"


PRODUCT = "c[i,j] = add(c[i,j], multiply(a[i,k], b[k,j]))"
INTEGERS = "in a: i64[12, 12]; in b: i64[12, 12]; inout c: i64[12, 12];"
LONG = "in a: f64[200, 12]; in b: f64[12, 200]; inout c: f64[12, 12];"


@pytest.mark.parametrize(("arrays", "bounds", "stmt", "why"), [
    (A + B + C, "0, 12, 1", PRODUCT, None),
    (A + B + C, "0, 12, 1", "c[i,j] = add(multiply(a[i,k], b[k,j]), c[i,j])", None),
    (A + B + C, "0, 12, 1", "c[i,j] = subtract(multiply(a[i,k], b[k,j]), c[i,j])", "adds nothing"),
    (A + C, "0, 12, 1", PRODUCT.replace("b", "c"), "c is written in the loops"),
    (
        A + B + C,
        "0, 12, 1",
        PRODUCT.replace("multiply(a", "multiply(c[0,0], multiply(a") + ")",
        "c changes",
    ),
    (A + B + C, "i, 12, 1", PRODUCT, "different numbers of terms"),
    (A + B + C, "0, 12, 1", "c[k,j] = add(c[k,j], multiply(a[i,k], b[k,j]))", "written term by term"),
    (A + B + C, "0, 12, 1", "c[i,j] = add(c[i,j], add(a[i,k], b[k,j]))", "not products of elements"),
    (A + B + C, "0, 12, 1", PRODUCT.replace("b[k,j]", "exp(add(a[i,k], b[k,j]))"), "not an element of a row"),
    (A + C, "0, 12, 1", "c[i,j] = add(c[i,j], a[i,k])", "not products of elements"),
    (A + B + C, "0, 4, 1", PRODUCT, "the product is small"),
    (LONG, "0, 12, 1", PRODUCT, "most of the product would not be used"),
    (INTEGERS, "0, 12, 1", PRODUCT, "adds nothing"),
])  # fmt: skip
def test_what_is_a_product(arrays, bounds, stmt, why):
    region = parse(LOOPS.format(arrays=arrays, bounds=bounds, stmt=stmt))
    log = Log()
    after = LOOP_PRODUCTS.fn(region, log)
    if why is None:
        assert after is not region and [note.kind for note in log.notes] == ["done"]
        assert list(calls(CPU.run(region).body)) == ["blas.matmul"]
    else:
        assert after is region
        found = product_of(region.body[0].body[0], frozenset({"i"}), {a.name: a for a in region.arrays})
        if isinstance(found, LoopProduct):
            assert any(why in note.text for note in log.notes), log
        else:
            assert why in found.text
    same_products(region, after, valid=False)


def test_loops_that_may_not_run_say_nothing_of_indices():
    """With n = 0 there is no row n - 1, and none is read."""
    text = """region(n: int>=0) {
      in a: f64[n, 12];  in b: f64[12, 12];  inout c: f64[n, 12]
      for i in range(0, n, 1) {
        for j in range(0, 12, 1) {
          for k in range(0, 12, 1) {
            c[i,j] = add(c[i,j], multiply(a[ROW,k], b[k,j]))
          }
        }
      }
    }"""
    for row, there in (("i", True), ("n-1", False)):
        region = parse(text.replace("ROW", row))
        log = Log()
        assert (LOOP_PRODUCTS.fn(region, log) is not region) == there, log
    assert "a may not have all that the product needs" in str(log)


SYMBOLIC = """region(n: int>=0, m: int>=0, k: int>=0, t: int>=0) {
  in a: f64[n, k];  in b: f64[k, m];  inout c: f64[n, m];  in s: f64[]
  for i in range(0, ROWS, 1) {
    for j in range(0, m, 1) {
      for l in range(0, TERMS, 1) {
        c[i,j] = OP(c[i,j], multiply(multiply(s[], a[i,l]), b[l,j]))
      }
    }
  }
}"""


@pytest.mark.parametrize("op", ["add", "subtract"])
@pytest.mark.parametrize("terms", ["k", "k-2"])
def test_sizes_that_are_not_known(op, terms):
    """Where there are no terms, nothing changes: neither -0.0 nor what would be multiplied by an infinity."""
    region = parse(SYMBOLIC.replace("OP", op).replace("TERMS", terms).replace("ROWS", "n"))
    log = Log()
    after = LOOP_PRODUCTS.fn(region, log)
    if terms == "k-2":  # which may be negative
        assert after is region
        return
    assert list(calls(CPU.run(region).body)) == ["blas.matmul"] and [note.kind for note in log.notes] == [
        "done"
    ]
    for n, m, k in [(9, 4, 3), (2, 3, 1), (3, 2, 0), (0, 3, 2), (3, 0, 2), (20, 11, 30)]:
        rng = np.random.default_rng(n)
        for scale in (2.0, np.inf if k == 0 else 0.5):
            memory = {
                "a": rng.random((n, k)), "b": rng.random((k, m)), "c": rng.choice([-0.0, 1.5], (n, m)),
                "s": np.array(scale),
            }  # fmt: skip
            sizes = dict(n=n, m=m, k=k, t=0)
            want = interp.run(region, {name: x.copy() for name, x in memory.items()}, sizes)["c"]
            for made in (after, CPU.run(region)):
                with np.errstate(invalid="ignore"):
                    got = interp.run(made, {name: x.copy() for name, x in memory.items()}, sizes)["c"]
                np.testing.assert_allclose(got, want, rtol=1e-12)
                if k == 0:
                    assert got.tobytes() == want.tobytes()


def test_a_product_of_which_little_may_be_used_is_none():
    """The loop may run a few times, however large the arrays are."""
    region = parse(SYMBOLIC.replace("OP", "add").replace("TERMS", "k").replace("ROWS", "min(n, t)"))
    log = Log()
    assert LOOP_PRODUCTS.fn(region, log) is region and "would not be used" in str(log)


@pytest.mark.parametrize("name", ["correlation", "covariance"])
def test_loops_and_statements_have_one_plan(name):
    """One product and a triangle, whoever wrote it how."""
    kernel = next(one for one in KERNELS if one.name == name)
    for style in (kernel.statements, kernel.loops):
        region = static_region(style, tuple(kernel.arguments(0.3))).region
        assert list(calls(CPU.run(region).body)) == ["blas.matmul"], style


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_polybench(kernel):
    """Statements and loops, accelerated, give what NumPy gives; so do the loops on lists."""

    def ran(function, lists=False):
        given = [
            a.tolist() if lists and isinstance(a, np.ndarray) else a for a in kernel.arguments(0.03, seed=1)
        ]
        function(*given)
        return given

    want = ran(kernel.statements)
    assert agree(ran(kernel.loops, lists=True), want)
    with dc.options(jit="eager", eager_below=0):
        for function in (kernel.statements, kernel.loops):
            assert agree(ran(dc.accelerate(function)), want)
