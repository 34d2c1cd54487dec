"""Loops of statements as kernels: against the interpreter, element by element, as machine code, and as C."""

import ctypes
import random
import shutil
import subprocess
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_machine import Machine
from loop_regions import Loops, agree, existing, memory, wanted

from dcarray.ir import dims, interp, nodes
from dcarray.ir.analysis.data_dependent import at_index, selected_index
from dcarray.ir.ops import const
from dcarray.ir.statements import all_statements
from dcarray.ir.text import parse
from dcarray.lowering.c_family.emit import emit
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.cpu.schedules import loop_kernels as loops_module
from dcarray.lowering.cpu.schedules.scheduler import schedule
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel import nodes as K
from dcarray.lowering.kernel.text import kernel_text
from dcarray.lowering.kernel.verify import check
from dcarray.lowering.program import small_statements


def overlap(reason, loc):
    """The only reason not to compile: a statement that a fold over one element or none makes valid."""
    assert "overlap" in reason


def run(region, values, threads=0, seed=0, **options):
    """Compile and run; everything has to be a kernel."""
    plan = compile_region(region, **{"fallback": overlap} | options)
    found = memory(region, values, seed)
    given = [found[name] for name in plan.arrays]
    with np.errstate(all="ignore"):
        plan.run(tuple(given), tuple(a.ctypes.data for a in given), tuple(values.values()), threads)
    return plan, found


def kinds(floats, **options):
    """Loops over integers, or over floats with functions that NumPy computes or with sums."""
    dtype = np.dtype("d" if floats else "l")
    return {"dtype": dtype, "native": floats == "native", "sums": floats == "sums", **options}


@settings(max_examples=14, derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from(["", "native", "sums"]))
def test_without_races(seed, symbolic, floats):
    """The slow machine takes vector loops for what they promise to be."""
    loops = Loops(random.Random(seed), symbolic=symbolic, **kinds(floats))
    slowly(loops, seed, 1e-12 if floats == "sums" else 0)  # only numbers too large to be exact differ


def slowly(loops, seed, rtol):
    """Check the kernels on the slow machine; how many loops are shared out."""
    region, values = loops.region(), loops.values
    want, found = wanted(region, values, seed), memory(region, values, seed)
    flat = {name: (array.reshape(-1), 0) for name, array in found.items()}
    shared = 0
    with dims.Guards(values), np.errstate(all="ignore"):
        for stmt in region.body:
            try:
                kernel, binding = schedule(stmt, region)
            except Unsupported as reason:  # a fold over one element or none of itself
                assert "overlap" in str(reason)
                interp.run(replace(region, body=(stmt,), arrays=existing(region)), found, values)
                continue
            check(kernel)
            assert kernel_text(kernel)
            Machine(kernel, binding, flat, values)
            shared += kernel.phases[0].var == "g0"
    agree(found, want, rtol)
    return shared


def test_statements_at_a_place():
    """Of a loop that does something in one turn, that turn is done: as machine code, and for whoever knows
    nothing of such loops."""
    alone = 0
    for seed in range(36):
        loops = Loops(random.Random(seed), np.dtype("l"), symbolic=seed % 3 == 0, places=True)
        slowly(loops, seed, 0)
        loops = Loops(random.Random(seed), np.dtype("l"), symbolic=seed % 3 == 0, places=True)
        region, values = loops.region(), loops.values
        alone += sum(
            isinstance(s, nodes.Loop) and selected_index(s) is not None for s in all_statements(region.body)
        )
        with dims.Guards(values):
            _, found = run(region, values, seed=seed)
        agree(found, wanted(region, values, seed))
    assert alone > 12


