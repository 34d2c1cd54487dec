"""Dialects of C: another one than plain C, compiled and run; what the others have written differently."""

import shutil
from dataclasses import replace

import ir_regions
import numpy as np
import pytest
from ir_regions import assert_agree
from plan_runs import run_plan

from dcarray.ir import interp
from dcarray.ir.parse import parse
from dcarray.lowering import targets
from dcarray.lowering.c_family.dialect import C, Dialect
from dcarray.lowering.c_family.emit import emit
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.cpu.c import target as c

# C++ where signed overflow is undefined, without vector loops and NumPy's loops.
CPP = replace(
    C, name="C++", head=C.head.replace("} v = {u};", "} v; v.u = u;"), composite="{T}",
    restrict="__restrict__ ", phase='extern "C" ', vector_loops=False, wraps=False, numpy_loops=False,
    contraction="#pragma STDC FP_CONTRACT OFF",
)  # fmt: skip


class CppCompiler(c.CCompiler):
    key = "c++"

    def emit(self, kernel, names=None):
        return emit(kernel, names, CPP)


@pytest.fixture
def cpp(monkeypatch):
    if not shutil.which("g++"):
        pytest.skip("no C++ compiler")
    flags = [flag for flag in c.FLAGS if flag not in ("-std=gnu11", "-fwrapv", "-O3", "-fopenmp-simd")]
    monkeypatch.setattr(c, "compiler", lambda: (shutil.which("g++"), "-x", "c++", "-O1"))
    monkeypatch.setattr(c, "FLAGS", (*flags, "-std=gnu++17", "-Wno-unknown-pragmas"))
    return replace(targets.get("c"), name="c++", compiler=CppCompiler())


@pytest.mark.parametrize("seed", range(8))
def test_random_regions_in_another_dialect(cpp, seed):
    case = ir_regions.make_case(seed, 4, dtypes="?bhilBHILfdFD", aliases=False)
    plan, memory = compile_region(case.region, cpp), case.memory()
    with np.errstate(all="ignore"):
        want = interp.run(case.region, case.memory())
    for array in case.region.arrays:
        if array.role != "temp":
            made = memory.get(array.name, np.empty(array.shape, array.dtype))
            memory[array.name] = np.array(made, order="C")
    run_plan(plan, memory, (), 0)
    assert_agree(want, memory, zero_signs=case.zero_signs)
    assert plan.stats["kernels"]


def test_signed_integers_wrap_where_overflow_is_undefined(cpp):
    plan = compile_region(
        parse("""region() {
          in a: i64[4];  in b: i16[4];  out o: i64[4];  out p: i16[4]
          o[i] = subtract(multiply(a[i], a[i]), negative(absolute(a[i]))) for i<4
          p[i] = add(multiply(b[i], b[i]), square(b[i])) for i<4
        }"""),
        cpp,
        fallback=lambda reason, loc: pytest.fail(reason),
    )
    a = np.array([2**63 - 1, -(2**63), 3, -7])
    b = np.array([2**15 - 1, -(2**15), 300, -7], np.int16)
    o, p = np.empty_like(a), np.empty_like(b)
    plan.run([a, b, o, p], [x.ctypes.data for x in (a, b, o, p)])
    assert (o == a * a - -abs(a)).all() and (p == b * b + b * b).all()


def test_a_dialect_says_types_qualifiers_and_spaces():
    opencl = Dialect(
        "OpenCL C", "", {
            "bool": "uchar", "int16": "short", "uint16": "ushort", "int32": "int", "int64": "long",
            "uint64": "ulong", "float32": "float", "float64": "double", "complex128": "complex128",
        },
        int64="{}L", uint64="{}UL", int64_min="LONG_MIN", float32_suffix="", function="inline ",
        phase="__kernel ", global_space="__global ", contraction="#pragma OPENCL FP_CONTRACT OFF",
        vector_loops=False, wraps=False, numpy_loops=False, runs_phases=False,
    )  # fmt: skip
    (step,) = compile_region(
        parse("""region() {
          in a: f32[9];  in n: i64[9];  out o: f32[9];  out m: i64[9]
          nest {
            o[i] = floor_divide(sqrt(a[i]), f32(0.5)) for i<9
            m[i] = add(n[i], 5) for i<9
          }
        }""")
    ).kernels
    text = emit(step.kernel, dialect=opencl)
    for part in ("__kernel int phase0(__global const long *args, long lo, long hi) {",
                 "__global const float *restrict p0 = (__global const float *)args[0];",
                 "inline float floor_divide_float32(float a, float b)", "sqrt(", "(long)((ulong)", "5L",
                 "#pragma OPENCL FP_CONTRACT OFF"):  # fmt: skip
        assert part in text, text
    assert "int64_t" not in text and "sqrtf" not in text and "run(" not in text
