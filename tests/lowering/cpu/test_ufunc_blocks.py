"""Kernels that call NumPy's loops: the stages keep the program's meaning, the results NumPy's bits."""

import contextlib
import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_machine import Machine, loop_of
from plan_runs import run_plan

from dcarray.ir.ops import LOOPS_OF, OPS, power
from dcarray.ir.text import parse
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.cpu.kernel_passes import ufunc_blocks
from dcarray.lowering.kernel import nodes as K
from dcarray.lowering.kernel.text import kernel_text
from dcarray.lowering.kernel.verify import check
from dcarray.lowering.runtime import numpy_loops

F8, I8 = np.dtype("d"), np.dtype("q")
I = K.Term(1, None, "i")  # noqa: E741
SIZE = 7


# ---- stages, by the executor -------------------------------------------------------------------------
class Body:
    """A loop in the making.  ``p2`` and ``p3`` are the same memory; every iteration has its own elements,
    but of ``p0``, which is only read."""

    def __init__(self, draw, folds):
        self.draw, self.names, self.made, self.folds = draw, [], [], folds
        for _ in range(draw(st.integers(1, 7))):
            kind = draw(st.integers(0, 5))
            value = self.expr(draw(st.integers(0, 3)))
            if kind < 2 or (folds and kind > 3):
                self.made.append(K.Let(f"v{len(self.names)}", value))
                self.names.append(self.made[-1].name)
            elif kind == 2 or folds:
                self.made.append(K.Update(draw(st.sampled_from(["a0", "a1"])), "add", value))
            else:
                self.made.append(K.Store(draw(st.sampled_from(["p1", "p2", "p3"])), K.affine(0, I), value))

    def expr(self, depth):
        if depth:
            name = self.draw(st.sampled_from(["add", "multiply", "multiply", "subtract"]))
            return K.Op(name, (self.expr(depth - 1), self.expr(self.draw(st.integers(0, depth - 1)))), F8)
        kind = self.draw(st.integers(0, 9))
        if kind < 3 and self.names:
            return K.Local(self.draw(st.sampled_from(self.names)), F8)
        if kind == 3:
            return K.Local("outer", F8)
        if kind == 4:
            return K.Op("cast", (K.Index(K.affine(2, I)),), F8)
        if kind == 5:
            return K.Lit(np.float64(1.5).tobytes(), F8)
        if kind == 6:
            step = self.draw(st.sampled_from([0, 1, 2, -1]))
            return K.Elem("p0", K.affine(SIZE, K.Term(step, None, "i")), F8)
        if kind == 7:
            at = K.Op("cast", (K.Elem("p0", K.affine(SIZE, I), F8),), I8)
            return K.Elem("p0", K.affine(SIZE), F8, ((at, K.affine(1)),))
        names = ["p0"] if self.folds else ["p1", "p2", "p3"]
        return K.Elem(self.draw(st.sampled_from(names)), K.affine(0, I), F8)


@st.composite
def kernels(draw):
    """A kernel of one loop."""
    kind = draw(st.sampled_from(["phase", "vector", "vector", "serial"]))
    body = tuple(Body(draw, kind == "serial").made)
    buffers = (K.Buffer("p0", F8, "r"), K.Buffer("p1", F8, "rw"))
    buffers += (K.Buffer("p2", F8, "rw", False), K.Buffer("p3", F8, "rw", False))
    outer = K.Let("outer", K.Op("multiply", (K.Elem("p0", K.affine(1), F8),) * 2, F8))
    if kind == "phase":
        body = tuple(stmt for stmt in body if not isinstance(stmt, K.Update))
        phase = K.Phase("i", K.affine(0, K.Term(1, "n0")), "vector", body, (outer,))
        return K.Kernel(buffers, ("n0",), (phase,))
    zero = K.Lit(np.float64(0).tobytes(), F8)
    reassoc = kind == "vector"
    upper = (K.affine(0, K.Term(1, "n0")), K.affine(SIZE - 1))
    loop = K.For("i", K.affine(1), upper, 1, kind, body)
    around = (K.Declare("a0", zero, reassoc), K.Declare("a1", zero, reassoc), loop)
    around += (K.Store("p1", K.affine(0), K.Local("a0", F8)), K.Store("p2", K.affine(0), K.Local("a1", F8)))
    phase = K.Phase("one", K.affine(1), "serial", around, (outer,))
    return K.Kernel(buffers, ("n0",), (phase,))


