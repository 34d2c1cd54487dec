"""Schedules against the interpreter, by a slow executor of kernels that also watches for races."""

import contextlib
import dataclasses
import random
import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kernel_machine import Machine, loop_of
from random_statements import check_agreement, memories, regions
from row_regions import Maker

from dcarray.ir import interp, ops, text, verify
from dcarray.ir.analysis.effects import rows_conflict
from dcarray.ir.nodes import Array, Compute, Index, Load, Region, Rows, Window
from dcarray.lowering.cpu.kernel_passes import ufunc_blocks as blocks_module
from dcarray.lowering.cpu.kernel_passes.ufunc_blocks import call_numpy_loops
from dcarray.lowering.cpu.schedules import column_reductions as columns_module
from dcarray.lowering.cpu.schedules import cross_row_reductions as across_module
from dcarray.lowering.cpu.schedules import elementwise as elementwise_module
from dcarray.lowering.cpu.schedules import reductions as reduce_module
from dcarray.lowering.cpu.schedules import scheduler as schedule_module
from dcarray.lowering.cpu.schedules import transpose as transpose_module
from dcarray.lowering.cpu.schedules.scheduler import schedule
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.text import kernel_text
from dcarray.lowering.kernel.verify import check


def run_both(region, symbols=None, seed=0):
    """The region by the interpreter and by its kernels, on equal memory."""
    symbols = symbols or {}
    memory, (flats, staged) = memories(region, symbols, 2, seed)
    with np.errstate(all="ignore"):
        interp.run(region, memory, symbols)
        kernels = []
        for stmt in region.body:
            made, binding = schedule(stmt, region)
            check(made)
            kernels.append(made)
            Machine(made, binding, flats, symbols)
            made, binding = call_numpy_loops(made, binding, find=loop_of)
            check(made)
            Machine(made, binding, staged, symbols)
    for name, (flat, _) in flats.items():  # the same to the bit
        np.testing.assert_array_equal(flat.view(np.uint8), staged[name][0].view(np.uint8), err_msg=name)
    check_agreement(region, flats, memory, symbols)
    return kernels


