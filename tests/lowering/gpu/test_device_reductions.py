"""Reductions on devices: trees in shared memory, partial results of pieces, the accuracy of sums."""

import dataclasses
import math

import numpy as np
import pytest
from device_statements import SMALL, run_both
from kernel_machine import Machine

from dcarray.ir import ops, text, verify
from dcarray.ir.nodes import Array, Compute, Index, Load, Region, Window
from dcarray.lowering.gpu.scheduler import schedule
from dcarray.lowering.kernel.text import kernel_text
from dcarray.lowering.kernel.verify import check


def region(source):
    made = text.parse(source)
    verify.verify(made)
    return made


def folded(values, dtype, combine="add", init=-0.0):
    """The values folded by a kernel of small blocks, and the number of its phases."""
    array, out = Array("a", np.dtype(dtype), (len(values),), "in"), Array("s", np.dtype(dtype), (), "inout")
    body = Load(Window("a", (len(values),), (Index(0, 1, 0),)), array.dtype)
    stmt = Compute(Window("s", (len(values),), ()), body, combine, ops.const(init, dtype))
    kernel, binding = schedule(stmt, Region((), (array, out), (stmt,)), SMALL)
    check(kernel)
    flats = {"a": (np.array(values, dtype), 0), "s": (np.ones(1, dtype), 0)}
    with np.errstate(all="ignore"):
        Machine(kernel, binding, flats, {})
    return flats["s"][0][0], len(kernel.phases)


@pytest.mark.parametrize("count", [1, 3, 13, 40])
@pytest.mark.parametrize("dtype", ["d", "e", "D"])
def test_special_values_of_sums(dtype, count):
    def total(values):
        return folded(values, dtype, init=complex(-0.0, -0.0) if dtype == "D" else -0.0)[0]

    assert str(total([-0.0] * count).real) == "-0.0"
    assert total([1.0] * count + [np.inf]).real == np.inf
    assert total([np.inf] + [-1.0] * count).real == np.inf
    assert np.isnan(total([np.inf] * count + [-np.inf]))
    assert np.isnan(total([1.0] * count + [np.nan]))


@pytest.mark.parametrize("count", [0, 7, 33, 100, 1000])
def test_sums_are_as_accurate_as_pairwise_ones(count):
    rng = np.random.default_rng(count)
    values = rng.standard_normal(count) * 10.0 ** rng.integers(-8, 8, count)
    total, phases = folded(values, "d")
    assert phases == (2 if count > 32 else 1)
    scale = np.abs(values).sum()
    assert abs(total - math.fsum(values)) <= 2**-53 * math.log2(max(count, 2)) * scale


def test_halves_are_added_up_in_single_precision():
    assert folded([1.0] * 3000, "e")[0] == 3000
    assert folded([60000.0, 60000.0, -60000.0], "e")[0] == np.float16(60000)


@pytest.mark.parametrize("count", [5, 50])
@pytest.mark.parametrize("dtype", ["d", "f", "e"])
def test_extremes_with_nan(dtype, count):
    values = [float(k) for k in range(count)]
    values[count // 2] = np.nan
    assert np.isnan(folded(values, dtype, "maximum", -np.inf)[0])
    assert np.isnan(folded(values, dtype, "minimum", np.inf)[0])
    assert folded(values, dtype, "fmax", -np.inf)[0] == count - 1


def test_products_and_integers():
    assert folded([2.0] * 50, "d", "multiply", 1)[0] == 2.0**50
    assert folded([-128] * 50 + [127], "b", "minimum", 127)[0] == -128
    assert folded([100] * 50, "b", "add", 0)[0] == np.int64(5000).astype(np.int8)
    assert folded([True] * 50 + [False], "?", "logical_and", True)[0] == np.False_
    assert folded([3, 5] * 25, "i", "bitwise_xor", 0)[0] == 6


SIZES = [(1, 1), (7, 3), (40, 2), (9, 20), (200, 1), (2, 60), (0, 3), (3, 0)]


@pytest.mark.parametrize("hint", [(2, 2), (90, 3), (3, 100)])
@pytest.mark.parametrize("sizes", SIZES)
def test_rows_and_columns_of_symbolic_size(sizes, hint):
    made = region("""region(N: int>=0, M: int>=0) {
  in a: f64[N, M];  in b: f64[3, N, M]
  inout s: f64[M];  inout t: f64[M];  inout m: f64[3, M];  inout r: f64[N];  inout k: i64[]
  s[j] add= a[i,j] init 0.0 for i<N, j<M
  t[j] multiply= a[i,j] for i<N, j<M
  nest {
    m[k,j] maximum= subtract(b[k,i,j], a[i,j]) for k<3, i<N, j<M
  }
  r[i] add= multiply(a[i,j], a[i,j]) for i<N, j<M
  k[] add= cast:i64(less(b[k,i,j], a[i,j])) init 1 for k<3, i<N, j<M
}""")
    symbols = tuple(dataclasses.replace(s, hint=h) for s, h in zip(made.symbols, hint, strict=True))
    run_both(dataclasses.replace(made, symbols=symbols), dict(zip("NM", sizes, strict=True)))


def kernels(source):
    made = region(source)
    return [schedule(stmt, made) for stmt in made.body]


def test_the_blocks_of_a_large_sum_have_a_fixed_size():
    ((kernel, binding),) = kernels("""region() {
  in a: f64[1000000];  inout s: f64[]
  s[] add= a[i] init 0.0 for i<1000000
}""")
    # smaller ones than of a larger sum, since a device would else be idle
    assert "2048*block" in kernel_text(kernel) and binding.extents == (-(-1000000 // 2048), 1)
    ((kernel, binding),) = kernels("""region() {
  in a: f64[5000000];  inout s: f64[]
  s[] add= a[i] init 0.0 for i<5000000
}""")
    assert "8192*block" in kernel_text(kernel) and binding.extents == (-(-5000000 // 8192), 1)
    ((kernel, binding),) = kernels("""region() {
  in a: f64[1000000000];  inout s: f64[]
  s[] add= a[i] init 0.0 for i<1000000000
}""")
    assert binding.extents == (-(-1000000000 // (8192 * 128)), 1)


def test_short_rows_have_a_thread_each():
    ((kernel, binding),) = kernels("""region() {
  in a: f64[100000, 8];  inout s: f64[100000]
  s[i] add= a[i,j] init 0.0 for i<100000, j<8
}""")
    assert len(kernel.phases) == 1 and "stack" not in kernel_text(kernel)
    assert binding.extents == (-(-100000 // 256),)


def test_long_rows_have_a_block_each():
    ((kernel, binding),) = kernels("""region() {
  in a: f64[1000, 5000];  inout s: f64[1000]
  s[i] add= a[i,j] init 0.0 for i<1000, j<5000
}""")
    assert len(kernel.phases) == 1 and binding.extents == (1000,)


def test_few_columns_are_cut_into_pieces():
    ((kernel, binding),) = kernels("""region() {
  in a: f64[100000, 40];  inout s: f64[40]
  s[j] add= a[i,j] init 0.0 for i<100000, j<40
}""")
    # 8 rows of 32 threads, of which each adds up 32 elements
    assert binding.extents[0] == 2 * -(-100000 // 256) and len(kernel.phases) == 2