@contextlib.contextmanager
def small():
    """Few elements in a block, and plain arithmetic done by calls."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ufunc_blocks, "_OPEN", frozenset({"multiply"}))
        patch.setattr(ufunc_blocks, "ROW", 24)
        patch.setattr(ufunc_blocks, "PLAIN", 2)
        yield


def results(kernel, binding, unit):
    rng = np.random.default_rng(0)
    given_ = rng.integers(0, 5, 3 * SIZE) * unit
    shared = rng.integers(-3, 4, SIZE) * unit
    own = rng.integers(-3, 4, SIZE) * unit
    Machine(kernel, binding, {"p0": (given_, 0), "p1": (own, 0), "p2": (shared, 0), "p3": (shared, 0)}, {})
    return own.tobytes() + shared.tobytes()


@settings(max_examples=240, derandomize=True, deadline=None)
@given(kernel=kernels())
def test_stages_keep_the_order_of_memory(kernel):
    pointers = tuple(K.Pointer(f"p{k}", 0) for k in range(4))
    extent = SIZE if kernel.phases[0].kind == "vector" else 1
    binding = K.Binding(pointers, (SIZE,), (extent,), (1,))
    check(kernel)
    with small():
        made, bound = ufunc_blocks.call_numpy_loops(kernel, binding, find=loop_of)
    check(made)
    # Sums whose order matters, where it may not change.
    unit = 0.7 if kernel_text(kernel).count("serial") == 2 else 0.5
    assert results(made, bound, unit) == results(kernel, binding, unit)


def test_the_text_of_stages():
    x = K.Elem("p0", K.affine(0, I), F8)
    value = K.Op("add", (K.Op("exp", (K.Op("negative", (x,), F8),), F8), x), F8)
    buffers = (K.Buffer("p0", F8, "r"), K.Buffer("p1", F8, "w"))
    store = K.Store("p1", K.affine(0, I), value)
    phase = K.Phase("i", K.affine(0, K.Term(1, "n0")), "vector", (store,))
    kernel = K.Kernel(buffers, ("n0",), (phase,))
    binding = K.Binding((K.Pointer("x", 0), K.Pointer("y", 0)), (1000,), (1000,), (3,))
    made, bound = ufunc_blocks.call_numpy_loops(kernel, binding, find=lambda *_: (12, 34, True))
    body = """  parallel serial k0 < n3 {
    --
    stack r3: float64[512]
    stack r4: float64[512]
    vector i = 512*k0 .. min(512*k0 + 512, n0) {
      r3[i + -512*k0] = negative.float64(p0[i])
    }
    r4[0...] = exp[n1, n2, clears](r3[0...]) for min(512, n0 + -512*k0)
    vector i = 512*k0 .. min(512*k0 + 512, n0) {
      p1[i] = add.float64(r4[i + -512*k0], p0[i])
    }
  }
}"""
    assert kernel_text(made).split("\n", 1)[1] == body
    assert (bound.ints, bound.extents, bound.work) == ((1000, 12, 34, 2), (2,), (3 * 512,))
    assert ufunc_blocks.call_numpy_loops(kernel, binding, False)[0] is kernel
    assert ufunc_blocks.call_numpy_loops(kernel, binding, find=lambda *_: None)[0] is kernel
    plain = K.Phase("i", phase.extent, "vector", (K.Store("p1", K.affine(0, I), K.Op("exp", (x,), F8)),))
    made, _ = ufunc_blocks.call_numpy_loops(
        K.Kernel(buffers, ("n0",), (plain,)), binding, find=lambda *_: (12, 34, True)
    )
    assert "p1[4096*k0...] = exp[n1, n2, clears](p0[4096*k0...]) for min(4096, n0 + -4096*k0)" in kernel_text(
        made
    )


# ---- the loops ----------------------------------------------------------------------------------------
def test_loops_are_found_and_checked(monkeypatch):
    double = np.dtype("d")
    assert numpy_loops.find("exp", (double,), double) is not None
    assert numpy_loops.find("exp", (double,), np.dtype("f")) is None
    assert numpy_loops.find("exp", (I8,), double) is None  # NumPy converts first, so has no such loop
    assert numpy_loops.find("modf", (double,), double) is None
    assert numpy_loops.find("no_such_thing", (double,), double) is None
    find = numpy_loops.find.__wrapped__
    assert find("exp", (double,), double) == numpy_loops.find("exp", (double,), double)
    with monkeypatch.context() as patch:  # another function than the one that was asked for
        patch.setattr(numpy_loops, "_try", lambda *_: None)
        assert find("exp", (double,), double) is None
    for name in ("_ABI", "_UFunc"):
        with monkeypatch.context() as patch:
            patch.setattr(numpy_loops, name, 7 if name == "_ABI" else _Other)
            numpy_loops._is_layout_known.cache_clear()
            assert find("exp", (double,), double) is None
        numpy_loops._is_layout_known.cache_clear()


class _Other(ctypes.Structure):
    """A layout in which the numbers are elsewhere."""

    _fields_ = (("ahead", ctypes.c_int), *numpy_loops._UFunc._fields_)


SHORT = {"float16": "f16", "float32": "f32", "float64": "f64", "complex64": "c64", "complex128": "c128"}
NAMES = sorted((ufunc_blocks._OPEN | ufunc_blocks._COMPLEX) & set(OPS))


def corners(dtype):
    rng = np.random.default_rng(3)
    small = np.array(
        [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -7.5, 1e-3, 30.0, 88.7, -104.0, 710.0, np.inf, -np.inf, np.nan]
    )
    some = np.concatenate([small, rng.normal(size=4700), 300 * rng.normal(size=99)])
    if dtype.kind == "c":
        return np.stack([some, rng.permutation(some)], -1).view(complex)[:, 0].astype(dtype)
    return some.astype(dtype)


def same(got, want):
    return (got.view(np.uint8) == want.view(np.uint8)).all() or np.array_equal(got, want, equal_nan=True)


def run(source, given_, target="cpu", threads=1, **options):
    reasons = []
    plan = compile_region(parse(source), target, fallback=lambda why, loc: reasons.append(why), **options)
    assert not reasons
    return run_plan(plan, given_, (), threads)


@pytest.mark.parametrize("target", ["cpu", "c"])
@pytest.mark.parametrize("dtype", SHORT)
def test_functions_have_numpys_bits(target, dtype):
    dtype = np.dtype(dtype)
    x = corners(dtype)
    y = np.random.default_rng(4).permutation(x)
    given_, lines, declared, wanted = {"x": x, "y": y}, [], [], {}
    for name in NAMES:
        ufunc = getattr(np, LOOPS_OF.get(name, name))
        function = power if name == "power" and dtype.kind == "f" else OPS[name].reference
        if not any(text[0] == dtype.char for text in ufunc.types):
            continue
        with np.errstate(all="ignore"):
            want = function(*(x, y)[: ufunc.nin])
        if name == "float_power" and want.dtype != dtype:
            continue
        arguments = "x[i], y[i]" if ufunc.nin == 2 else "x[i]"
        for kind, text in (
            ("o", f"{name}({arguments})"),
            ("p", f"{name}({arguments.replace('x[i]', 'negative(x[i])')})"),
        ):
            given_[kind + name] = np.empty_like(want)
            declared.append(f"out {kind}{name}: {SHORT[want.dtype.name]}[{x.size}]")
            lines.append(f"{kind}{name}[i] = {text} for i<{x.size}")
        with np.errstate(all="ignore"):
            wanted[name] = want, function(*(-x, y)[: ufunc.nin])
    kind = SHORT[dtype.name]
    body = "\n".join([f"in x: {kind}[{x.size}]; in y: {kind}[{x.size}]", *declared, "nest {", *lines, "}"])
    run(f"region() {{\n{body}\n}}", given_, target)
    assert len(wanted) > 10
    for name, (want, negative) in wanted.items():
        assert same(given_["o" + name], want), name
        assert same(given_["p" + name], negative), name


@pytest.mark.parametrize("target", ["cpu", "c"])
def test_rows_scalars_and_folds(target):
    rng = np.random.default_rng(0)
    x, r, s = rng.normal(size=(70, 900)), rng.random(70), rng.random(())
    x32 = x.astype(np.float32)
    given_ = {
        "x": x, "x32": x32, "r": r, "s": s, "t": np.zeros((70, 900)), "u": np.zeros(70),
        "z": np.zeros(()),
    }  # fmt: skip
    given_ |= {"a": x.copy(), "w": np.zeros((70, 900)), "m": np.zeros(900), "c": np.zeros(900, complex)}
    source = """region() {
      in x: f64[70,900];  in x32: f32[70,900];  in r: f64[70];  in s: f64[];  inout a: f64[70,900]
      out t: f64[70,900];  out w: f64[70,900]
      out u: f64[70];  out z: f64[];  out m: f64[900];  out c: c128[900]
      t[i,j] = add(multiply(exp(r[i]), sin(x[i,899-j])), tanh(s[])) for i<70, j<900
      w[i,j] = cast:f64(exp(sin(x32[i,j]))) for i<70, j<900
      a[i,j] = power(absolute(a[i,j]), 2.5) for i<70, j<900
      u[i] maximum= log(exp(x[i,j])) init 0.0 for i<70, j<900
      z[] add= exp(x[i,j]) init 0.0 for i<70, j<900
      m[j] maximum= exp(x[i,j]) init 0.0 for i<70, j<900
      c[j] = exp(cast:c128(x[3,j])) for j<900
    }"""
    assert run(source, given_, target, 2) == 0
    assert same(given_["t"], np.exp(r)[:, None] * np.sin(x[:, ::-1]) + np.tanh(s))
    assert same(given_["w"], np.exp(np.sin(x32)).astype(float))
    assert same(given_["a"], np.abs(x) ** 2.5)
    assert same(given_["u"], np.maximum(np.log(np.exp(x)).max(1), 0))
    assert same(given_["m"], np.exp(x).max(0))
    assert same(given_["c"], np.exp(x[3].astype(complex)))
    np.testing.assert_allclose(given_["z"], np.exp(x).sum(), 1e-14)


@pytest.mark.parametrize("target", ["cpu", "c"])
def test_flags_pass_through_loops_that_clear_them(target):
    """NumPy's tanh clears the floating-point flags; a division before it in the same kernel raised one."""
    x, y = np.array([1.0, 0.0, 2.0]), np.zeros(3)
    source = "region() { in x: f64[3]; out y: f64[3]\n y[i] = tanh(divide(1.0, x[i])) for i<3 }"
    with np.errstate(all="ignore"):
        assert run(source, {"x": x, "y": y}, target) == 1
        assert same(y, np.tanh(1 / x))
    assert run(source, {"x": x + 1, "y": y}, target) == 0
    source = "region() { in x: f64[3]; out y: f64[3]\n y[i] = log(x[i]) for i<3 }"
    assert run(source, {"x": x - 1, "y": y}, target) == 9  # of -1 and of 0


def test_fastmath_keeps_to_the_targets_libraries():
    x, y = np.linspace(-3, 3, 999), np.zeros(999)
    source = "region() { in x: f64[999]; out y: f64[999]\n y[i] = exp(x[i]) for i<999 }"
    run(source, {"x": x, "y": y}, fastmath=True)
    np.testing.assert_allclose(y, np.exp(x), 1e-15)
    (step,) = compile_region(parse(source), fastmath=True).kernels
    assert step.kernel.ints == ("n0",)
