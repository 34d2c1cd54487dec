"""Plans against the interpreter, and what they promise about memory, fallbacks and threads."""

import os
import warnings
from dataclasses import replace
from unittest import mock

import ir_regions
import numpy as np
import pytest
from callers import together
from hypothesis import given, settings
from hypothesis import strategies as st

from dcarray.ir import dims, interp, text, verify
from dcarray.lowering import compilation, targets
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.cpu.llvm.object_code import engine
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.flags import DIVIDE, INVALID
from dcarray.lowering.program import code_cache, small_statements, storage
from dcarray.lowering.runtime import array_memory


def same(got, want):
    """Equal bits, with all NaNs alike."""
    if got.dtype.kind == "c":
        return same(got.real, want.real) and same(got.imag, want.imag)
    if got.dtype.kind == "f":
        equal = (got == want) & (np.signbit(got) == np.signbit(want))
        return bool((equal | (np.isnan(got) & np.isnan(want))).all())
    return bool((got == want).all())


def prepared(compiled, given, values):
    """The arrays of a run in order: those given, and fresh ones for the others."""
    found = dict(given)
    for array in compiled.region.arrays:
        if array.role == "out":
            shape = [dims.evaluate(extent, values) for extent in array.shape]
            if array.base is None:
                found[array.name] = np.empty(shape, array.dtype)
            else:
                found[array.name] = found[array.base].reshape(-1).view(array.dtype).reshape(shape)
    return [found[name] for name in compiled.arrays]


def execute(compiled, given, values=None, threads=2):
    values = values or {}
    ordered = prepared(compiled, given, values)
    symbols = [values[symbol.name] for symbol in compiled.region.symbols]
    flags = compiled.run(ordered, [array_memory.address_of(x) for x in ordered], symbols, threads)
    return dict(zip(compiled.arrays, ordered, strict=True)), flags


