"""The plain C target: every operation against NumPy, and the shape of the text."""

import itertools
import shutil

import numpy as np
import op_cases
import pytest
from plan_runs import run_plan

from dcarray.ir import interp
from dcarray.ir.dims import evaluate
from dcarray.ir.ops import C_LIBRARY, OPS
from dcarray.ir.text import parse
from dcarray.lowering import targets
from dcarray.lowering.c_family import ops as cops
from dcarray.lowering.c_family.emit import emit
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.kernel.flags import DIVIDE, INVALID, OVERFLOW, UNDERFLOW
from dcarray.lowering.kernel.nodes import (
    Assign,
    Buffer,
    Declare,
    Elem,
    For,
    If,
    Index,
    Kernel,
    Let,
    Lit,
    Local,
    Op,
    Phase,
    Store,
    Term,
    Update,
    affine,
)

C = targets.get("c")
INTS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]
FLOATS = [np.dtype(f"f{size}") for size in (2, 4, 8)]
COMPLEX = [np.dtype("c8"), np.dtype("c16")]
ALL = [np.dtype(bool), *INTS, *FLOATS, *COMPLEX]
I = affine(0, Term(1, None, "i"))  # noqa: E741
# What both sides leave to libraries that agree within a few units in the last place.
LIBRARY = """exp exp2 expm1 log log2 log10 log1p cbrt sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh
arccosh arctanh hypot logaddexp logaddexp2 power array_power float_power arctan2"""
needs_cc = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")


def elementwise(outputs, inputs):
    """A kernel of ``out[i] = expr`` for several expressions over the elements of ``inputs``."""
    buffers = [Buffer(f"p{n}", dtype, "r") for n, dtype in enumerate(inputs)]
    body = []
    for expr in outputs:
        buffers.append(Buffer(f"p{len(buffers)}", expr.dtype, "w"))
        body.append(Store(buffers[-1].name, I, expr))
    return Kernel(tuple(buffers), ("n0",), (Phase("i", affine(0, Term(1, "n0")), "vector", tuple(body)),))


def launch(kernel, arrays, ints, extents):
    """Compile and run; gives the floating-point flags."""
    kernel_launch = C.load(kernel, C.compile(C.emit(kernel)))
    work = [number for extent in extents for number in (extent, 1)]
    pointers = [array.__array_interface__["data"][0] for array in arrays]
    return kernel_launch(kernel_launch.pack(*work, *pointers, *ints), 1)


def same(got, want):
    """Equal bits, with all NaNs alike."""
    if got.dtype.kind == "c":
        return same(got.real, want.real) & same(got.imag, want.imag)
    if got.dtype.kind != "f":
        return got == want
    return ((got == want) & (np.signbit(got) == np.signbit(want))) | (np.isnan(got) & np.isnan(want))


def close(got, want):
    """Within 4 units in the last place, of which the library functions of both sides take their part."""
    if got.dtype.kind == "c":
        return close(got.real, want.real) & close(got.imag, want.imag)
    with np.errstate(all="ignore"):
        gap = np.abs(got - want) <= 8 * np.spacing(np.maximum(np.abs(got), np.abs(want)))
    return gap | same(got, want)


def many(cases):
    """One kernel with a phase for each ``(expression of p0, p1, ..., argument dtypes)``."""
    buffers, phases = [], []
    for number, (make, source) in enumerate(cases):
        names = [f"p{len(buffers) + n}" for n in range(len(source) + 1)]
        expr = make([Elem(name, I, dtype) for name, dtype in zip(names, source, strict=False)])
        buffers += [Buffer(name, dtype, "r") for name, dtype in zip(names, source, strict=False)]
        buffers.append(Buffer(names[-1], expr.dtype, "w"))
        extent = affine(0, Term(1, f"n{number}"))
        phases.append(Phase("i", extent, "vector", (Store(names[-1], I, expr),)))
    return Kernel(tuple(buffers), tuple(f"n{n}" for n in range(len(cases))), tuple(phases))


def check(cases, results, references, exact):
    inputs = [op_cases.operands(source) for _, source in cases]
    outputs = [np.zeros(len(x[0]), result) for x, result in zip(inputs, results, strict=True)]
    arrays = [array for x, out in zip(inputs, outputs, strict=True) for array in (*x, out)]
    launch(many(cases), arrays, [len(out) for out in outputs], [len(out) for out in outputs])
    for (_, source), x, got, reference, bits in zip(cases, inputs, outputs, references, exact, strict=True):
        with np.errstate(all="ignore"):
            want = reference(*x)
        assert got.dtype == want.dtype
        bad = np.flatnonzero(~(same(got, want) if bits else close(got, want)))[:5]
        assert not len(bad), f"{source}: {[([a[i] for a in x], got[i], want[i]) for i in bad]}"