def test_a_place_that_moves_is_none():
    """What the statements change, or what differs from turn to turn, tells no place."""
    size, var = 9, dims.symbol("i", None)
    k, y = nodes.Window("k", (), ()), nodes.Window("y", (), (nodes.Index(var),))
    at, one = nodes.Load(k, np.dtype("l")), const(1, "l")
    put = nodes.Compute(y, const(1.0, "d"))
    more = nodes.Compute(k, nodes.Apply("add", (at, one), np.dtype("l")))
    other = nodes.Compute(nodes.Window("y", (), (nodes.Index(0),)), const(1.0, "d"))
    turning = nodes.Load(nodes.Window("z", (), (nodes.Index(var),)), np.dtype("l"))
    assert selected_index(at_index("i", size, at, (put, other))) is at
    assert selected_index(at_index("i", size, at, (put, more))) is None
    assert selected_index(at_index("i", size, turning, (put,))) is None
    loop = at_index("i", size, at, (put,))
    assert selected_index(replace(loop, body=(*loop.body, put))) is None


@settings(max_examples=10, derandomize=True, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from(["d", "l", "f", "h"]))
def test_compiled(seed, symbolic, dtype):
    loops = Loops(random.Random(seed), np.dtype(dtype), symbolic, native=dtype in "df")
    region, values = loops.region(), loops.values
    with dims.Guards(values), mock.patch.object(small_statements, "MOST_WORK", 0):
        plan, found = run(region, values, seed=seed)
    assert plan.stats["interpreted"] or plan.stats["kernels"] == len(region.body)
    agree(found, wanted(region, values, seed))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_as_c(tmp_path):
    for seed in range(12):
        region = Loops(random.Random(seed), np.dtype("d"), places=seed % 2 == 1).region()
        found = memory(region, {}, seed)
        try:
            kernels = [schedule(stmt, region) for stmt in region.body]
        except Unsupported:
            continue
        for number, (kernel, binding) in enumerate(kernels):
            name = tmp_path / f"k{seed}_{number}"
            name.with_suffix(".c").write_text(emit(kernel))
            flags = ["-O1", "-fPIC", "-shared", "-ffp-contract=off", "-o", f"{name}.so"]
            subprocess.run(["cc", *flags, f"{name}.c", "-lm"], check=True)
            numbers = [n for pair in zip(binding.extents, binding.work, strict=True) for n in pair]
            numbers += [found[p.array].ctypes.data + 8 * p.offset for p in binding.pointers]
            numbers += binding.ints
            ctypes.CDLL(f"{name}.so").run((ctypes.c_int64 * len(numbers))(*numbers))
        agree(found, wanted(region, {}, seed))


TRIANGLE = """region(N: int>=2) {
  inout L: f64[N, N];  inout x: f64[N];  temp s: f64[]
  for k in range(N-1, -1, -1) {
    s[] add= multiply(L[k,i], x[i]) init 0.0 for i<k
    x[k] = divide(subtract(x[k], s[]), L[k,k])
    L[i+k,0] = x[k] for i<N-k
  }
}"""


@pytest.fixture
def eager(monkeypatch):
    """Share out what can be, and launch what is large one by one."""
    monkeypatch.setattr(loops_module, "WORTH", 0)
    monkeypatch.setattr(loops_module, "MAX_CHUNKS", 5)
    monkeypatch.setattr(loops_module, "LAUNCH", 1 << 30)
    monkeypatch.setattr(loops_module, "MAX_STACK", 64)


PARALLEL = """region() {{
  inout A: f64[9, 20];  in B: f64[200, 20];  inout c: f64[9, 20];  inout y: f64[9]
   temp t: f64[{0}];  temp s: f64[]
  for k in range({1}) {{
    t[i] = multiply(A[k,i], 2.0) for i<20
    t[i] = 0.5 for i<{0}
    s[] add= multiply(t[i], A[k,i]) init 0.0 for i<20
    c[k,i] add= multiply(B[j,k], B[j,i+k]) init 0.0 for j<200, i<20-k
    for j in range(1, k, 1) {{
      A[k,j] = add(A[k,j-1], s[])
    }}
    y[k] = add(s[], t[k])
  }}
}}"""


