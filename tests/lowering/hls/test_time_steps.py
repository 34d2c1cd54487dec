"""Time steps of a stencil as a chain of processing elements."""

import numpy as np
import pytest
from process_cycles import simulate

from dcarray.ir import interp
from dcarray.ir.parse import parse
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.hls.model.model import model
from dcarray.lowering.hls.network.compose import compose
from dcarray.lowering.hls.network.nodes import Work
from dcarray.lowering.hls.network.text import dump
from dcarray.lowering.hls.network.time_steps import MAX_STEPS, turns
from dcarray.lowering.hls.simulation.csim import INTEL, VITIS, Simulation
from dcarray.lowering.hls.verilog.emit import emit
from tests.support.stencil_chains import memory_of


def steps(count):
    return parse(f"""region() {{
      inout A: f64[9, 8];  inout B: f64[9, 8]
      for t in range(0, {count}, 1) {{
        B[i+1,j+1] = multiply(0.3, add(add(A[i,j+1], A[i+2,j+1]), A[i+1,j])) for i<7, j<6
        A[i+1,j+1] = multiply(0.3, add(B[i,j+1], B[i+1,j+2])) for i<7, j<6
      }}
    }}""")


NETWORKS = [compose(steps(count)) for count in (0, 1, 3, 8)]


def check(network, got):
    memory = memory_of(network.region)
    want = interp.run(network.region, {name: array.copy() for name, array in memory.items()})
    for name, array in want.items():
        np.testing.assert_allclose(got[name], array, rtol=1e-12)


def test_each_step_has_processes_in_one_stage():
    for network, count in zip(NETWORKS[1:], (1, 3, 8), strict=True):
        (stage,) = network.stages
        assert sum(isinstance(one, Work) for one in stage.processes) == 2 * count


@pytest.mark.parametrize("count", [17, 24, 33, 50])
def test_long_loops_run_a_chain_several_times(count):
    """Some steps of their own, a copy of what the chain keeps, the chain, and a copy back."""
    alone, length, times = turns(count, MAX_STEPS)
    assert alone + length * times == count and 8 <= length <= MAX_STEPS
    network = compose(steps(count))
    (repeat,) = network.repeats
    assert repeat.times == times and {buffer.array for buffer in repeat.state} == {"A", "B"}
    assert f"run {times} times" in dump(network)
    works = [one for stage in network.stages for one in stage.processes if isinstance(one, Work)]
    assert len(works) == 2 * (alone + length)
    memory = memory_of(network.region)
    found = simulate(network, memory)
    check(network, found.arrays)
    counted, said = sum(found.cycles), model(network)
    assert 0.85 * counted <= said.cycles <= counted
    assert said.bytes_read + said.bytes_written > 4 * times * 9 * 8 * 8


def test_fewer_steps_than_a_chain_could_have():
    network = compose(steps(24), steps=5)
    assert [one.times for one in network.repeats] == [6]
    check(network, simulate(network, memory_of(network.region)).arrays)


TWO_LOOPS = """region() {
  inout A: f64[6, 16];  inout C: f64[6, 16];  out t: f64[6, 16];  out s: f64[]
  for t0 in range(0, 20, 1) {
    t[i,j] = multiply(A[i,j], 0.5) for i<6, j<16
    A[i+1,j] = add(t[i,j], t[i+2,j]) for i<4, j<16
  }
  C[i,j] = add(C[i,j], A[i,j]) for i<6, j<16
  for t1 in range(0, 18, 1) {
    C[i,j+1] = subtract(C[i,j], A[i,j+2]) for i<6, j<14
  }
  s[] add= C[i,j] init 0.0 for i<6, j<16
}"""


def test_two_loops_and_what_is_between_them():
    """What each turn writes anew is not kept; the chain's streams are as wide as others."""
    network = compose(parse(TWO_LOOPS), width=8)
    assert [[buffer.array for buffer in one.state] for one in network.repeats] == [["A"], ["C"]]
    assert max(fifo.width for stage in network.stages for fifo in stage.fifos) == 8
    check(network, simulate(network, memory_of(network.region)).arrays)
    with pytest.raises(Unsupported, match="run once"):
        emit(compose(parse(INTEGERS)), "k")


INTEGERS = """region() {
  inout A: i32[40]
  for t in range(0, 20, 1) { A[i+1] = add(A[i], A[i+2]) for i<38 }
}"""


@pytest.mark.parametrize("language", [VITIS, INTEL], ids=["vitis", "intel"])
def test_results(language, tmp_path):
    networks = [*NETWORKS, compose(steps(33)), compose(parse(TWO_LOOPS), width=4), compose(parse(INTEGERS))]
    simulation = Simulation(networks, tmp_path, language)
    for number, network in enumerate(networks):
        for times in (1, 2):
            check(network, simulation.run(number, memory_of(network.region), times))


def test_the_chain_takes_little_more_time_than_a_step():
    cycles = []
    for network in NETWORKS[1:]:
        found = simulate(network, memory_of(network.region))
        check(network, found.arrays)
        cycles.append(found.cycles[0])
    assert cycles[-1] < 4 * cycles[0]
