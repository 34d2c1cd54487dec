"""CUDA graphs with loops and branches that the device decides, run in random orders by a made-up driver."""

import random
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cuda_runs import Machine, machine, needs_gxx
from loop_regions import Loops, agree, memory, wanted

from dcarray.ir.parse import parse
from dcarray.ir.text import dump
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.gpu.cuda import nvrtc
from dcarray.lowering.gpu.cuda.segments import all_segments
from dcarray.lowering.gpu.cuda.tasks import TEST

__all__ = ["machine"]


@pytest.fixture(autouse=True)
def large_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave loops to the driver, as those over large arrays are."""
    monkeypatch.setattr("dcarray.lowering.gpu.schedules.loops.MAX_WORK", 0)


JACOBI = """region(N: int>=3) {
  inout x: f64[N];  in b: f64[N];  in tol: f64[];  temp r: f64[N];  temp h: f64[N];  temp e: f64[]
  out rounds: i64[]
  rounds[] = 0
  r[i] = subtract(b[i], x[i]) for i<N
  e[] maximum= absolute(r[i]) init 0.0 for i<N
  while greater(e[], tol[]) {
    rounds[] = add(rounds[], 1)
    h[i] = multiply(0.5, r[N-1-i]) for i<N
    x[i] = add(x[i], h[N-1-i]) for i<N
    r[i] = subtract(b[i], x[i]) for i<N
    e[] maximum= absolute(r[i]) init 0.0 for i<N
  }
}"""


def solve(machine: Machine, plan: Any, n: int, tol: float) -> int:
    rng = np.random.default_rng(n)
    found = {"x": rng.random(n), "b": rng.random(n), "tol": np.array(tol)}
    x, b, rounds = found["x"].copy(), found["b"], 0
    machine.run(plan, parse(JACOBI), found, {"N": n})
    while np.abs(b - x).max() > tol:
        x, rounds = x + 0.5 * (b - x), rounds + 1
    np.testing.assert_array_equal(found["x"], x)
    assert found["rounds"] == rounds
    return rounds


@needs_gxx
@pytest.mark.parametrize("bound", [1 << 40, 0])
def test_a_loop_ends_itself(machine: Machine, bound: int) -> None:
    plan, core = compile_region(parse(JACOBI), "cuda"), machine.core
    machine.device.graph_memory = bound
    rounds = [solve(machine, plan, n, tol) for n, tol in ((700, 1e-6), (700, 2.0), (700, 1e-3), (3, 1e-9))]
    assert rounds[1] == 0 and min(rounds[0], *rounds[2:]) > 5
    assert core.rounds == sum(rounds) and core.launches == 4 and not machine.cupy.log and not core.updates
    assert machine.downloads == 4 * len(plan.arrays)  # of all arguments, when all is done
    for _ in range(10):
        solve(machine, plan, 50, 1e-2)
    assert len({tuple(order) for order in core.orders}) > 1


BRANCHES = """region() {
  inout a: i64[40];  inout n: i64[];  inout m: i64[];  temp t: i64[40]
  while less(n[], 9) {
    if equal(remainder(n[], 2), 0) {
      m[] = 0
      while less(m[], n[]) {
        m[] = add(m[], 3)
        t[i] = add(a[39-i], m[]) for i<40
        a[i] = multiply(t[i], t[39-i]) for i<40
      }
    } else {
      a[i] = bitwise_and(a[i], 255) for i<40
    }
    if less(n[], 3) { m[] = add(m[], 100) }
    n[] = add(n[], 1)
  }
}"""


@needs_gxx
def test_loops_and_branches_inside_of_each_other(machine: Machine) -> None:
    plan, core = compile_region(parse(BRANCHES), "cuda"), machine.core
    (graph,) = all_segments(plan.program)
    assert {one.kind for one in graph.operations} == {"kernel", "fill", "test", "while", "if"}
    for run in range(6):
        core.rng = random.Random(run)
        found = {"a": np.arange(40), "n": np.array(run), "m": np.array(5)}
        a, n, m = found["a"].copy(), run, 5
        machine.run(plan, parse(BRANCHES), found, {})
        while n < 9:
            if n % 2 == 0:
                m = 0
                while m < n:
                    m += 3
                    t = a[::-1] + m
                    a = t * t[::-1]
            else:
                a = a & 255
            m += 100 * (n < 3)
            n += 1
        np.testing.assert_array_equal(found["a"], a)
        assert (found["n"], found["m"]) == (n, m)
    assert core.launches == 6 and not machine.cupy.log and machine.device.graph_refusal is None


def made(seed: int) -> tuple[Loops, Any] | None:
    """A short random region with loops or branches; None if it is none, or an array has two names."""
    loops = Loops(random.Random(seed))
    whole = loops.region()
    text = dump(whole)
    if len(re.findall(" = | while | if ", text)) > 9 or re.search(r"\bv\[", text) or "while " not in text:
        return None
    return loops, replace(whole, arrays=tuple(array for array in whole.arrays if array.name != "v"))


@needs_gxx
@pytest.mark.parametrize("seed", range(3))
def test_random_loops_in_random_orders(machine: Machine, seed: int) -> None:
    found = next(filter(None, map(made, range(1000 * seed, 1000 * seed + 1000))))
    loops, region = found
    plan, want = compile_region(region, "cuda"), wanted(region, loops.values)
    for run, bound in enumerate((1 << 40, 0, 0, 1 << 40, 1 << 40)):
        machine.core.rng, machine.device.graph_memory = random.Random(run), bound
        machine.device.graphs = run < 4
        got = memory(region, loops.values)
        machine.run(plan, region, got, loops.values)
        agree(got, want)


@needs_gxx
def test_a_driver_without_conditions_has_the_other_graphs(machine: Machine) -> None:
    plan, definition = compile_region(parse(JACOBI), "cuda"), machine.core.graph.GraphDefinition

    def old() -> Any:
        made = definition()
        made.create_condition = None
        return made

    machine.core.graph.GraphDefinition = old
    with pytest.warns(RuntimeWarning, match="no graph of a loop or branch on cuda:0: TypeError"):
        solve(machine, plan, 100, 1e-3)
    assert solve(machine, plan, 100, 1e-3) > 3 and machine.device.graph_refusal is None
    assert machine.core.launches == 0 and machine.cupy.log


@pytest.mark.skipif(nvrtc.unavailable() is not None, reason="no NVRTC")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_the_test_is_compiled_by_nvrtc(architecture: str) -> None:
    assert b"cudaGraphSetConditional" in nvrtc.compile_source(TEST.source, architecture).cubin


def test_the_made_up_driver_has_the_methods_of_the_real_one() -> None:
    graph = pytest.importorskip("cuda.core").graph
    for name in ("create_condition", "while_loop", "if_then", "empty"):
        assert callable(getattr(graph.GraphDefinition, name))
    assert hasattr(graph.GraphCondition, "handle")
    assert hasattr(graph.WhileNode, "body") and hasattr(graph.IfNode, "then")