@pytest.mark.parametrize("bounds", ["0, 9, 1", "8, -1, -1", "1, 9, 3", "3, 3, 1", "8, 0, -3"])
def test_turns_are_shared_out(eager, bounds):
    region = parse(PARALLEL.format(20, bounds))
    kernel, binding = schedule(region.body[0], region)
    (phase,) = kernel.phases
    shared = bounds != "3, 3, 1"
    assert phase.var == ("g0" if shared else "one")
    buffers = sum(isinstance(pointer, K.Scratch) for pointer in binding.pointers)
    assert buffers == shared  # what is small a thread has on its stack
    check(kernel)
    width = max([1, *(p.size for p in binding.pointers if isinstance(p, K.Scratch))])
    assert width >= (18 * binding.extents[0] if shared else 1)
    want = wanted(region, {})
    found = memory(region, {})
    Machine(kernel, binding, {name: (a.reshape(-1), 0) for name, a in found.items()}, {})
    agree(found, want)
    for threads in (1, 2, 3):
        plan, found = run(region, {}, threads)
        assert plan.stats["kernels"] == 1
        agree(found, want)


@pytest.mark.parametrize(("row", "own"), [("k", False), ("0", True)])
def test_a_temporary_of_which_each_turn_has_a_part_is_there_once(eager, row, own):
    region = parse(f"""region() {{
      inout A: f64[9, 20];  temp t: f64[9, 20]
      for k in range(0, 9, 1) {{
        t[{row},i] = multiply(A[k,i], 2.0) for i<20
        for j in range(1, 20, 1) {{
          A[k,j] = add(A[k,j-1], t[{row},j])
        }}
      }}
    }}""")
    kernel, binding = schedule(region.body[0], region)
    assert kernel.phases[0].var == "g0"
    assert any(isinstance(pointer, K.Scratch) for pointer in binding.pointers) is own
    found = memory(region, {})
    Machine(kernel, binding, {name: (a.reshape(-1), 0) for name, a in found.items()}, {})
    agree(found, wanted(region, {}))
    for threads in (1, 3):
        _, found = run(region, {}, threads)
        agree(found, wanted(region, {}))


def test_shared_turns_are_free_of_races(eager):
    """The slow machine begins with the last ones."""
    shared = 0
    for seed in range(90):
        floats = ["", "native", "sums"][seed % 3]
        loops = Loops(random.Random(seed), symbolic=seed % 2 > 0, **kinds(floats, apart=True))
        shared += slowly(loops, seed, 1e-12 if floats == "sums" else 0)
    assert shared > 30


@pytest.mark.parametrize("floats", ["", "native", "sums"])
def test_shared_turns_compiled(eager, floats):
    for seed in range(8):
        region = Loops(random.Random(seed), **kinds(floats, apart=True)).region()
        _, found = run(region, {}, 3, seed)
        agree(found, wanted(region, {}, seed), 1e-12 if floats == "sums" else 0)


def test_no_turns_to_share_out(eager):
    region = parse("""region(N: int>=0) {
      inout x: f64[N];  temp t: f64[2]
      for k in range(0, N, 1) {
        t[i] = x[k] for i<2
        for j in range(0, 3, 1) {
          t[0] = add(t[0], t[1])
        }
        x[k] = t[0]
      }
    }""")
    region = replace(region, symbols=(replace(region.symbols[0], hint=20),))
    assert schedule(region.body[0], region)[0].phases[0].var == "g0"
    for n in (0, 1, 20):
        plan, found = run(region, {"N": n}, 2)
        assert plan.stats["kernels"] == 1
        agree(found, wanted(region, {"N": n}))


def test_large_statements_are_launched_one_by_one():
    text = """region() {{
      inout A: f64[{0}, {0}];  temp t: f64[{0}, {0}]
      for k in range(0, 3, 1) {{
        t[i,j] = add(A[i,k], A[k,j]) for i<{0}, j<{0}
        A[i,j] = minimum(A[i,j], t[i,j]) for i<{0}, j<{0}
      }}
    }}"""
    for size, kernels in ((50, 1), (600, 2)):
        region = parse(text.format(size))
        plan = compile_region(region, threads=2)
        assert plan.stats["kernels"] == kernels
        assert compile_region(region, threads=1).stats["kernels"] == 1
        found = memory(region, {})
        plan.run((found["A"],), (found["A"].ctypes.data,))
        agree(found, wanted(region, {}))


