"""Arrays on a CUDA device that is made up: their operations run as graphs, and are explained as such."""

import numpy as np
import pytest
from cuda_runs import Machine, machine, needs_gxx

import dcarray as dc
from dcarray.inspect.drawing import draw
from dcarray.inspect.launch_graphs import view_graphs
from dcarray.ir.parse import parse
from dcarray.lowering.compilation import compile_region
from dcarray.lowering.gpu import devices as table

__all__ = ["machine"]
pytestmark = needs_gxx


@pytest.fixture(autouse=True)
def compiled_at_once(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(table._found, "cuda", [machine.device])
    with dc.options(jit="eager", eager_below=0, cache_dir=""):
        yield


def step(x):
    t = x * 2 + 1
    u = np.sqrt(x)
    return (t[1:] - t[:-1]).sum(axis=0), u @ u, np.exp(u).sum(axis=1), np.zeros_like(x)


def test_functions_of_arrays_have_numpys_results(machine: Machine) -> None:
    for n in (40, 40, 41):
        a = np.random.default_rng(n).random((n, n))
        got = step(dc.asarray(a, device="cuda:0"))
        for one, want in zip(got, step(a), strict=True):
            assert one.device == "cuda:0"
            np.testing.assert_allclose(np.asarray(one), want, rtol=1e-13)
    assert machine.core.launches == 3 and machine.cupy.log.count("matmul") == 3


def test_a_loop_is_one_graph_that_is_updated(machine: Machine) -> None:
    a = np.random.default_rng(1).random((30, 30))
    x, want = dc.asarray(a, device="cuda:0"), a.copy()
    other, want_other = dc.zeros((30, 30), device="cuda:0"), np.zeros((30, 30))
    for turn in range(12):
        x[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
        other[1:, :] = x[:-1, :] * float(turn)
        dc.evaluate(x, other)
        want[1:-1, 1:-1] = 0.25 * (want[:-2, 1:-1] + want[2:, 1:-1] + want[1:-1, :-2] + want[1:-1, 2:])
        want_other[1:, :] = want[:-1, :] * float(turn)
    np.testing.assert_array_equal(np.asarray(x), want)
    np.testing.assert_array_equal(np.asarray(other), want_other)
    assert machine.core.launches >= 10 and machine.core.instantiations <= 2 and not machine.cupy.log


def test_an_explanation_draws_the_graph(machine: Machine) -> None:
    x = dc.asarray(np.random.default_rng(1).random((40, 40)), device="cuda:0")
    shown = dc.explain(step, x)
    (graph,) = (graph for view in shown.regions for graph in view.graphs)
    assert graph.kinds == ("kernel", "kernel")
    assert all(k < j for j, before in enumerate(graph.before) for k in before)
    text = str(shown)
    assert graph.title in text and "dcarray.lowering.gpu.cuda.libraries:matmul" in text
    for line in graph.lines():
        assert line in text
    assert "Graph 1" in shown.svg() and shown.svg().count("<svg") == 1


def test_the_lines_of_a_graph_say_what_waits_for_what(machine: Machine) -> None:
    def chains(x):
        t, u = x[::-1] * 2, x[::-1] * 3
        o, p = t[::-1] + t, u[::-1] * u
        return o[::-1] - p

    x = dc.asarray(np.arange(1000.0), device="cuda:0")
    shown = dc.explain(chains, x)
    graphs = [graph for view in shown.regions for graph in view.graphs]
    for graph in graphs:
        waiting = [line for line in graph.lines()[1:] if "after" in line]
        assert len(waiting) == sum(map(bool, graph.before))
    np.testing.assert_array_equal(np.asarray(chains(x)), chains(np.arange(1000.0)))


def test_the_text_and_the_drawing_of_a_plan() -> None:
    text = """region() {
      in a: f64[100];  temp t: f64[100];  temp u: f64[100]
      out o: f64[100];  out p: f64[100];  out z: f64[100]
      t[i] = add(a[i], 1.0) for i<100
      u[i] = sqrt(a[i]) for i<100
      o[i] = multiply(t[i], t[99-i]) for i<100
      p[i] = multiply(u[i], u[99-i]) for i<100
      z[i] = 0.0 for i<100
      z[i+1] = p[i] for i<2
    }"""
    (graph,) = view_graphs(compile_region(parse(text), "cuda"), "cuda", {"a": "x"})
    assert [" ".join(line.split()) for line in graph.lines()] == [
        "graph 1: 6 nodes, 4 edges, 2 temporaries of 1.6 kB at most",
        "1 kernel t[i] = x[i] + 1.0 100",
        "2 kernel u[i] = sqrt(x[i]) 100",
        "3 kernel o[i] = t[i] * t[99-i] 100 after 1",
        "4 kernel p[i] = u[i] * u[99-i] 100 after 2",
        "5 fill z[i] = 0.0 100",
        "6 copy z[i+1] = p[i] 2 after 4, 5",
    ]
    drawn = graph.panel()
    assert set(drawn.edges) == {("n0", "n2"), ("n1", "n3"), ("n3", "n5"), ("n4", "n5")}
    assert draw([[drawn]]).count("<rect") >= 6


def test_the_processor_has_no_graphs() -> None:
    shown = dc.explain(lambda: dc.asarray(np.arange(1000.0)) * 2 + 1)
    assert all(not view.graphs for view in shown.regions)


def test_options_say_whether_there_are_graphs_and_how_much_memory_they_take(machine: Machine) -> None:
    def sums(x):
        return np.sqrt(x).sum(axis=0), np.exp(x).sum(axis=1)

    a = np.random.default_rng(1).random((40, 40))
    with dc.options(graphs=False):
        results = sums(dc.asarray(a, device="cuda:0"))
        np.asarray(results[0])
    assert machine.core.launches == 0 and machine.device.graph_memory is None
    with dc.options(graph_memory=4096):
        results = sums(dc.asarray(a, device="cuda:0"))
        np.asarray(results[0])
    assert machine.core.launches >= 1 and machine.device.graph_bound == 4096
    with pytest.raises(ValueError, match="graph_memory=-1: must be a number of bytes"):
        dc.options(graph_memory=-1).__enter__()


@pytest.mark.parametrize("kind", table.KINDS)
def test_the_target_of_a_device_is_no_target_of_the_processor(kind: str) -> None:
    with pytest.raises(ValueError, match=f"arrays with device='{kind}' have that of their device"):
        dc.options(target=kind).__enter__()
