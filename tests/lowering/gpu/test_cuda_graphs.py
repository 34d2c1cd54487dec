"""CUDA graphs: built against a driver that is made up, run by the processor in orders that they allow."""

import inspect
import itertools
import random
from pathlib import Path
from typing import Any

import ir_regions
import numpy as np
import pytest
from cuda_runs import Machine, machine, needs_gxx
from ir_regions import assert_agree

from dcarray.ir import interp
from dcarray.ir.analysis.effects import families
from dcarray.ir.nodes import Region
from dcarray.ir.ops import CALLS, CallOp
from dcarray.ir.parse import parse
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.gpu.cuda import device as device_module
from dcarray.lowering.gpu.cuda import segments
from dcarray.lowering.gpu.cuda.arena import layout, size_class
from dcarray.lowering.gpu.cuda.device import CudaDevice
from dcarray.lowering.gpu.cuda.segments import Segment, partition
from dcarray.lowering.program import nodes
from dcarray.lowering.program.loaded_plan import deserialised
from dcarray.lowering.program.serialise import serialised

__all__ = ["machine"]


def compiled(text: str | Region, **options: Any) -> Any:
    region = parse(text) if isinstance(text, str) else text
    return compile_region(region, "cuda", **options)


def graphs(plan: Any) -> list[Segment]:
    return [part for part in partition(plan.program.body, plan.program.region) if isinstance(part, Segment)]


TWO_CHAINS = """region(N: int>=3) {
  in a: f64[N];  in c0: f64[];  temp t: f64[N];  temp u: f64[N]
  out o: f64[N];  out p: f64[N];  out z: f64[N]
  t[i] = multiply(a[i], c0[])    for i<N
  u[i] = sqrt(a[i])              for i<N
  o[i] = add(t[i], t[N-1-i])     for i<N
  p[i] = add(u[i], u[N-1-i])     for i<N
  z[i] = 0.0                     for i<N
  z[i+1] = p[i]                  for i<2
}"""


def two_chains(machine: Machine, plan: Any, n: int, c: float) -> None:
    a = np.random.default_rng(n).random(n)
    memory = {"a": a, "c0": np.array(c)}
    machine.run(plan, parse(TWO_CHAINS), memory, {"N": n})
    t, u, z = a * c, np.sqrt(a), np.zeros(n)
    p = u + u[::-1]
    z[1:3] = p[:2]
    for name, want in (("o", t + t[::-1]), ("p", p), ("z", z)):
        np.testing.assert_array_equal(memory[name], want)


# ---- what there is -----------------------------------------------------------------------------------
def test_independent_chains_are_not_ordered() -> None:
    (graph,) = graphs(compiled(TWO_CHAINS))
    assert [one.kind for one in graph.operations] == ["kernel"] * 4 + ["fill", "copy"]
    assert [set(earlier) for earlier in graph.before] == [set(), set(), {0}, {1}, set(), {3, 4}]
    assert [array.name for array in graph.temporaries] == ["t", "u"] and graph.uses == ((0, 2), (1, 3))


@needs_gxx
def test_a_graph_is_built_once_and_updated(machine: Machine) -> None:
    plan, core = compiled(TWO_CHAINS), machine.core
    for n, c in ((1000, 2.0), (1000, 3.0), (5000, 3.0), (3, -0.0), (3, 0.0), (1000, np.nan)):
        two_chains(machine, plan, n, c)
    assert core.instantiations == 1 and core.launches == 6 and machine.cupy.log == []
    assert {kind for kind, _ in core.updates} == {"launch", "memcpy", "memset"}
    for _ in range(30):  # the machine takes any order that the graph allows, by chance
        two_chains(machine, plan, 1000, 2.0)
    assert len({tuple(order) for order in core.orders}) > 1


@needs_gxx
def test_the_same_run_again_updates_nothing(machine: Machine) -> None:
    plan, device = compiled(TWO_CHAINS), machine.device
    buffers = [device.allocate(800) for _ in range(4)]
    device.upload(np.arange(100.0), buffers[0])
    for _ in range(5):
        given = {"a": buffers[0], "c0": np.float64(2), "o": buffers[1], "p": buffers[2], "z": buffers[3]}
        plan.run([], [given[name] for name in plan.arrays], (100,), device)
    moved = {args[2].grid if kind == "x" else 0 for kind, args in machine.core.updates}
    assert machine.core.instantiations == 1 and machine.core.launches == 5
    assert moved <= {0} and all(
        kind == "launch" for kind, _ in machine.core.updates
    )  # of temporaries that moved
    before = len(machine.core.updates)
    given["c0"] = np.float64(-2)
    plan.run([], [given[name] for name in plan.arrays], (100,), device)
    scalars = [args for _, (_, _, args) in machine.core.updates[before:] if np.float64(-2) in args]
    assert len(scalars) == 1
    out = np.empty(100)
    device.download(buffers[1], out)
    np.testing.assert_array_equal(out, np.full(100, -2 * 99.0))