@pytest.mark.parametrize(("size", "parts"), [(129, 0), (130, 1)])
def test_short_rows_of_a_triangle_are_one_part(size, parts):
    """As long as it is known that none has more terms than a part."""
    region = parse(f"""region() {{
      in A: f64[{size}, {size}];  in b: f64[{size}];  inout x: f64[{size}]
      for i in range(0, {size}, 1) {{
        x[i] add= multiply(A[i,k], b[k]) init 1.0 for k<i
      }}
    }}""")
    assert kernel_text(schedule(region.body[0], region)[0]).count("serial b5") == parts
    plan, found = run(region, {}, 1)
    assert plan.stats["kernels"] == 1
    agree(found, wanted(region, {}))


def test_text():
    """The offsets and extents follow the loop's variable, which counts up."""
    kernel, binding = schedule(parse(TRIANGLE).body[0], parse(TRIANGLE))
    lines = ("serial u0 = n0 .. 1 {", "(-1*u0)", "p1[-1*u0]", "vector i0 = 0 .. n1 + u0 {")
    assert all(line in kernel_text(kernel) for line in lines)
    assert list(map(str, binding.ints)) == ["-N+1", "N"]


def test_sums_are_as_good_as_pairwise_ones():
    """Long sums in a loop, whose order of magnitude cancels."""
    n = 6000
    region = parse(f"""region() {{
      in x: f64[{n}];  inout s: f64[{n + 1}]
      for k in range(0, {n + 1}, 1) {{
        s[k] add= x[i] init 0.0 for i<k
      }}
    }}""")
    rng = np.random.default_rng(1)
    x = rng.random(n) * 10.0 ** rng.integers(-8, 8, n)
    plan = compile_region(region)
    s = np.empty(n + 1)
    plan.run((x, s), (x.ctypes.data, s.ctypes.data))
    exact = np.array([float(sum(map(int, x[:k] * 2.0**60), 0)) / 2.0**60 for k in range(0, n + 1, 97)])
    pairwise = np.array([x[:k].sum() for k in range(0, n + 1, 97)])
    assert np.abs(s[::97] - exact).max() <= np.abs(pairwise - exact).max()


def test_flags():
    """Flags of all turns are raised at the end, but none by what NumPy does not compute."""
    region = parse("""region() {
      inout x: f64[4];  inout y: f64[4]
      for k in range(0, 4, 1) {
        y[i] = divide(1.0, x[i]) for i<k
        if less(x[k], 1.0) {
          y[k] = sqrt(x[k])
        }
      }
    }""")
    plan = compile_region(region)
    assert plan.stats == {"kernels": 1, "calls": 0, "interpreted": 0}
    for x, flags in (([1, 2, 4, 0], 0), ([0, 2, 3, 4], 1), ([2, 4, 8, -1], 8), ([1, 2, np.nan, 4], 0)):
        x, y = np.array(x, float), np.zeros(4)
        assert plan.run((x, y), (x.ctypes.data, y.ctypes.data)) == flags


def test_what_is_not_affine_is_left_to_the_driver():
    region = parse("""region() {
      inout x: f64[100];  in y: f64[3]
      for k in range(0, 10, 1) {
        for j in range(0, 3, 1) {
          x[k*k+j] = add(y[j], 1.0)
        }
      }
    }""")
    with pytest.raises(Unsupported, match="not linear"):
        schedule(region.body[0], region)
    plan, found = run(region, {}, seed=2, fallback=None)
    assert plan.stats == {"kernels": 1, "calls": 0, "interpreted": 0}  # the inner loop
    agree(found, wanted(region, {}, 2))


def test_extents_that_are_the_least_of_some():
    """What strips of rows have: a last one that is shorter."""
    region = parse("""region() {
      inout x: f64[10, 7];  inout y: f64[10]
      for k in range(0, 10, 4) {
        for j in range(1, min(7, k+3), 1) {
          x[i+k,j] = add(x[i+k,j-1], x[i+k,j]) for i<min(4, 10-k)
        }
        for j in range(6, max(2, k-1), -1) {
          y[i+k] add= x[i+k,j] for i<min(4, 10-k)
        }
      }
    }""")
    plan, found = run(region, {}, seed=3)
    assert plan.stats["kernels"] == 1
    agree(found, wanted(region, {}, 3))
