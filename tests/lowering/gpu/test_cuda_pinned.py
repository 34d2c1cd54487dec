"""Copies from and to page-locked memory in CUDA graphs, on a made-up device that does its work late."""

import random
from collections.abc import Callable
from typing import Any

import loop_programs
import numpy as np
import pytest
from cuda_runs import Machine, machine, needs_gxx
from loop_functions import alike, arguments, function, outcome
from written import written

import dcarray as dc
from dcarray.ir import interp
from dcarray.ir.parse import parse
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.gpu import devices
from dcarray.lowering.gpu.cuda.buffers import CudaBuffer
from dcarray.lowering.gpu.host_calls import run_buffer

__all__ = ["machine"]
pytestmark = needs_gxx


@pytest.fixture(autouse=True)
def late(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do nothing before somebody waits for it; leave loops to the driver, as those over large arrays are."""
    machine.cupy.late = machine.pinned = True
    monkeypatch.setattr("dcarray.lowering.gpu.schedules.loops.MAX_WORK", 0)
    monkeypatch.setitem(devices._found, "cuda", [machine.device])


CHAINS = """region(N: int>=3) {
  in a: f64[N];  in c: f64[2];  inout s: f64[];  temp t: f64[N];  temp r: f64[];  out o: f64[N]
  t[i] = multiply(a[i], c[0])    for i<N
  o[i] = add(t[i], t[N-1-i])     for i<N
  r[] add= multiply(o[i], c[1])  init 0.0 for i<N
  s[] = add(s[], r[])
}"""
LOOP = """region(T: int>=1) {
  inout a: f64[T, 30];  inout b: f64[T, 30];  in c: f64[30]
  for k in range(1, T, 1) {
    a[k,i] = add(a[k-1,29-i], c[i])       for i<30
    b[k,i] = multiply(b[k-1,29-i], c[i])  for i<30
  }
}"""


def started(machine: Machine, plan: Any, text: str, seed: int, symbols: dict[str, int]) -> Callable[[], None]:
    """Run a plan; return a function that checks the results."""
    region, rng, given = parse(text), np.random.default_rng(seed), {}
    for array in region.arrays:
        if array.role in ("in", "inout"):
            given[array.name] = rng.random([int(eval(str(n), {}, symbols)) for n in array.shape])
    want = interp.run(region, {name: array.copy() for name, array in given.items()}, symbols)
    finish = machine.start(plan, region, given, symbols)
    given["c"][:] = -1  # the run has the elements of the time of its call

    def check() -> None:
        finish()
        for array in region.arrays:
            if array.role in ("out", "inout"):
                np.testing.assert_allclose(given[array.name], want[array.name], rtol=1e-13)

    return check


def test_copies_are_nodes_and_the_host_waits_once(machine: Machine) -> None:
    plan, core = compile_region(parse(CHAINS), "cuda"), machine.core
    for seed in range(6):
        started(machine, plan, CHAINS, seed, {"N": 500})()
    (definition,) = core.definitions
    copies = [node for node in definition.added if node.kind == "memcpy"]
    arriving = [node for node in copies if node.parameters[1] in machine.cupy.pinned]
    assert len(arriving) == 3 and len(copies) == 5 and not any(node.pred for node in arriving)
    assert core.launches == 6 and core.instantiations == 1 and not machine.cupy.log
    assert all(kind != "memcpy" for kind, _ in core.updates)
    assert sum(map(len, machine.device.pairs.values())) == 4  # each run has found the first run's
    assert machine.cupy.waits == 12  # for two results, of which the second one is there


def test_a_twin_is_not_written_before_it_was_read(machine: Machine) -> None:
    plan, cupy, sizes = compile_region(parse(CHAINS), "cuda"), machine.cupy, {"N": 500}
    checks = [started(machine, plan, CHAINS, seed, sizes) for seed in range(12)]
    assert machine.core.launches == 12 and not machine.core.orders and not cupy.waits  # nothing has run yet
    for check in random.Random(0).sample(checks, 12):
        check()
    del checks[:], check
    for seed in range(60):  # nobody reads the results
        started(machine, plan, CHAINS, seed, sizes)
    assert cupy.waits > 24 and max(map(len, machine.device.pairs.values())) <= 24
    started(machine, plan, CHAINS, 7, sizes)()


def test_a_graph_that_is_repeated_has_no_copies(machine: Machine) -> None:
    plan = compile_region(parse(LOOP), "cuda")
    for seed, steps in enumerate((19, 1, 1)):
        started(machine, plan, LOOP, seed, {"T": steps + 1})()
    assert machine.core.launches == 21 and machine.cupy.log == ["upload"] * 9
    assert {node.kind for one in machine.core.definitions for node in one.added} == {"launch"}


def test_without_graphs_or_without_memory(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = compile_region(parse(CHAINS), "cuda")
    monkeypatch.setattr(machine.core.graph, "GraphDefinition", None)
    with pytest.warns(RuntimeWarning, match="no CUDA graphs"):
        first = started(machine, plan, CHAINS, 1, {"N": 40})
    second = started(machine, plan, CHAINS, 2, {"N": 50})
    first(), second()

    def refuse(size: int) -> None:
        raise machine.cupy.cuda.runtime.CUDARuntimeError("no more")

    monkeypatch.setattr(machine.cupy.cuda, "alloc_pinned_memory", refuse)
    machine.device.pairs.clear()
    with pytest.warns(RuntimeWarning, match="no page-locked memory for cuda:0: cuda:0: no more"):
        assert isinstance(run_buffer(machine.device, 100), CudaBuffer)
    assert isinstance(run_buffer(machine.device, 8, np.ones(1)), CudaBuffer)


def accelerated(f: Any, *args: Any) -> Any:
    with dc.options(device="cuda:0", jit="eager", cache_dir=None, eager_below=20):
        return dc.accelerate(f)(*args)


def test_random_programs(machine: Machine) -> None:
    dc.report(reset=True)
    for seed in range(8):
        source, sums = loop_programs.program(seed)
        f, given = function(source), loop_programs.names(seed)
        with np.errstate(all="ignore"):
            want = outcome(f, arguments(given))
            alike(want[:2], outcome(lambda *args, f=f: accelerated(f, *args), arguments(given))[:2], sums)
    assert dc.report().loops > 2 and machine.device.pairs


def test_a_flag_and_small_results_come_with_the_graph(machine: Machine) -> None:
    f = written("""
def f(a, w, k):
    s = 0.0
    for i in range(3):
        a[:] = a * w[i] + a[::-1]
        s = s + a.sum() / w[k[i]]
        w[i] = s
    return s
""")
    for last in (1, 0, 5, 2, 2):  # an index that does not exist; then again
        k = np.array([0, 1, last])
        a, w = np.random.default_rng(k).random(3000), np.array([1.0, 2.0, 3.0])
        x, v, copied = dc.asarray(a.copy(), device="cuda:0"), w.copy(), machine.cupy.copies
        dc.report(reset=True)
        want, got = outcome(f, (a, w, k)), outcome(lambda *args: accelerated(f, *args), (x, v, k))
        alike(want[:1], got[:1], True)
        np.testing.assert_allclose(w, v, rtol=1e-12)
        assert last == 5 or (dc.report().loops == 1 and machine.cupy.copies == copied)
        np.testing.assert_allclose(np.asarray(x), a, rtol=1e-12)
