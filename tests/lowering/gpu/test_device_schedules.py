"""Schedules for devices against the interpreter, by the slow executor of kernels that watches for races."""

import contextlib
import random
from dataclasses import replace

import pytest
from device_statements import SMALL, run_both
from hypothesis import given, settings
from hypothesis import strategies as st
from random_statements import regions
from row_regions import Maker

from dcarray.ir import text, verify
from dcarray.ir.analysis.effects import rows_conflict
from dcarray.ir.nodes import Rows
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.gpu.scheduler import schedule
from dcarray.lowering.gpu.schedules.blocks import LIMITS, PROCESSOR
from dcarray.lowering.kernel.nodes import For, If
from dcarray.lowering.kernel.text import kernel_text

CORES = replace(SMALL, vector=4, pieces=2)


@settings(max_examples=120, derandomize=True, deadline=None)
@given(regions(), st.integers(0, 9), st.booleans())
def test_random_statements(drawn, seed, on_processor):
    region, symbols = drawn
    with contextlib.suppress(Unsupported):
        run_both(region, symbols, seed, CORES if on_processor else SMALL)


# ---- element-wise -------------------------------------------------------------------------------------
def region(source):
    made = text.parse(source)
    verify.verify(made)
    return made


def test_neighbouring_threads_access_neighbouring_elements():
    made = region("""region() {
  in a: f64[3, 250];  in w: f64[3];  out b: f64[3, 250]
  b[i,j] = multiply(a[i,249-j], w[i]) for i<3, j<250
}""")
    run_both(made)
    kernel, binding = schedule(made.body[0], made, replace(LIMITS, threads=64))
    lines = kernel_text(kernel).splitlines()
    # four blocks a row, of which three are whole
    assert binding.extents == (12,) and "of 64 block" in lines[1]
    in_threads = [k for k, line in enumerate(lines) if "threads lane < 64" in line]
    loads = [k for k, line in enumerate(lines) if "= p1[q0]" in line]
    assert loads == [k - 1 for k in in_threads]  # once for a block


@pytest.mark.parametrize("extents", [(4000,), (300,), (60, 64), (5, 31, 67), (300, 2)])
def test_threads_do_a_strip_where_there_are_many_blocks(extents):
    shape, names = ", ".join(str(extent + 1) for extent in extents), "ijk"[: len(extents)]
    at, bounds = ",".join(names), ", ".join(f"{n}<{e}" for n, e in zip(names, extents, strict=True))
    made = region(f"""region() {{
  in a: f64[{shape}];  inout b: f64[{shape}]
  b[{at}] = multiply(a[{at}], b[{at}]) for {bounds}
}}""")
    limits = replace(LIMITS, threads=32, narrow=16, strip=8, busy=2)
    (kernel,) = run_both(made, limits=limits)
    assert "serial k1 = 0 .. " in kernel_text(kernel)


@pytest.mark.parametrize("shape", [(4000,), (5, 131), (2, 3, 257)])
@pytest.mark.parametrize("extra", [0, 1, 3])
def test_cores_of_processors_go_along_rows(shape, extra):
    names, at = "ijk"[: len(shape)], ", ".join(str(extent + extra) for extent in shape)
    bounds = ", ".join(f"{n}<{e + extra}" for n, e in zip(names, shape, strict=True))
    place = ",".join(names)
    made = region(f"""region() {{
  in a: f64[{at}];  inout b: f64[{at}]
  b[{place}] = multiply(a[{place}], b[{place}]) for {bounds}
}}""")
    (kernel,) = run_both(made, limits=CORES)
    assert [phase.threads for phase in kernel.phases] == [4] and "serial k1 = 0 .. 8" in kernel_text(kernel)
    (plain,) = run_both(made)
    assert [phase.threads for phase in plain.phases] == [8]


def test_cores_do_rectangles_of_short_or_transposed_rows():
    for body in ("b[i,j] = negative(a[i,j]) for i<600, j<40", "b[j,i] = negative(a[i,j]) for i<600, j<40"):
        made = region(f"region() {{\n  in a: f64[600, 600];  out b: f64[600, 600]\n  {body}\n}}")
        assert schedule(made.body[0], made, PROCESSOR)[0].phases[0].threads > PROCESSOR.vector