@needs_gxx
def test_results_that_take_turns_have_a_graph_each(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dcarray.lowering.gpu.cuda.graph.ALIKE", 4)
    plan, device, core = compiled(TWO_CHAINS), machine.device, machine.core
    sets = [[device.allocate(800) for _ in range(4)] for _ in range(6)]

    def run(number: int, factor: float) -> None:
        a, o, p, z = sets[number]
        device.upload(np.arange(100.0) + number, a)
        device.upload(np.zeros(100), o)
        given = {"a": a, "c0": np.float64(factor), "o": o, "p": p, "z": z}
        plan.run([], [given[name] for name in plan.arrays], (100,), device)
        t, out = (np.arange(100.0) + number) * factor, np.empty(100)
        device.download(o, out)
        np.testing.assert_array_equal(out, t + t[::-1])

    for number in (0, 1, 0, 1):
        run(number, 2.0)
    assert core.instantiations == 2
    updates = len(core.updates)
    for number in (0, 1) * 3:
        run(number, 2.0)
    assert len(core.updates) == updates and core.instantiations == 2
    for number in (0, 1, 2, 3, 4, 5) * 4:
        run(number, 2.0 + number % 2)
    assert core.instantiations == 4  # there are no more of one order


@needs_gxx
def test_what_has_no_elements_is_disabled(machine: Machine) -> None:
    text = """region(N: int>=0) {
      in a: f64[N];  out o: f64[N];  out p: f64[2];  out q: f64[N]
      o[i] = negative(a[i]) for i<N
      p[i] = 1.0 for i<2
      q[i] = a[i] for i<N
    }"""
    plan = compiled(text)
    for n in (0, 5, 0, 600):
        memory = {"a": np.arange(float(n))}
        machine.run(plan, parse(text), memory, {"N": n})
        np.testing.assert_array_equal(memory["o"], -memory["a"])
        np.testing.assert_array_equal(memory["q"], memory["a"])
        assert memory["p"].tolist() == [1, 1]
    assert machine.core.instantiations == 1 and machine.core.launches == 4


@needs_gxx
def test_a_host_call_splits_the_graph(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def inverse(writes: Any, reads: Any, attrs: Any) -> None:
        writes[0][...] = np.linalg.inv(reads[0])

    monkeypatch.setitem(CALLS, "test.inverse", CallOp("test.inverse", inverse, over=0))
    text = """region() {
      in a: f64[5, 5];  temp t: f64[5, 5];  temp u: f64[5, 5];  temp v: f64[5, 5]
      out o: f64[5, 5];  out p: f64[5, 5]
      t[i,j] = add(a[i,j], 1.0) for i<5, j<5
      u[i,j] = multiply(t[i,j], t[j,i]) for i<5, j<5
      call test.inverse(u) -> v
      o[i,j] = multiply(v[i,j], v[j,i]) for i<5, j<5
      p[i,j] = multiply(o[i,j], o[j,i]) for i<5, j<5
    }"""
    plan = compiled(text)
    assert len(graphs(plan)) == 2 and plan.stats["kernels"] == 4
    memory = {"a": np.random.default_rng(1).random((5, 5)) + 5 * np.eye(5)}
    machine.run(plan, parse(text), memory, {})
    t = memory["a"] + 1
    v = np.linalg.inv(t * t.T)
    np.testing.assert_array_equal(memory["p"], (v * v.T) * (v * v.T).T)
    assert machine.core.launches == 2 and machine.cupy.in_use <= 512 * 3


LOOP = """region() {{
  inout a: f64[40];  inout b: f64[40]
  for t in range(0, {count}, 1) {{
    b[i+1] = add(a[i], a[i+2]) for i<38
    a[i+1] = multiply(0.5, b[i+1]) for i<38
  }}
}}"""


@pytest.fixture
def large_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave loops to the driver, as those over large arrays are."""
    monkeypatch.setattr("dcarray.lowering.gpu.schedules.loops.MAX_WORK", 0)


@needs_gxx
@pytest.mark.usefixtures("large_statements")
@pytest.mark.parametrize("count", [0, 3, 300])
def test_loops_are_unrolled_while_they_are_short(machine: Machine, count: int) -> None:
    plan, memory = compiled(LOOP.format(count=count)), {"a": np.arange(40.0), "b": np.ones(40)}
    a, b = memory["a"].copy(), memory["b"].copy()
    for _ in range(2):
        machine.run(plan, parse(LOOP.format(count=count)), memory, {})
    for _ in range(2 * count):
        b[1:-1] = a[:-2] + a[2:]
        a[1:-1] = 0.5 * b[1:-1]
    np.testing.assert_array_equal(memory["a"], a)
    assert machine.core.launches == {0: 0, 3: 2, 300: 600}[count] and not machine.cupy.log
    assert machine.core.instantiations == (1 if count else 0)


@needs_gxx
@pytest.mark.usefixtures("large_statements")
def test_a_graph_in_a_loop_follows_its_variable(machine: Machine) -> None:
    text = """region(T: int>=1) {
      inout a: f64[T, 30];  inout b: f64[T, 30]
      for t in range(1, T, 1) {
        a[t,i] = add(a[t-1,29-i], 1.0) for i<30
        b[t,i] = add(b[t-1,29-i], 2.0) for i<30
      }
    }"""
    plan, memory = compiled(text), {"a": np.zeros((20, 30)), "b": np.zeros((20, 30))}
    machine.run(plan, parse(text), memory, {"T": 20})
    np.testing.assert_array_equal(memory["a"], np.repeat(np.arange(20.0)[:, None], 30, 1))
    np.testing.assert_array_equal(memory["b"], 2 * memory["a"])
    assert machine.core.instantiations == 1 and machine.core.launches == 19


# ---- the order ---------------------------------------------------------------------------------------
def elements(window: Any, arrays: dict[str, Any], root: dict[str, str]) -> set[tuple[str, int]]:
    """All elements of a window; all of its array if it has no index."""
    array = arrays[window.array]
    if not window.index and array.shape:
        return {(root[window.array], k) for k in range(int(np.prod(array.shape)))}
    found = set()
    for point in itertools.product(*(range(extent) for extent in window.shape)):
        at = 0
        for ix, extent in zip(window.index, array.shape, strict=True):
            at = at * extent + ix.offset + (0 if ix.axis is None else ix.stride * point[ix.axis])
        found.add((root[window.array], at))
    return found


def needed(launches: list[nodes.Launch], region: Region) -> list[set[int]]:
    """For each launch the earlier ones that it depends on, element by element."""
    arrays, root = {array.name: array for array in region.arrays}, families(region)

    def touched(windows: Any) -> set[tuple[str, int]]:
        return set().union(*(elements(window, arrays, root) for window in windows))

    sets = [(touched(nodes.reads(one)), touched(nodes.writes(one))) for one in launches]
    return [
        {k for k in range(j) if sets[k][1] & (sets[j][0] | sets[j][1]) or sets[k][0] & sets[j][1]}
        for j in range(len(sets))
    ]


def closed(before: Any) -> list[set[int]]:
    found: list[set[int]] = []
    for earlier in before:
        found.append(set(earlier).union(*(found[k] for k in earlier)))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_edges_are_the_dependences_of_elements(seed: int) -> None:
    case = ir_regions.make_case(seed, 7, dtypes="dl?", aliases=seed % 4 == 0)
    plan = compiled(case.region)
    aliases = any(array.base for array in plan.program.region.arrays)
    for graph in graphs(plan):
        launches = [one.node for one in graph.operations]
        want, got = needed(launches, plan.program.region), closed(graph.before)
        windows = [w for one in launches for w in (*nodes.reads(one), *nodes.writes(one))]
        empty = any(0 in window.shape for window in windows)  # these count as if they had elements
        for mine, theirs in zip(got, closed(want), strict=True):
            assert theirs <= mine if aliases or empty else theirs == mine
        for j, earlier in enumerate(graph.before):  # none of them follows from others
            assert not any(k in got[other] for k in earlier for other in earlier if other != k), j


@needs_gxx
@pytest.mark.parametrize("seed", range(10))
def test_any_order_gives_the_interpreters_results(machine: Machine, seed: int) -> None:
    case = ir_regions.make_case(seed, 5, dtypes="?bhilBHILefdFD", aliases=False)
    plan = compiled(case.region)
    with np.errstate(all="ignore"):
        want = interp.run(case.region, case.memory())
    for bound in (1 << 40, 0):
        machine.device.graph_memory = bound
        for run in range(3):
            machine.core.rng = random.Random(run)
            memory = case.memory()
            machine.run(plan, case.region, memory, {})
            assert_agree(want, memory, zero_signs=case.zero_signs)
    assert machine.device.graph_refusal is None
    if graphs(plan):
        assert machine.core.launches >= 6


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
    } else { a[i] = bitwise_and(a[i], 255) for i<40 }
    n[] = add(n[], 1)
  }
}"""


@needs_gxx
@pytest.mark.usefixtures("large_statements")
def test_the_host_decides_loops_and_branches_around_graphs(machine: Machine) -> None:
    plan = compile_region(parse(BRANCHES), "cuda")
    for run in range(6):
        machine.core.rng = random.Random(run)
        got = {"a": np.arange(40), "n": np.array(run), "m": np.array(5)}
        want = interp.run(parse(BRANCHES), {name: array.copy() for name, array in got.items()})
        machine.run(plan, parse(BRANCHES), got, {})
        np.testing.assert_equal(got, want)
    assert machine.core.launches > 6 and machine.cupy.log and machine.device.graph_refusal is None


# ---- memory ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(200))
def test_memory_is_shared_only_where_the_order_says_so(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(1, 14)
    before = [frozenset(k for k in range(j) if rng.random() < 0.2) for j in range(count)]
    uses = [
        tuple(sorted(rng.sample(range(count), rng.randint(1, min(count, 3)))))
        for _ in range(rng.randint(0, 8))
    ]
    sizes = [rng.choice([0, 100, 512, 4096, 10_000]) for _ in uses]
    bound = rng.choice([0, 1 << 40, 5000, 20_000])
    place = layout(sizes, uses, before, bound)
    ordered = [set(earlier) for earlier in before]
    for first, second in place.edges:
        assert first < second
        ordered[second].add(first)
    earlier = closed(ordered)
    for x, y in itertools.combinations(range(len(sizes)), 2):
        ends = [place.offsets[k] + size_class(sizes[k]) for k in (x, y)]
        if place.offsets[x] < ends[1] and place.offsets[y] < ends[0]:
            assert all(a in earlier[b] for a in uses[x] for b in uses[y]) or all(
                a in earlier[b] for a in uses[y] for b in uses[x]
            )
    serial = layout(sizes, uses, [range(k) for k in range(count)], 1 << 40)
    assert place.size <= max(bound, serial.size) and not (bound == 1 << 40 and place.edges)


CHAINS = "region() {{\n  in a: f64[1000];  {temps};  {outs}\n{body}\n}}".format(
    temps="; ".join(f"temp t{k}: f64[1000]" for k in range(8)),
    outs="; ".join(f"out o{k}: f64[1000]" for k in range(8)),
    body="\n".join(
        f"  t{k}[i] = add(a[i], {k}.0) for i<1000\n  o{k}[i] = multiply(t{k}[i], t{k}[999-i]) for i<1000"
        for k in range(8)
    ),
)


@needs_gxx
@pytest.mark.parametrize("buffers", [1, 3, 8])
def test_a_bound_on_memory_is_kept_by_more_edges(machine: Machine, buffers: int) -> None:
    plan, region = compiled(CHAINS), parse(CHAINS)
    machine.device.graph_memory = buffers * size_class(8000)
    memory: dict[str, np.ndarray] = {"a": np.random.default_rng(3).random(1000)}
    for run in range(4):
        machine.core.rng = random.Random(run)
        machine.run(plan, region, memory, {})
        for k in range(8):
            t = memory["a"] + k
            np.testing.assert_array_equal(memory[f"o{k}"], t * t[::-1])
    (definition,) = machine.core.definitions
    edges = sum(len(node.pred) for node in definition.added)
    assert (edges == 8) == (buffers == 8)
    assert machine.cupy.peak <= 9 * 8192 + machine.device.graph_memory


def test_sizes_come_in_classes() -> None:
    for size in [1, 511, 512, 513, 8000, 10**6, 10**9 + 7]:
        assert size <= size_class(size) <= max(512, size + size // 8 + 512) and size_class(size) % 512 == 0
    assert len({size_class(size) for size in range(1 << 20, 1 << 21)}) <= 9


# ---- without graphs, in another process --------------------------------------------------------------
@needs_gxx
def test_what_the_driver_refuses_runs_without_graphs(machine: Machine) -> None:
    plan = compiled(TWO_CHAINS)

    def refuse() -> None:
        raise RuntimeError("too old")

    machine.core.graph.GraphDefinition = refuse
    with pytest.warns(RuntimeWarning, match="no CUDA graphs on cuda:0: RuntimeError: too old"):
        two_chains(machine, plan, 100, 2.0)
    two_chains(machine, plan, 50, 4.0)  # and it is said once
    assert machine.cupy.log == (["phase0"] * 4 + ["memset", "memcpy"]) * 2 and machine.core.launches == 0


@needs_gxx
def test_a_plan_with_graphs_is_loaded_in_another_process(machine: Machine) -> None:
    plan = deserialised(serialised(compiled(TWO_CHAINS), []))
    given = {name: machine.device.allocate(80) for name in "aopz"} | {"c0": np.float64(2)}
    machine.device.upload(np.arange(10.0), given["a"])
    names = compiled(TWO_CHAINS).arrays
    assert plan.run([], [given[name] for name in names], (10,), machine.device) == 0
    out = np.empty(10)
    machine.device.download(given["o"], out)
    np.testing.assert_array_equal(out, np.full(10, 18.0))
    assert machine.core.launches == 1


@needs_gxx
def test_long_programs_are_several_graphs(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "MAX_NODES", 6)
    plan = compiled(CHAINS)
    assert len(graphs(plan)) > 2 and max(len(graph.operations) for graph in graphs(plan)) <= 6
    memory = {"a": np.arange(1000.0)}
    machine.run(plan, parse(CHAINS), memory, {})
    for k in range(8):
        np.testing.assert_array_equal(memory[f"o{k}"], (memory["a"] + k) * (memory["a"][::-1] + k))


@needs_gxx
def test_kernels_are_compiled_once_for_all_processes(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[str] = []
    compile_source = device_module.compile_source

    def counted(source: str, *more: Any) -> Any:
        made.append(source)
        return compile_source(source, *more)

    monkeypatch.setattr(device_module, "compile_source", counted)
    for _ in range(2):  # a device of a process each
        machine.device = CudaDevice(0)
        machine.device.cache_dir = str(tmp_path)
        two_chains(machine, compiled(TWO_CHAINS), 100, 2.0)
    assert len(made) == len(set(made)) == 3  # both chains end in the same kernel


def test_the_made_up_driver_is_called_as_the_real_one() -> None:
    core = pytest.importorskip("cuda.core")
    graph = core.graph

    def takes(function: Any, *given: Any, **named: Any) -> None:
        inspect.signature(function).bind(*given, **named)

    takes(graph.GraphDefinition.launch, "definition", "config", "kernel", "argument", "argument")
    takes(graph.GraphDefinition.memcpy, "definition", 1, 2, 3)
    takes(graph.GraphDefinition.memset, "definition", 1, 2, 3)
    takes(graph.GraphDefinition.instantiate, "definition")
    takes(graph.Graph.launch, "graph", core.LEGACY_DEFAULT_STREAM)
    takes(graph.ExecutableKernelNode.update, "node", config=1, kernel=2, args=3)
    takes(graph.ExecutableMemcpyNode.update, "node", dst=1, src=2, size=3)
    takes(graph.ExecutableMemsetNode.update, "node", dst=1, value=2, width=3)
    for kind in (graph.ExecutableKernelNode, graph.ExecutableMemcpyNode, graph.ExecutableMemsetNode):
        takes(kind.enable, "node")
        takes(kind.disable, "node")
    assert hasattr(graph.GraphNode, "pred") and hasattr(graph.Graph, "__getitem__")
    takes(core.launch, core.LEGACY_DEFAULT_STREAM, "config", "kernel", "argument", "argument")
    takes(core.ObjectCode.from_cubin, b"")
    takes(core.ObjectCode.get_kernel, "code", "phase0")
    takes(core.Device.set_current, "device")
    assert core.LaunchConfig(grid=3, block=64).block == (64, 1, 1)
    assert isinstance(core.LEGACY_DEFAULT_STREAM, core.Stream)


@needs_gxx
def test_without_the_option_launches_go_one_by_one(machine: Machine) -> None:
    plan = compiled(TWO_CHAINS)
    for graphs_wanted in (True, False, True):
        machine.device.graphs = graphs_wanted
        two_chains(machine, plan, 100, 2.0)
    assert machine.core.launches == 2 and machine.core.instantiations == 1
    assert machine.cupy.log == ["phase0"] * 4 + ["memset", "memcpy"]
