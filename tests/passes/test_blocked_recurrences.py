"""Sums over what earlier iterations have made are begun for a block of iterations at once."""

import pytest
from plan_runs import agree, interpreted, passed, run_plan, whole_numbers

from dcarray.ir.nodes import Loop
from dcarray.ir.passes import Log
from dcarray.ir.passes.cpu import blocked_recurrences
from dcarray.ir.passes.cpu.blocked_recurrences import BLOCKED_RECURRENCES
from dcarray.ir.text import parse
from dcarray.ir.verify import verify
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.cpu.schedules import loop_kernels

ARRAYS = """in A: f64[20, 20];  inout x: f64[20];  in b: f64[20];  inout y: f64[20]
  inout C: f64[20, 20];  temp t: f64[];  temp u: f64[]"""


@pytest.fixture(autouse=True)
def small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocked_recurrences, "BLOCK", 6)
        patch.setattr(blocked_recurrences, "MIN_WORK", 1)
        yield


def region_of(text):
    region = parse(f"region() {{\n {ARRAYS}\n {text} }}")
    verify(region)
    return region


CASES = {
    "triangle": """for i in range(0, 20, 1) {
    t[] add= multiply(A[i,j], x[j]) init 0.0 for j<i
    x[i] = subtract(b[i], t[])
  }""",
    "from the second row on": """for i in range(1, 20, 1) {
    t[] add= multiply(A[i,j], x[j]) init 0.0 for j<i
    x[i] = subtract(b[i], t[])
  }""",
    "columns": """for i in range(0, 20, 1) {
    t[] add= multiply(x[j], A[j,i]) init 1.0 for j<i
    x[i] = subtract(b[i], t[])
  }""",
    "backwards in memory": """for i in range(0, 20, 1) {
    t[] add= multiply(A[19-i,19-j], x[19-j]) init 0.0 for j<i
    x[19-i] = subtract(b[i], t[])
  }""",
    "one more each": """for i in range(0, 19, 1) {
    t[] add= multiply(A[i,j], b[j]) init 0.0 for j<i+1
    x[i] = t[]
  }""",
    "into its place": """for i in range(2, 20, 1) {
    x[i] add= multiply(multiply(A[i,j], x[j]), b[i]) init 0.0 for j<i
  }""",
    "two sums": """for i in range(0, 20, 1) {
    t[] add= multiply(A[i,j], x[j]) init 0.0 for j<i
    u[] add= multiply(A[j,i], y[j]) init 0.0 for j<i
    x[i] = subtract(b[i], t[])
    y[i] = add(u[], t[])
  }""",
    "columns of what is made": """for i in range(0, 20, 1) {
    t[] add= multiply(A[i,j], C[j,3]) init 0.0 for j<i
    C[i,j] = add(t[], b[j]) for j<20
  }""",
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("driven", [False, True])
def test_begun(monkeypatch, name, driven):
    region = region_of(CASES[name])
    log = Log()
    made = BLOCKED_RECURRENCES.fn(region, log)
    assert made is not region and str(log).count("at once") == 1
    assert passed(BLOCKED_RECURRENCES, region) == made
    outer = [stmt for stmt in made.body if isinstance(stmt, Loop)]
    assert outer[0].var == "i_block" and len(outer) == 1 + (region.body[0].bounds[0] != 2)
    arrays = whole_numbers(region, low=-1, high=2)
    want = interpreted(region, arrays)
    agree(interpreted(made, arrays), want)
    if driven:  # the outer loop is the driver's, so that threads share each block
        monkeypatch.setattr(loop_kernels, "WORTH", 0)
        monkeypatch.setattr(loop_kernels, "LAUNCH", -(1 << 30))
    plan = compile_region(made)
    assert ("_repeat" in plan.driver or "for i_block" in plan.driver) == driven
    run_plan(plan, arrays, (), 2)
    agree(arrays, want)
    for step in plan.kernels:
        assert "i_block" not in str(step.binding.bytes)


LEFT = {
    "it reads what comes": """for i in range(0, 19, 1) {
    t[] add= multiply(A[i,j], x[j]) init 0.0 for j<i
    x[i] = t[]
    x[i+1] = b[i]
    x[0] = t[]
  }""",
    "what it reads is changed": """for i in range(0, 20, 1) {
    t[] add= multiply(A[i,j], x[j]) init 0.0 for j<i
    x[k] = add(x[k], t[]) for k<i
  }""",
    "other elements in each iteration": """for i in range(0, 20, 1) {
    t[] add= multiply(A[i,j], C[i,j]) init 0.0 for j<i
    C[i,j] = t[] for j<20
  }""",
    "not a longer one": """for i in range(0, 20, 1) {
    t[] add= multiply(A[i,j], x[j]) init 0.0 for j<20
    y[i] = t[]
  }""",
    "two in each iteration": """for i in range(0, 9, 1) {
    t[] add= multiply(A[i,j], x[j]) init 0.0 for j<2*i
    x[2*i] = t[]
  }""",
    "not a sum": """for i in range(0, 20, 1) {
    t[] maximum= multiply(A[i,j], x[j]) init 0.0 for j<i
    x[i] = t[]
  }""",
    "along a diagonal": """for i in range(0, 20, 1) {
    t[] add= multiply(A[i,j], b[i-j]) init 0.0 for j<i
    x[i] = t[]
  }""",
    "a start that another iteration made": """for i in range(1, 20, 1) {
    t[] add= multiply(A[i,j], b[j]) init x[i-1] for j<i
    x[i] = t[]
  }""",
}


@pytest.mark.parametrize("name", LEFT)
def test_left(name):
    region = region_of(LEFT[name])
    assert BLOCKED_RECURRENCES.fn(region, Log()) is region


def test_short_loops_are_left(monkeypatch):
    monkeypatch.setattr(blocked_recurrences, "BLOCK", 11)
    region = region_of(CASES["triangle"])
    assert BLOCKED_RECURRENCES.fn(region, Log()) is region
    monkeypatch.setattr(blocked_recurrences, "BLOCK", 5)
    monkeypatch.setattr(blocked_recurrences, "MIN_WORK", 1000)
    assert BLOCKED_RECURRENCES.fn(region, Log()) is region