@needs_cc
@pytest.mark.parametrize(
    "name", sorted(set(OPS) - {"where", "cast", "real", "imag", "complex", "checked"} - set(C_LIBRARY))
)
def test_each_operation_means_what_numpy_means(name):
    cases, results = [], []
    for source, result in op_cases.loops(name):
        case = (lambda args, result=result: Op(name, tuple(args), result), source)
        try:
            C.emit(many([case]))
        except Unsupported:
            continue
        cases.append(case)
        results.append(result)
    # What C leaves to the interpreter for every dtype.
    assert cases or name in {"spacing", "logaddexp2"}
    exact = [
        name not in LIBRARY.split() and (source[0].kind != "c" or name not in ("absolute", "sqrt"))
        for _, source in cases
    ]
    if cases:
        check(cases, results, [OPS[name].reference] * len(cases), exact)


@needs_cc
def test_casts():
    def is_defined(source, dtype):  # out of range nothing is promised
        return not (source.kind in "fc" and dtype.kind in "iu") and (source.kind != "c" or dtype.kind == "c")

    found = [(a, b) for a, b in itertools.permutations(ALL, 2) if is_defined(a, b)]
    cases = [(lambda args, b=b: Op("cast", tuple(args), b), (a,)) for a, b in found]
    references = [lambda x, b=b: x.astype(b) for _, b in found]
    check(cases, [b for _, b in found], references, [True] * len(found))


@needs_cc
def test_casts_of_floats_to_integers():
    for source in FLOATS:
        values = np.array([0.0, -0.0, 1.5, 2.9, 100.7, 127.0], source)
        outputs = [np.zeros(len(values), dtype) for dtype in INTS]
        exprs = [Op("cast", (Elem("p0", I, source),), dtype) for dtype in INTS]
        launch(elementwise(exprs, [source]), [values, *outputs], [len(values)], [len(values)])
        for got in outputs:
            assert (got == values.astype(got.dtype)).all()


@needs_cc
def test_values_that_are_checked():
    kinds = [np.dtype(char) for char in "bifd?"]
    exprs = [Op("checked", (Elem("p0", I, np.dtype(bool)), Elem("p1", I, d)), d) for d in kinds]
    for name, exprs_of in zip(kinds, exprs, strict=True):
        values, fits, out = np.arange(5).astype(name), np.ones(5, bool), np.zeros(5, name)
        case = elementwise([exprs_of], [np.dtype(bool), name])
        assert launch(case, [fits, values, out], [5], [5]) == 0
        assert (out == values).all()
        fits[3] = False
        assert launch(case, [fits, values, out], [5], [5]) == INVALID
        assert (out == values).all()


@needs_cc
def test_where_real_imag_and_complex():
    cases = [(lambda args, d=d: Op("where", tuple(args), d), (np.dtype(bool), d, d)) for d in ALL]
    results, references = list(ALL), [np.where] * len(ALL)
    for dtype in COMPLEX:
        part = np.dtype(f"f{dtype.itemsize // 2}")
        for name in ("real", "imag"):
            cases.append((lambda args, name=name, part=part: Op(name, tuple(args), part), (dtype,)))
            results.append(part)
            references.append(getattr(np, name))
        cases.append((lambda args, dtype=dtype: Op("complex", tuple(args), dtype), (part, part)))
        results.append(dtype)
        references.append(lambda x, y, dtype=dtype: np.stack([x, y], -1).view(dtype)[..., 0])
    check(cases, results, references, [True] * len(cases))