def declared(region, memory):
    """The region with the strides that the memory has."""
    arrays = tuple(
        replace(a, strides=tuple(s // a.dtype.itemsize for s in memory[a.name].strides))
        if a.name in memory
        else a
        for a in region.arrays
    )
    return replace(region, arrays=arrays)


def differential(case, target, strided=True):
    region, given = case.region, case.memory()
    if strided:
        region = declared(region, given)
    else:
        given = {name: np.array(array, order="C") for name, array in given.items()}
    mine = case.memory() if strided else {name: array.copy() for name, array in given.items()}
    with np.errstate(all="ignore"):
        want = interp.run(region, given, case.values)
    compiled = compile_region(region, target)
    got, _ = execute(compiled, mine, case.values)
    for name, array in want.items():
        assert same(got[name], array), f"{name}: {got[name]} is not {array}"
    return compiled


@settings(max_examples=24, deadline=None, derandomize=True)
@given(ir_regions.cases(), st.booleans())
def test_random_regions(case, apart):
    with mock.patch.object(small_statements, "MOST_WORK", 0 if apart else small_statements.MOST_WORK):
        verify.verify(differential(case, "cpu").region)


REGISTERS = (128, False), (256, True), (512, False), (512, True)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(ir_regions.cases(statements=4), st.sampled_from(REGISTERS))
def test_random_regions_for_other_processors(case, registers):
    """LLVM makes what this one has not got of what it has."""
    bits, masks = registers
    other = replace(engine.machine(), vector_bits=bits, masks=masks)
    with mock.patch.object(engine, "machine", lambda: other):
        there = differential(case, "cpu")
    assert there.stats == differential(case, "cpu").stats


@settings(max_examples=10, deadline=None, derandomize=True)
@given(ir_regions.cases(symbolic=True, aliases=False))
def test_random_regions_with_symbols(case):
    differential(case, "cpu", strided=False)


@settings(max_examples=5, deadline=None, derandomize=True)
@given(ir_regions.cases(statements=4))
def test_random_regions_in_c(case):
    differential(case, "c")


# ---- sharing memory ---------------------------------------------------------------------------------
def compiled(source, **options):
    return compile_region(text.parse(source), **options)


def test_a_matmul_and_what_is_added_share_the_output():
    plan_ = compiled("""region() {
      in a: f64[5, 6];  in b: f64[6, 7];  in c: f64[5, 7];  temp t: f64[5, 7];  out o: f64[5, 7]
      call blas.matmul(a, b) -> t
      o[i,j] = add(t[i,j], c[i,j]) for i<5, j<7
    }""")
    assert [array.name for array in plan_.region.arrays] == ["a", "b", "c", "o"]
    assert plan_.stats == {"kernels": 1, "calls": 1, "interpreted": 0}
    assert "_allocate(" not in plan_.driver
    a, b, c = (np.random.default_rng(0).random(shape) for shape in ((5, 6), (6, 7), (5, 7)))
    got, flags = execute(plan_, {"a": a, "b": b, "c": c})
    assert (got["o"] == a @ b + c).all() and flags == 0


CHAIN = """region(N: int>=1) {
  in A: f64[N];  temp r: f64[N];  temp s: f64[N];  temp t: f64[N];  temp u: f64[N];  out o: f64[N]
  r[i] = add(A[i], 1.0) for i<N
  s[i] = multiply(r[i], 2.0) for i<N
  t[i] = add(s[N-i-1], 1.0) for i<N
  u[i] = multiply(t[i], t[N-i-1]) for i<N
  o[i] = add(u[i], A[i]) for i<N
}"""


def test_temporaries_share_memory_in_place_and_one_after_the_other():
    plan_ = compiled(CHAIN)
    # r and s are one, u and o are one; t cannot be s, which it reads elsewhere, nor u.
    assert [array.name for array in plan_.region.arrays] == ["A", "s", "t", "o"]
    verify.verify(plan_.region)
    a = np.arange(5.0)
    got, _ = execute(plan_, {"A": a}, {"N": 5})
    t = (2 * (a + 1))[::-1] + 1
    assert (got["o"] == t * t[::-1] + a).all()


@pytest.mark.parametrize("last", [
    "o[i] = add(t[9-i], c[i]) for i<10",  # reads elsewhere
    "o[i] = add(add(t[i], t[9-i]), c[i]) for i<10",
    "o[i] = add(t[i], gather(t, cast:i64(c[i]))) for i<10",
    "o[i] = add(cast:f64(w[i]), t[i]) for i<10\n c[i] = t[i] for i<10",  # t is read again
])  # fmt: skip
def test_what_may_not_share_does_not(last):
    plan_ = compiled(f"""region() {{
      in w: f32[10];  inout c: f64[10];  temp t: f64[10];  out o: f64[10]
      t[i] = cast:f64(w[i]) for i<10
      {last}
    }}""")
    assert "t" in [array.name for array in plan_.region.arrays]


def test_layout_reuses_what_is_free():
    needs = [
        storage.Need("a", 800, 0, 1),
        storage.Need("b", 400, 1, 2),
        storage.Need("c", 900, 2, 3),
        storage.Need("d", 100, 3, 4),
    ]
    layout = storage.layout(needs)
    assert layout.sizes == (900, 400)
    assert layout.piece == {"a": 0, "b": 1, "c": 0, "d": 1}
    n = dims.symbol("N", 1)
    layout = storage.layout(
        [storage.Need("a", 8 * n, 0, 0), storage.Need("b", 8 * n, 1, 1), storage.Need("c", n, 2, 2)]
    )
    assert layout.piece == {"a": 0, "b": 0, "c": 1}


def test_temporaries_do_not_overlap():
    pieces = [f"t{k}[i] = add(A[i], {k}.0) for i<N" for k in range(6)]
    reads = "t0[N-i-1]"
    for k in range(1, 6):
        reads = f"add({reads}, t{k}[N-i-1])"
    temps = " ".join(f"temp t{k}: {'f64' if k % 2 else 'f32'}[N];" for k in range(6))
    body = "\n".join(
        p if k % 2 else p.replace("= add", "= cast:f32(add").replace(" for", ") for")
        for k, p in enumerate(pieces)
    )
    for k in range(0, 6, 2):
        reads = reads.replace(f"t{k}[N-i-1]", f"cast:f64(t{k}[N-i-1])")
    plan_ = compiled(
        f"region(N: int>=1) {{\n in A: f64[N]; {temps} out o: f64[N]\n {body}\n o[i] = {reads} for i<N\n}}"
    )
    for n in (1, 7, 5000):
        got, _ = execute(plan_, {"A": np.zeros(n)}, {"N": n})
        assert (got["o"] == 15.0).all()


def test_a_failed_allocation_leaves_everything_as_it_was(monkeypatch):
    plan_ = compiled("""region() {
      inout B: f64[4];  temp t: f64[4];  out o: f64[4]
      B[i] = add(B[i], 1.0) for i<4
      t[i] = multiply(B[i], 2.0) for i<4
      o[i] = add(t[3-i], B[i]) for i<4
    }""")

    def fail(shape, dtype):
        raise MemoryError("Unable to allocate")

    b = np.zeros(4)
    arrays = [b, np.zeros(4)]
    monkeypatch.setitem(plan_.run.__globals__, "_allocate", fail)
    with pytest.raises(MemoryError):
        plan_.run(arrays, [array_memory.address_of(x) for x in arrays])
    assert (b == 0).all()


# ---- control flow -----------------------------------------------------------------------------------
def test_loops_and_branches_run_on_the_host():
    source = """region(n: int>=2) {
      in a: f64[n];  inout y: f64[n];  inout k: i64[]
      for j in range(1, n, 1) {
        y[i] = add(y[i], multiply(a[j], a[i])) for i<j
      }
      while less(k[], 5) {
        k[] = add(k[], 2)
      }
      if greater(k[], 5) {
        y[i] = negative(y[i]) for i<n
      } else {
        y[i] = 0.0 for i<n
      }
    }"""
    plan_ = compiled(source)
    assert plan_.stats["interpreted"] == 0
    for n, start in ((2, 0), (9, 1), (9, 100)):
        a = np.random.default_rng(n).random(n)
        y, k = np.zeros(n), np.array(start)
        want = interp.run(text.parse(source), {"a": a, "y": y.copy(), "k": k.copy()}, {"n": n})
        execute(plan_, {"a": a, "y": y, "k": k}, {"n": n})
        assert (y == want["y"]).all() and k == want["k"]


# ---- what cannot be compiled --------------------------------------------------------------------------
SPACING = """region() {
  in a: f32[6];  temp t: f32[6];  out o: f32[6];  out p: f64[3]
  t[i] = negative(a[i]) for i<6
  o[i] = %s(t[5-i]) for i<6
  p[i] = cast:f64(o[2*i]) for i<3
}"""


def test_what_a_target_cannot_do_is_interpreted_and_reported():
    reasons = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan_ = compiled(SPACING % "spacing", target="c", fallback=lambda reason, loc: reasons.append(reason))
    assert plan_.stats == {"kernels": 2, "calls": 0, "interpreted": 1}
    assert reasons == ["the C target has no spacing for float32"]
    a = np.linspace(-2, 3, 6).astype(np.float32)
    got, _ = execute(plan_, {"a": a})
    want = np.spacing(-a[::-1])
    assert (got["o"] == want).all() and (got["p"] == want[::2]).all()


class Broken:
    key = "broken"

    def __init__(self, where):
        self.where = where

    def fingerprint(self):
        return ""

    def emit(self, kernel):
        if self.where == "emit":
            raise KeyError("surprise")
        return ""

    def compile(self, source):
        raise Unsupported("no compiler here")


def broken(where):
    return replace(targets.get("cpu"), name="broken", compiler=Broken(where))


@pytest.mark.parametrize("where, reason", [("emit", "KeyError: 'surprise'"), ("compile", "no compiler here")])
def test_a_broken_compiler_warns_once_and_the_program_runs(monkeypatch, where, reason):
    monkeypatch.setitem(targets._loaded, "broken", broken(where))
    monkeypatch.setattr(compilation, "_warned", set())
    monkeypatch.setattr(code_cache, "_LOADED", {})
    reasons = []
    with pytest.warns(RuntimeWarning, match=f"some of the program is not compiled: {reason}") as caught:
        plan_ = compiled(CHAIN, target="broken", fallback=lambda reason, loc: reasons.append(reason))
    assert len(caught) == 1
    assert reasons == [reason] * 5
    a = np.arange(5.0)
    got, _ = execute(plan_, {"A": a}, {"N": 5})
    t = (2 * (a + 1))[::-1] + 1
    assert (got["o"] == t * t[::-1] + a).all()


def test_unknown_targets_are_named():
    with pytest.raises(ValueError, match="unknown target 'gpu'; the targets are 'cpu', 'c'"):
        compiled(CHAIN, target="gpu")


# ---- running ------------------------------------------------------------------------------------------
def test_flags_of_all_kinds_of_steps_are_reported(monkeypatch):
    source = """region() {
      in a: f64[3];  in b: f64[3];  out o: f64[3]
      o[i] = divide(a[i], b[i]) for i<3
    }"""
    one, zero = np.ones(3), np.zeros(3)
    plan_ = compiled(source)
    assert execute(plan_, {"a": one, "b": one})[1] == 0
    assert execute(plan_, {"a": one, "b": zero})[1] == DIVIDE
    assert execute(plan_, {"a": zero, "b": zero})[1] == INVALID
    monkeypatch.setitem(targets._loaded, "broken", broken("compile"))
    monkeypatch.setattr(compilation, "_warned", {"no compiler here"})
    plan_ = compiled(source, target="broken")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert execute(plan_, {"a": one, "b": zero})[1] == DIVIDE
        assert execute(plan_, {"a": zero, "b": zero})[1] == INVALID


def test_one_compiled_kernel_serves_all_sizes():
    before = code_cache.of(None).compiled
    for n in (3, 5, 300):
        plan_ = compiled(
            f"region() {{ in x: f64[{n}]; out y: f64[{n}]\n y[i] = fmod(x[i], 0.375) for i<{n}\n}}"
        )
        x = np.arange(float(n))
        assert (execute(plan_, {"x": x})[0]["y"] == np.fmod(x, 0.375)).all()
    assert code_cache.of(None).compiled <= before + 1


def test_a_warm_folder_compiles_nothing(tmp_path):
    folder = str(tmp_path / "code")
    loaded = dict(code_cache._LOADED)
    code_cache.forget()
    try:
        compiled(CHAIN, cache_dir=folder)
        assert code_cache.of(folder).compiled >= 3
        code_cache.forget()
        code_cache._BY_FOLDER.pop(folder)
        plan_ = compiled(CHAIN, cache_dir=folder)
        assert code_cache.of(folder).stats()["compiled"] == 0
    finally:
        code_cache._LOADED.update(loaded)
    got, _ = execute(plan_, {"A": np.zeros(3)}, {"N": 3})
    assert (got["o"] == 9.0).all()


def test_plans_are_deterministic():
    assert compiled(CHAIN).driver == compiled(CHAIN).driver


def test_one_plan_runs_in_many_threads():
    plan_ = compiled(CHAIN)
    wrong = []

    def work(number):
        for _ in range(20):
            n = 100 + number
            a = np.full(n, float(number))
            got, _ = execute(plan_, {"A": a}, {"N": n})
            if not (got["o"] == (2 * (number + 1) + 1) ** 2 + number).all():
                wrong.append(number)

    together(6, work)
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_plan_runs_after_a_fork():
    plan_ = compiled(CHAIN)
    big = np.zeros(100_000)
    execute(plan_, {"A": big}, {"N": len(big)})
    child = os.fork()
    if child == 0:
        try:
            got, _ = execute(plan_, {"A": big}, {"N": len(big)})
            fresh = compiled(CHAIN.replace("2.0", "3.0"))
            more, _ = execute(fresh, {"A": big}, {"N": len(big)})
            os._exit(0 if (got["o"] == 9.0).all() and (more["o"] == 16.0).all() else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_no_work_is_no_launch():
    plan_ = compiled(
        "region() { in x: f64[0, 5]; out y: f64[0, 5]\n y[i,j] = negative(x[i,j]) for i<0, j<5\n}"
    )
    assert "_k0" not in plan_.driver
    got, flags = execute(plan_, {"x": np.zeros((0, 5))})
    assert got["y"].shape == (0, 5) and flags == 0


TURNS = """region(n: int>=1) {
  in c: f64[40];  inout a: f64[200, 300];  inout b: f64[200, 300]
  for t in range(0, n, 1) {
    b[i+1, j] = add(multiply(a[i, j], c[t]), a[i+2, j]) for i<198, j<300
    a[i+1, j] = add(subtract(b[i, j], c[39-t]), b[i+2, j]) for i<198, j<300
  }
}"""


def test_turns_of_launches_are_one_call():
    plan_ = compiled(TURNS)
    assert plan_.driver.count("_repeat(") == 1 and "for t in" not in plan_.driver
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 8, 9, 40):
        a, b, c = rng.random((200, 300)), rng.random((200, 300)), rng.random(40) / 2
        want = interp.run(text.parse(TURNS), {"a": a.copy(), "b": b.copy(), "c": c}, {"n": n})
        for threads in (1, 2, 3, 8):
            one, two = a.copy(), b.copy()
            _, flags = execute(plan_, {"a": one, "b": two, "c": c}, {"n": n}, threads)
            assert flags == 0
            assert (one == want["a"]).all() and (two == want["b"]).all()


def test_flags_of_any_turn_are_reported():
    plan_ = compiled(TURNS)
    a, b, c = np.ones((200, 300)), np.ones((200, 300)), np.ones(40)
    c[17] = np.inf
    a[5, 5] = 0.0
    b[:] = 1.0
    for n, raised in ((12, False), (30, True)):
        _, flags = execute(plan_, {"a": a.copy(), "b": b.copy(), "c": c}, {"n": n})
        assert bool(flags & INVALID) == raised


@pytest.mark.parametrize("body", [
    "b[i, j] = multiply(a[i, j], c[t*t]) for i<200, j<300",  # not linear
    "b[i, j] = multiply(a[i, j], c[t]) for i<200, j<200\n call blas.matmul(a, b) -> w",
])  # fmt: skip
def test_other_turns_stay_in_python(body):
    source = f"""region() {{
      in c: f64[40];  in a: f64[200, 200];  inout b: f64[200, 200]; inout w: f64[200, 200]
      for t in range(0, 6, 1) {{
        {body.replace("300", "200")}
      }}
    }}"""
    plan_ = compiled(source)
    assert "_repeat(" not in plan_.driver and "for t in range(0, 6, 1):" in plan_.driver
    rng = np.random.default_rng(0)
    a, b, w, c = *rng.random((3, 200, 200)), rng.random(40)
    want = interp.run(text.parse(source), {"a": a, "b": b.copy(), "c": c, "w": w.copy()}, {})
    execute(plan_, {"a": a, "b": b, "c": c, "w": w})
    np.testing.assert_allclose(b, want["b"])
    np.testing.assert_allclose(w, want["w"])


def test_products_keep_no_copies_of_what_is_written_anew():
    """A product ends a run for want of memory only; another run finds all that it needs."""
    head = "region() {\ninout a: f64[9, 9];  in b: f64[9, 9];  temp t: f64[9, 9]\n"
    tail = "\ncall blas.matmul(b, b) -> t\na[i,1] = t[i,3] for i<9\n}"
    anew = text.parse(head + "a[0,i] = b[i,0] for i<9" + tail)
    assert compile_region(anew).overwritten == ()
    read = text.parse(head + "a[0,i] = add(a[0,i], b[i,0]) for i<9" + tail)
    assert compile_region(read).overwritten == ("a",)
    other = text.parse(head + "a[0,i] = b[i,0] for i<9" + tail.replace("blas.matmul(b, b)", "linalg.inv(b)"))
    assert compile_region(other).overwritten == ("a",)