@pytest.fixture(scope="module", autouse=True)
def small_blocks():
    """Sizes of blocks that small tests go beyond."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transpose_module, "WIDE", 3)
        patch.setattr(transpose_module, "TALL", 16)
        patch.setattr(transpose_module, "NARROW", 2)
        patch.setattr(elementwise_module, "STRIP", 2)
        patch.setattr(schedule_module, "MIN_PARALLEL", 2)
        blocks = {"BLOCK": 2, "PIECE": 4, "MIN_PARALLEL": 3, "STOP": 2, "MIN_JAMMED": 2}
        blocks["DECIDED"] = (1, 3)
        for name, value in blocks.items():
            patch.setattr(reduce_module, name, value)
        sizes = {
            "COLUMNS": 2, "MIN_STRIP": 2, "GROUP": 2, "GROUPS": 2, "MIN_PART": 2, "WAYS": 2, "BODY": 99,
            "MIN_PARALLEL": 3,
        }  # fmt: skip
        for name, value in sizes.items():
            patch.setattr(columns_module, name, value)
        for module in (across_module, columns_module):  # all is from memory
            patch.setattr(module, "OUT_OF_CACHE", 0)
        patch.setattr(across_module, "MIN_JAMMED", 2)
        # Operations of random statements that are done in stages.
        patch.setattr(blocks_module, "_OPEN", frozenset({"multiply", "subtract", "exp", "power"}))
        patch.setattr(blocks_module, "ROW", 16)
        patch.setattr(blocks_module, "PLAIN", 2)
        yield


@settings(max_examples=120, derandomize=True, deadline=None)
@given(regions(), st.integers(0, 9))
def test_random_statements(drawn, seed):
    region, symbols = drawn
    with contextlib.suppress(Unsupported):
        run_both(region, symbols, seed)


@settings(max_examples=120, derandomize=True, deadline=None)
@example(93439, False)  # blocks of rows, and in them strips of a sum
@given(st.integers(0, 10**6), st.booleans())
def test_random_rows(seed, symbolic):
    maker = Maker(random.Random(seed), symbolic)
    made = maker.region()
    whole = Rows(made.body, 1)
    if rows_conflict(made.body, 1, made) is None:
        with contextlib.suppress(Unsupported):
            run_both(dataclasses.replace(made, body=(whole,)), maker.values, seed)
    else:
        with pytest.raises(Unsupported):
            schedule(whole, dataclasses.replace(made, body=(whole,)))


# ---- cases ------------------------------------------------------------------------------------------
def region(source):
    made = text.parse(source)
    verify.verify(made)
    return made


def texts(source):
    made = region(source)
    return [kernel_text(schedule(stmt, made)[0]) for stmt in made.body]


def test_a_stencil_has_one_pointer_and_one_row_stride():
    made = region("""region() {
  in A: f64[30, 30]
  inout B: f64[30, 30]
  B[i+1,j+1] = add(add(add(A[i+1,j], A[i+1,j+2]), A[i+2,j+1]), A[i,j+1]) for i<28, j<28
}""")
    (kernel,) = run_both(made)
    assert [b.access for b in kernel.buffers] == ["r", "w"]
    assert all(b.noalias for b in kernel.buffers)
    assert len(kernel.ints) == 3  # two extents and the stride of a row
    assert schedule(made.body[0], made)[1].bytes == 2 * 8 * 28 * 28


def test_slices_of_any_length_share_one_kernel():
    def axpy(n, k):
        return texts(f"""region() {{
  in a: f64[{n}]
  in x: f64[{n}]
  inout y: f64[{n}]
  y[i] = add(y[i], multiply(a[{k}], x[i])) for i<{k}
}}""")

    assert len({str(axpy(n, k)) for n in (50, 90000) for k in (1, 2, 3, 17, 49)}) == 1


def test_contiguous_axes_become_one_loop():
    (one,) = texts("""region() {
  in a: f64[7, 8, 9]
  out b: f64[7, 8, 9]
  b[i,j,k] = exp(a[i,j,k]) for i<7, j<8, k<9
}""")
    assert "parallel vector i0 < n0" in one and "i1" not in one


@pytest.mark.parametrize("body", ["a[i+1] = a[i] for i<8", "a[i] = a[8-i] for i<9", "a[0] add= a[i] for i<9"])
def test_overlap_is_refused(body):
    made = text.parse(f"region() {{\n  inout a: f64[9]\n  {body}\n}}")
    with pytest.raises(Unsupported, match="overlap"):
        schedule(made.body[0], made)


def total(values, dtype):
    """The sum of values by a kernel, on blocks of full size."""
    array = Array("a", np.dtype(dtype), (len(values),), "in")
    out = Array("s", np.dtype(dtype), (), "inout")
    stmt = Compute(
        Window("s", (len(values),), ()),
        Load(Window("a", (len(values),), (Index(0, 1, 0),)), array.dtype),
        "add",
        ops.const(complex(-0.0, -0.0) if dtype == "D" else -0.0, dtype),
    )
    kernel, binding = schedule(stmt, Region((), (array, out), (stmt,)))
    flats = {"a": (np.array(values, dtype), 0), "s": (np.ones(1, dtype), 0)}
    with np.errstate(all="ignore"):
        Machine(kernel, binding, flats, {})
    return flats["s"][0][0]


@pytest.mark.parametrize("count", [1, 2, 3, 13])
@pytest.mark.parametrize("dtype", ["d", "e", "D"])
def test_special_values_of_sums(dtype, count):
    assert str(total([-0.0] * count, dtype).real) == "-0.0"
    assert total([1.0] * count + [np.inf], dtype).real == np.inf
    assert total([np.inf] + [-1.0] * count, dtype).real == np.inf
    assert np.isnan(total([np.inf] * count + [-np.inf], dtype))
    assert np.isnan(total([1.0] * count + [np.nan], dtype))


@pytest.mark.parametrize("count", [7, 8, 68, 128, 129, 136, 143, 144, 240, 247, 271, 999])
def test_sums_have_numpys_bits(count):
    values = np.random.default_rng(count).normal(size=(2, count))
    for dtype in "fd":
        assert total(values[0].astype(dtype), dtype) == values[0].astype(dtype).sum()
    assert total(values[0] + 1j * values[1], "D") == (values[0] + 1j * values[1]).sum()


def test_sum_of_nothing():
    assert total([], "d") == 0.0


@pytest.mark.parametrize("sizes", [{"N": 3, "M": 4}, {"N": 5, "M": 1}, {"N": 7, "M": 0}, {"N": 0, "M": 3}])
@pytest.mark.parametrize("target", ["s[]", "s[k]"])
def test_blocks_of_symbolic_size(sizes, target):
    shape = "[2]" if "k" in target else "[]"
    made = text.parse(f"""region(N: int>=0, M: int>=0) {{
  in a: f64[2, N+1, M+2]
  inout s: f64{shape}
  {target} add= a[k,i,j+1] init 1.0 for k<2, i<N, j<M
}}""")
    run_both(made, sizes)


def test_a_constant_that_is_stored_hides_what_was_stored_before():
    region = text.parse("""region(N: int>=0) {
      inout a: f64[N]
      nest {
        a[i] add= 1.0 for i<N
        a[i] = 0.0 for i<N
        a[i] add= 2.0 for i<N
      }
    }""")
    kernel, _ = schedule(region.body[0], region)
    assert "add.float64(float64:0000000000000000, float64:4000000000000000)" in kernel_text(kernel)


def test_a_transpose_goes_straight_to_its_place():
    source = """region() {
  in a: f64[7, 5]
  out b: f64[5, 7]
  b[i,j] = a[j,i] for i<5, j<7
}"""
    (kernel,) = run_both(region(source))
    assert "= turn p0[" in kernel_text(kernel) and "stack" not in kernel_text(kernel)


def test_what_is_transposed_is_read_and_written_through_tiles():
    (kernel,) = run_both(
        region("""region() {
  in a: f64[7, 5]
  in b: f64[7, 5]
  in c: f64[5, 7]
  out d: f64[5, 7]
  out e: f64[7, 5]
  nest {
    d[j,i] = multiply(add(a[i,j], b[i,j]), c[j,i]) for i<7, j<5
    e[i,j] = subtract(a[i,j], c[j,i]) for i<7, j<5
  }
}""")
    )
    text = kernel_text(kernel)
    assert text.count("stack") == 3 and text.count("turn") == 3
    assert "x0[0...] = turn" in text and "x1[0...] = turn" in text and "= turn x2[0...]" in text


def test_an_array_that_is_written_is_not_read_ahead():
    (kernel,) = run_both(
        region("""region() {
  inout a: f64[7, 5]
  in b: f64[5, 7]
  in c: f64[5, 7]
  a[i,j] = multiply(add(a[i,j], c[j,i]), b[j,i]) for i<7, j<5
}""")
    )
    assert "p0[" not in "".join(line for line in kernel_text(kernel).splitlines() if "turn" in line)


@pytest.mark.parametrize("hint", [(2, 2), (9, 3), (30, 5)])
@pytest.mark.parametrize("sizes", [(1, 1), (7, 3), (8, 3), (9, 2), (19, 4), (24, 5), (0, 3), (3, 0)])
def test_columns_of_symbolic_size(sizes, hint):
    made = text.parse("""region(N: int>=0, M: int>=0) {
  in a: f64[N, M]
  in b: f64[3, N, M]
  inout s: f64[M]
  inout t: f64[M]
  inout m: f64[3, M]
  s[j] add= a[i,j] init 0.0 for i<N, j<M
  t[j] multiply= a[i,j] for i<N, j<M
  nest {
    m[k,j] maximum= subtract(b[k,i,j], a[i,j]) for k<3, i<N, j<M
  }
}""")
    symbols = tuple(dataclasses.replace(s, hint=h) for s, h in zip(made.symbols, hint, strict=True))
    run_both(dataclasses.replace(made, symbols=symbols), dict(zip("NM", sizes, strict=True)))


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("shape", ["M", "M, 3", "3, M"])
@pytest.mark.parametrize("sizes", [(1, 24), (4, 25), (5, 13), (9, 40), (3, 61), (6, 3), (0, 24), (4, 0)])
def test_what_all_rows_fold_is_taken_through_them_in_blocks(sizes, shape, symbolic, monkeypatch):
    for name, value in {"CACHE": 1, "NEAR": 1, "FAR": 3, "PARTS": 3, "AHEAD": 0, "EACH": 99}.items():
        monkeypatch.setattr(reduce_module, name, value)
    rows, count = sizes
    at, over = {"M": ("j", "j<M"), "M, 3": ("j,k", "j<M, k<2"), "3, M": ("k,j", "k<2, j<M")}[shape]
    made = f"""region(N: int>=0, M: int>=0) {{
  in x: f64[{shape}];  in y: f32[{shape}];  in w: f64[N]
  inout s: f64[N];  inout t: i64[N+1];  inout m: f64[N, 2]
  nest {{
    s[i] add= where(less(w[i], x[{at}]), cast:f64(y[{at}]), -0.0) init 0.0 for i<N, {over}
    t[i+1] add= cast:i64(less(w[i], x[{at}])) for i<N, {over}
    m[i,1] maximum= multiply(x[{at}], add(w[i], cast:f64(iota(i)))) for i<N, {over}
  }}
}}"""
    if not symbolic:
        made = made.replace("N: int>=0, M: int>=0", "").replace("i64[N+1]", f"i64[{rows + 1}]")
        for name, value in zip("NM", sizes, strict=True):
            made = made.replace(f"[{name}", f"[{value}").replace(f" {name}]", f" {value}]")
            made = made.replace(f"<{name}", f"<{value}")
    parsed = text.parse(made)
    symbols = tuple(dataclasses.replace(s, hint=h) for s, h in zip(parsed.symbols, sizes, strict=False))
    (kernel,) = run_both(dataclasses.replace(parsed, symbols=symbols), dict(zip("NM", sizes, strict=True)))
    if rows > 1 and count > 20 and shape == "M":
        assert [phase.var for phase in kernel.phases] == ["b0", "i0"]
        assert "step 4" in kernel_text(kernel)


def test_what_rows_fold_of_their_own_is_folded_row_by_row(monkeypatch):
    monkeypatch.setattr(reduce_module, "CACHE", 1)
    (kernel,) = run_both(
        region("""region() {
  in x: f64[40];  in a: f64[4, 40];  inout s: f64[4]
  s[i] add= multiply(x[j], a[i,j]) init 0.0 for i<4, j<40
}""")
    )
    assert len(kernel.phases) == 1


def test_a_softmax_is_one_phase(monkeypatch):
    monkeypatch.setattr(across_module, "OUT_OF_CACHE", 99)
    (kernel,) = run_both(
        region("""region() {
  in x: f64[5, 7]
  inout m: f64[5, 1]
  inout s: f64[5, 1]
  out e: f64[5, 7]
  rows 1 {
    m[i,0] maximum= x[i,j] init -inf for i<5, j<7
    nest {
      e[i,j] = exp(subtract(x[i,j], m[i,0])) for i<5, j<7
      s[i,0] add= e[i,j] init 0.0 for i<5, j<7
    }
    e[i,j] = divide(e[i,j], s[i,0]) for i<5, j<7
  }
}""")
    )
    (phase,) = kernel.phases
    assert phase.var == "i0" and len(kernel.buffers) == 4


def test_rows_of_several_axes_are_one_loop_if_they_go_on_without_a_jump(monkeypatch):
    monkeypatch.setattr(across_module, "OUT_OF_CACHE", 999)
    source = """region() {{
  in x: f64[3, {size}, 7]
  out s: f64[3, 2]
  out y: f64[3, 2, 7]
  rows 2 {{
    s[i,j] add= x[i,j,k] init 0.0 for i<3, j<2, k<7
    y[i,j,k] = divide(x[i,j,k], s[i,j]) for i<3, j<2, k<7
  }}
}}"""
    for size, rows in ((2, 6), (4, 3)):
        made = region(source.format(size=size))
        run_both(made)
        assert schedule(made.body[0], made)[1].extents == (rows,)


@pytest.mark.parametrize(
    ("images", "lines", "kinds", "launched"), [(2, 20, 16, 20), (4, 20, 16, 4), (2, 2, 2, 2), (2, 2, 16, 8)]
)
def test_sums_beside_few_columns_are_shared_out_by_their_longest_axis(images, lines, kinds, launched):
    """Such as a convolution of images with few channels."""
    domain = f"for n<{images}, i<{lines}, j<2, c<{kinds}, k<3"
    made = region(f"""region() {{
  in x: f64[{images}, {lines + 1}, 3, 3]
  in w: f64[2, 3, {kinds}]
  inout o: f64[{images}, {lines}, 2, {kinds}]
  o[n,i,j,c] add= add(multiply(x[n,i,j,k], w[0,k,c]), multiply(x[n,i+1,j+1,k], w[1,k,c])) init 0.0 {domain}
}}""")
    run_both(made)
    assert schedule(made.body[0], made)[1].extents == (launched,)


@pytest.mark.parametrize("width", [4, 5, 9])
@pytest.mark.parametrize(("value", "paired"), [
    ("add(multiply(x[n,i,j,k], w[0,k,c]), multiply(x[n,i,j+1,k], w[1,k,c]))", True),
    ("add(multiply(x[n,i,j,k], y[n,i,j,c]), y[n,i,j,c])", False),  # nothing in common
])  # fmt: skip
def test_sums_that_load_the_same_go_in_pairs(value, paired, width):
    made = region(f"""region() {{
  in x: f64[3, 4, {width + 1}, 3]
  in w: f64[2, 3, 16]
  in y: f64[3, 4, {width}, 16]
  inout o: f64[3, 4, {width}, 16]
  o[n,i,j,c] add= {value} init 0.0 for n<3, i<4, j<{width}, c<16, k<3
}}""")
    with pytest.MonkeyPatch.context() as patch:
        for name, size in {"COLUMNS": 99, "WAYS": 1}.items():
            patch.setattr(columns_module, name, size)
        (kernel,) = run_both(made)
    assert bool(re.search(r"serial i\d = 0 .. n\d+ step 2 {", kernel_text(kernel))) == paired