@needs_cc
def test_the_text_reads_well_and_every_statement_runs():
    double = np.dtype(float)
    x = Elem("p0", affine(0, Term(1, None, "j"), Term(1, "n1", "i")), double)
    body = (
        Declare("s", Lit(np.float64(0).tobytes(), double), True),
        Declare("m", Lit(np.float64(-np.inf).tobytes(), double), True),
        For(
            "j",
            affine(),
            (affine(0, Term(1, "n1")), affine(0, Term(1, "n2"))),
            1,
            "vector",
            (Update("s", "add", x),),
        ),
        For("j", affine(), (affine(0, Term(1, "n1")),), 2, "vector", (Update("m", "maximum", x),)),
        Let("big", Op("greater", (Local("s", double), Local("m", double)), np.dtype(bool))),
        If(Local("big", np.dtype(bool)), (Assign("s", Op("negative", (Local("s", double),), double)),), ()),
        Store("p1", I, Local("s", double)),
        Store(
            "p2",
            I,
            Elem("p0", I, double, ((Index(affine(-1, Term(-2, None, "i"), Term(2, "n0"))), affine(1)),)),
        ),
    )
    buffers = (Buffer("p0", double, "r"), Buffer("p1", double, "w"), Buffer("p2", double, "rw", False))
    kernel = Kernel(buffers, ("n0", "n1", "n2"), (Phase("i", affine(0, Term(1, "n0")), "serial", body),))
    text = emit(kernel, {"p0": "A", "p1": "total"})
    assert text == emit(kernel, {"p0": "A", "p1": "total"})
    for line in (
        "const double *restrict p0 = (const double *)args[0];  /* A */",
        "double *p2 = (double *)args[2];",
        "#pragma omp simd reduction(+:s)",
        "for (int64_t j = 0; j < (n1 < n2 ? n1 : n2); j++) {",
        "s = (s + p0[n1*i + j]);",
        "if (big) {",
    ):
        assert line in text
    a = np.arange(-6.0, 24.0).reshape(5, 6)
    total, other = np.zeros(5), np.zeros(5)
    launch(kernel, [a, total, other], [5, 6, 4], [5])
    sums, tops = a[:, :4].sum(1), a[:, ::2].max(1)
    assert (total == np.where(sums > tops, -sums, sums)).all()
    assert (other == a.ravel()[np.arange(5) + 2 * 5 - 2 * np.arange(5) - 1]).all()


@needs_cc
def test_flags_are_numpys():
    double, long = np.dtype(float), np.dtype(np.int64)
    elements = Elem("p0", I, double), Elem("p1", I, double)
    cases = [
        ("divide", 1.0, 0.0, DIVIDE), ("divide", 0.0, 0.0, INVALID),
        ("multiply", 1e300, 1e300, OVERFLOW), ("multiply", 1e-300, 1e-300, UNDERFLOW),
        ("add", 1.0, 2.0, 0), ("less", np.nan, 2.0, 0), ("maximum", np.nan, 2.0, 0),
        ("equal", np.nan, np.nan, 0),
    ]  # fmt: skip
    for name, x, y, flags in cases:
        result = np.dtype(bool if name in ("less", "equal") else float)
        arrays = [np.full(9, x), np.full(9, y), np.zeros(9, result)]
        kernel = elementwise([Op(name, elements, result)], [double, double])
        assert launch(kernel, arrays, [9], [9]) == flags, name
    kernel = elementwise([Op("floor_divide", (Elem("p0", I, long), Elem("p1", I, long)), long)], [long, long])
    assert launch(kernel, [np.ones(4, int), np.zeros(4, int), np.zeros(4, int)], [4], [4]) == DIVIDE


def test_constants_keep_their_bits():
    assert cops.literal(Lit(np.float64(-0.0).tobytes(), np.dtype(float))) == "(-0.0)"
    assert cops.literal(Lit(np.float64(0.1).tobytes(), np.dtype(float))) == "0x1.999999999999ap-4"
    assert cops.literal(Lit(np.float32(0.5).tobytes(), np.dtype("f4"))) == "0x1.0000000000000p-1f"
    assert (
        cops.literal(Lit(np.float64(np.nan).tobytes(), np.dtype(float))) == "bits_float64(0x7ff8000000000000)"
    )
    assert cops.literal(Lit(np.int64(-(1 << 63)).tobytes(), np.dtype(int))) == "(INT64_MIN)"
    assert (
        cops.literal(Lit(np.uint64((1 << 64) - 1).tobytes(), np.dtype("u8"))) == f"UINT64_C({(1 << 64) - 1})"
    )


def test_what_c_cannot_do_is_refused():
    with pytest.raises(Unsupported, match="no spacing for float64"):
        C.emit(elementwise([Op("spacing", (Elem("p0", I, FLOATS[2]),), FLOATS[2])], [FLOATS[2]]))


@needs_cc
def test_a_failing_compiler_is_reported():
    with pytest.raises(Unsupported, match="the C compiler fails"):
        C.compile("int run(")
    with pytest.raises(Unsupported, match="cannot be loaded"):
        C.load(elementwise([], []), b"not a library")