def test_rows_that_leave_threads_idle_share_a_block():
    made = region("""region() {
  in a: f32[1000, 400];  out b: f32[1000, 400]
  b[i,j] = negative(a[i,j]) for i<1000, j<366
}""")
    kernel, binding = schedule(made.body[0], made)
    # 64 by 4 threads; there are too few blocks for strips
    assert binding.extents == (1000 // 4 * 6,) and kernel.phases[0].threads == 256
    run_both(made)


def test_short_rows_share_a_block():
    made = region("""region() {
  in a: f64[1000, 3, 2];  out b: f64[1000, 5]
  b[i,j] = add(a[i,j,0], a[i,j,1]) for i<1000, j<3
}""")
    kernel, binding = schedule(made.body[0], made)
    # of four columns, one is idle
    assert binding.extents == (-(-1000 // 64),) and "bitwise_and.int64((lane)" in kernel_text(kernel)


def test_what_is_transposed_has_square_blocks():
    made = region("""region() {
  in a: f64[40, 70];  out b: f64[70, 40]
  b[i,j] = a[j,i] for i<70, j<40
}""")
    run_both(made)
    assert schedule(made.body[0], made)[1].extents == (5 * 3,)


@pytest.mark.parametrize("body", [
    "in a: f64[101];  out b: f64[101]\n  b[i] = multiply(a[100-i], a[3]) for i<101",
    "in a: f64[41, 35];  out b: f64[35, 41]\n  b[i,j] = negative(a[j,i]) for i<35, j<41",
    "in a: f64[9, 41];  inout b: f64[9, 41]\n  b[i,j+1] = subtract(a[i,j], b[i,j+1]) for i<9, j<40",
    "in a: f64[45, 2];  in c: f64[];  out b: f64[45, 5]\n  b[i,j] = add(a[i,j], c[]) for i<45, j<2",
])  # fmt: skip
def test_threads_of_whole_blocks_make_no_test(body):
    made = region("region() {\n  " + body + "\n}")
    (kernel,) = run_both(made)
    (branch,) = (stmt for stmt in kernel.phases[0].body if isinstance(stmt, If))
    inside, outside = kernel_body(branch.then[-1]), kernel_body(branch.orelse[-1])
    assert not any(isinstance(stmt, If) for stmt in inside)
    assert any(isinstance(stmt, If) for stmt in outside)


def kernel_body(threads):
    """What threads do, in strips or not."""
    (*_, last) = threads.body
    return last.body if isinstance(last, For) else threads.body


def test_where_elements_are_dear_or_blocks_few_every_thread_makes_its_test():
    dear = "b[i] = exp(exp(exp(exp(exp(exp(a[i])))))) for i<1000"
    for body in (dear, "b[i] = add(a[i], a[i]) for i<20"):
        made = region("region() {\n  in a: f64[1000];  out b: f64[1000]\n  " + body + "\n}")
        kernel, _ = schedule(made.body[0], made, replace(SMALL, cheap=32))
        assert not any(isinstance(stmt, If) for stmt in kernel.phases[0].body)


def test_one_element():
    (kernel,) = run_both(region("region() {\n  in a: f64[5];  out b: f64[]\n  b[] = multiply(a[3], 2.0)\n}"))
    assert "if less.bool((lane)" in kernel_text(kernel)


def test_scalars_go_by_value():
    made = region("""region() {
  in c0: f64[];  in c1: i64[];  in e: f64[];  inout d: f64[];  inout a: f64[9]
  a[i] = add(multiply(c0[], a[i]), add(add(d[], e[]), cast:f64(c1[]))) for i<9
}""")
    (kernel,) = run_both(made)
    names = [pointer.array for pointer in schedule(made.body[0], made)[1].pointers]
    by_value = [name for name, buffer in zip(names, kernel.buffers, strict=True) if buffer.by_value]
    assert by_value == ["c0", "c1"]  # what a run is given as arrays are buffers, also without axes


def test_slices_of_any_length_share_one_kernel():
    def axpy(n, k):
        made = region(f"""region() {{
  in a: f64[{n}];  in x: f64[{n}];  inout y: f64[{n}]
  y[i] = add(y[i], multiply(a[{k}], x[i])) for i<{k}
}}""")
        return kernel_text(schedule(made.body[0], made)[0])

    assert len({axpy(n, k) for n in (50, 90000) for k in (2, 3, 17, 49)}) == 1


@pytest.mark.parametrize("body", ["a[i+1] = a[i] for i<8", "a[i] = a[8-i] for i<9", "a[0] add= a[i] for i<9"])
def test_overlap_is_refused(body):
    made = text.parse(f"region() {{\n  inout a: f64[9]\n  {body}\n}}")
    with pytest.raises(Unsupported, match="overlap"):
        schedule(made.body[0], made)


# ---- rows -----------------------------------------------------------------------------------------------
@settings(max_examples=120, derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([1, 9]))
def test_random_rows(seed, symbolic, short):
    maker = Maker(random.Random(seed), symbolic)
    made = maker.region()
    whole = Rows(made.body, 1)
    limits = replace(SMALL, threads=4, short=short, blocks=1)
    if rows_conflict(made.body, 1, made) is None:
        with contextlib.suppress(Unsupported):
            run_both(replace(made, body=(whole,)), maker.values, seed, limits)
    else:
        with pytest.raises(Unsupported):
            schedule(whole, replace(made, body=(whole,)), limits)


SOFTMAX = """region() {
  in x: f64[90, 37];  inout m: f64[90, 1];  inout s: f64[90, 1];  out e: f64[90, 37]
  rows 1 {
    m[i,0] maximum= x[i,j] init -inf for i<90, j<37
    nest {
      e[i,j] = exp(subtract(x[i,j], m[i,0])) for i<90, j<37
      s[i,0] add= e[i,j] init 0.0 for i<90, j<37
    }
    e[i,j] = divide(e[i,j], s[i,0]) for i<90, j<37
  }
}"""


@pytest.mark.parametrize("short", [2, 99])
def test_a_softmax_is_one_phase(short):
    made = region(SOFTMAX)
    limits = replace(SMALL, short=short)
    (kernel,) = run_both(made, limits=limits)
    _, binding = schedule(made.body[0], made, limits)
    assert len(kernel.phases) == 1 and len(kernel.buffers) == 4
    assert [b.access for b in kernel.buffers if b.noalias] == ["r"]  # threads read what others have written
    assert binding.extents == ((90,) if short == 2 else (12,))
    assert ("stack" in kernel_text(kernel)) == (short == 2)


def test_shared_memory_is_limited():
    """A nest with so many reductions is done one by one."""
    names = [f"s{k}" for k in range(9)]
    arrays = "".join(f"  inout {name}: c128[40];" for name in names)
    body = "".join(f"{name}[i] add= multiply(a[i,j], a[i,{name[1]}]) for i<40, j<5000\n" for name in names)
    made = text.parse(f"region() {{\n  in a: c128[40, 5000];{arrays}\n  nest {{\n{body}  }}\n}}")
    with pytest.raises(Unsupported, match="share too much memory"):
        schedule(made.body[0], made)
    for stmt in made.body[0].body:
        schedule(stmt, made)
