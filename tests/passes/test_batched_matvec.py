"""Products of a vector and a matrix in each iteration of a loop become products of matrices."""

import pytest
from plan_runs import agree, interpreted, run_plan, whole_numbers

from dcarray.ir.nodes import Call, Loop
from dcarray.ir.passes import Log
from dcarray.ir.passes.cpu import batched_matvec
from dcarray.ir.passes.cpu.batched_matvec import BATCHED_MATVEC
from dcarray.ir.passes.cpu.pipeline import CPU
from dcarray.ir.text import dump, parse
from dcarray.ir.verify import verify
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.cpu.schedules import loop_kernels

ARRAYS = """inout A: f64[12, 20];  in B: f64[12, 20];  inout C: f64[20, 20];  inout v: f64[20]
  inout u: f64[20];  temp t: f64[20];  temp w: f64[20];  in c: f64[]"""


@pytest.fixture(autouse=True)
def small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batched_matvec, "BLOCK", 6)
        patch.setattr(batched_matvec, "MIN_EXTENT", 2)
        patch.setattr(batched_matvec, "MIN_WORK", 1)
        patch.setattr(loop_kernels, "SMALL", 2)
        yield


def region_of(text):
    region = parse(f"region() {{\n {ARRAYS}\n {text} }}")
    verify(region)
    return region


TRIANGLE = """for i in range(0, 20, 1) {
    t[k] add= multiply(B[j,i], A[j,k+i]) init 0.0 for j<12, k<20-i
    C[j+i,i] = multiply(t[j], c[]) for j<20-i
    C[i,j+i] = t[j] for j<20-i
  }"""
DONE = {
    "triangle": TRIANGLE,
    "without the diagonal": """for i in range(0, 19, 1) {
        t[k] add= multiply(A[j,k+i+1], A[j,i]) init 0.0 for j<12, k<19-i
        C[i,j+i+1] = t[j] for j<19-i
      }""",
    "lower triangle": """for i in range(2, 20, 1) {
        t[k] add= multiply(B[j,k], A[j,20-i-1]) init 0.0 for j<12, k<i+1
        C[i,j] = add(t[j], t[0]) for j<i+1
      }""",
    "backwards": """for i in range(0, 19, 1) {
        t[k] add= multiply(B[j,i], A[j,19-i-k]) init 0.0 for j<12, k<19-i
        C[i,k] = t[k] for k<19-i
      }""",
    "folded again": """for i in range(0, 17, 1) {
        t[k] add= multiply(C[i+2,j], B[k,j]) init 0.0 for j<20, k<12
        v[i] add= t[k] for k<12
      }""",
    "two of them": """for i in range(0, 20, 1) {
        t[k] add= multiply(A[j,i], B[j,k+i]) init 0.0 for k<20-i, j<12
        w[k] add= multiply(B[j,i], A[j,k]) init 0.0 for j<12, k<20
        nest {
          C[i,k] = subtract(w[k], 1.0) for k<20
          u[k] maximum= w[k] for k<20
        }
        v[i] maximum= t[k] init -inf for k<20-i
      }""",
}


@pytest.mark.parametrize("name", DONE)
def test_blocks(name):
    region = region_of(DONE[name])
    log = Log()
    made = BATCHED_MATVEC.fn(region, log)
    verify(made)
    assert parse(dump(made)) == made
    assert "iterations of the loop over i are matrix products" in str(log)
    assert "call blas.matmul" in dump(made)
    memory = whole_numbers(region)
    want = interpreted(region, memory)
    agree(interpreted(made, memory), want)
    plan = compile_region(CPU.run(region, debug=True))
    run_plan(plan, memory, (), 0)
    assert not plan.stats["interpreted"]
    agree(memory, want)


NONE = "no iteration has a large product of its own"
LEFT = {
    "of what the loop writes": (NONE, """
        t[k] add= multiply(B[j,i], A[j,k+i]) init 0.0 for j<12, k<20-i
        A[0,j+i] = t[j] for j<20-i"""),
    "no iteration's own": (NONE, "v[k] add= multiply(B[j,i], A[j,k]) init 0.0 for j<12, k<20"),
    "from one": (NONE, """
        t[k] add= multiply(B[j,i], A[j,k]) init 1.0 for j<12, k<20
        C[i,k] = t[k] for k<20"""),
    "no matrix": (NONE, """
        t[k] add= multiply(B[j,i], A[j,i]) init 0.0 for j<12, k<20
        C[i,k] = t[k] for k<20"""),
    "always the same vector": (NONE, """
        t[k] add= multiply(B[j,3], A[j,k]) init 0.0 for j<12, k<20
        C[i,k] = t[k] for k<20"""),
    "moves back": (NONE, """
        t[k] add= multiply(B[j,i], A[j,k-i+19]) init 0.0 for j<12, k<i+1
        C[i,k] = t[k] for k<i+1"""),
    "twice": (NONE, """
        t[k] add= multiply(B[j,i], A[j,k]) init 0.0 for j<12, k<20
        C[i,k] = t[k] for k<20
        t[k] = A[3,k] for k<20
        v[k] = t[k] for k<20"""),
    "a call": ("it holds more than computations", """
        call blas.matmul(B[j,i for j<12], A) -> v
        C[i,k] = v[k] for k<20"""),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_left_as_they_are(name):
    reason, body = LEFT[name]
    region = region_of(f"for i in range(0, 20, 1) {{ {body} }}")
    log = Log()
    assert BATCHED_MATVEC.fn(region, log) is region
    assert reason in str(log)


BOUNDS = {
    "its iterations are not numbers one after the other": "0, 20, 2",
    "it has few iterations": "0, 1, 1",
}


@pytest.mark.parametrize("reason", BOUNDS)
def test_iterations(reason):
    log = Log()
    region = region_of(TRIANGLE.replace("0, 20, 1", BOUNDS[reason]))
    assert BATCHED_MATVEC.fn(region, log) is region
    assert reason in str(log)


def test_what_is_used_later_is_no_iterations_own():
    region = region_of(TRIANGLE + "\n u[k] = t[k] for k<20")
    assert BATCHED_MATVEC.fn(region, Log()) is region


def test_work_too_small_for_a_library(monkeypatch):
    monkeypatch.setattr(batched_matvec, "MIN_WORK", 1 << 22)
    region = region_of(TRIANGLE)
    assert not any(isinstance(stmt, Call) for stmt in BATCHED_MATVEC.fn(region, Log()).body)
    assert isinstance(region.body[0], Loop)