# ---- whole regions, against LLVM and the interpreter ---------------------------------------------------
REGIONS = {
    "scans": """region(N: int>=0, M: int>=0) {
      in a: f64[N, M];  out p: f64[N, M];  out q: f64[N, M];  out r: i64[M]
      p[i,j] scan j add= multiply(a[i,j], a[i,j]) init -0.0 for i<N, j<M
      q[i,j] scan i maximum= a[i,j] init -inf for i<N, j<M
      r[j] scan j multiply= iota(j) init 1 for j<M
    }""",
    "stencil": """region() {
      in A: f64[40,50];  inout B: f64[40,50]
      B[i+1,j+1] = multiply(0.2, add(add(add(A[i+1,j+1], A[i+1,j]), A[i+1,j+2]), A[i,j+1])) for i<38, j<48
    }""",
    "strides": """region(N: int>=3) {
      in A: f32[N,N];  temp t: f32[N,N];  out B: f32[N,N]
      t[i,j] = multiply(A[j,N-i-1], f32(3.0)) for i<N, j<N
      B[i,j] = subtract(t[N-i-1,j], A[i,j]) for i<N, j<N
    }""",
    "integers": """region() {
      in a: i16[300];  in b: i16[300];  out p: i16[300];  out q: bool[300];  out r: i64[]
      p[i] = add(floor_divide(a[i], b[i]), left_shift(remainder(a[i], b[i]), b[299-i])) for i<300
      q[i] = logical_xor(less(a[i], b[i]), equal(bitwise_xor(a[i], b[i]), i16(3))) for i<300
      r[] add= cast:i64(p[i]) init 0 for i<300
    }""",
    "complex": """region() {
      in a: c128[7,9];  in b: c128[9];  out p: c128[7,9];  out q: f64[7,9]
      p[i,j] = divide(multiply(a[i,j], b[j]), add(conjugate(a[i,j]), b[j])) for i<7, j<9
      q[i,j] = where(isfinite(a[i,j]), real(p[i,j]), imag(a[i,8-j])) for i<7, j<9
    }""",
    "half": """region() {
      in a: f16[33];  in b: f16[33];  out p: f16[33];  out q: f32[33]
      p[i] = divide(add(multiply(a[i], b[i]), a[i]), maximum(b[i], f16(0.5))) for i<33
      q[i] = sqrt(absolute(cast:f32(p[32-i]))) for i<33
    }""",
    "folds": """region() {
      in a: f64[30,40];  out s: i64[30];  out top: f64[40];  out all: bool[]
      s[i] add= cast:i64(greater(a[i,j], 0.0)) init 0 for i<30, j<40
      top[j] maximum= a[i,j] init -1e300 for i<30, j<40
      all[] logical_and= less(a[i,j], 9.0) init true for i<30, j<40
    }""",
    "gather": """region() {
      in a: f64[12,5];  in k: i64[20];  out o: f64[20,5]
      o[i,j] = add(gather(a, k[i], remainder(iota(j), 5)), size:f64(3)) for i<20, j<5
    }""",
    "transposed": """region(N: int>=9, M: int>=9) {
      in a: f64[N,M];  in b: f64[N,M];  in c: f64[M,N];  out o: f64[M,N];  out p: f64[N,M];  out q: f64[M,N]
      o[i,j] = a[j,i] for i<M, j<N
      nest {
        p[j,i] = add(b[j,i], c[i,j]) for i<M, j<N
        q[i,j] = multiply(add(a[j,i], b[j,i]), c[i,j]) for i<M, j<N
      }
    }""",
}


def run_region(region, name, values):
    """The written arrays and the flags of a region on a target, or by the interpreter."""
    rng = np.random.default_rng(1)
    given = {}
    for array in region.arrays:
        shape = [evaluate(extent, values) for extent in array.shape]
        if array.role == "temp":
            continue
        given[array.name] = np.zeros(shape, array.dtype)
        if array.role != "out":
            noise = rng.normal(size=shape) * 3
            if array.dtype.kind == "c":
                noise = noise + 1j * rng.normal(size=shape)
            given[array.name][...] = rng.integers(0, 5, shape) + 1 if array.dtype.kind == "i" else noise
    if name is None:
        kept = {array.name: given[array.name] for array in region.arrays if array.role in ("in", "inout")}
        return interp.run(region, kept, values)
    reasons = []
    plan = compile_region(region, name, fallback=lambda reason, loc: reasons.append(reason))
    assert not reasons
    run_plan(plan, given, list(values.values()), 1)
    return {array.name: given[array.name] for array in region.arrays if array.role in ("out", "inout")}


@needs_cc
@pytest.mark.parametrize("name", REGIONS)
def test_c_llvm_and_the_interpreter_agree_to_the_bit(name):
    region = parse(REGIONS[name])
    values = {symbol.name: 17 for symbol in region.symbols}
    want = run_region(region, None, values)
    for backend in ("c", "cpu"):
        for array, got in run_region(region, backend, values).items():
            assert same(got, want[array]).all(), (backend, array)
