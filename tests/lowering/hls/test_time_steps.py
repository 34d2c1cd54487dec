"""Time steps of a stencil as a chain of processing elements."""

import numpy as np
import pytest

from dcarray.ir import interp
from dcarray.ir.parse import parse
from dcarray.lowering.hls.network.compose import compose
from dcarray.lowering.hls.network.nodes import Sequential, Work
from dcarray.lowering.hls.simulation.csim import INTEL, VITIS, Simulation
from dcarray.lowering.hls.simulation.cycles import Deadlock, simulate
from tests.support.stencil_chains import memory_of, with_depth


def steps(count):
    return parse(f"""region() {{
      inout A: f64[9, 8];  inout B: f64[9, 8]
      for t in range(0, {count}, 1) {{
        B[i+1,j+1] = add(add(A[i,j+1], A[i+2,j+1]), multiply(A[i+1,j], A[i+1,j+2])) for i<7, j<6
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
    (stage,) = compose(steps(17)).stages
    assert any(isinstance(one, Sequential) for one in stage.processes)


@pytest.mark.parametrize("language", [VITIS, INTEL], ids=["vitis", "intel"])
def test_results(language, tmp_path):
    simulation = Simulation(NETWORKS, tmp_path, language)
    for number, network in enumerate(NETWORKS):
        check(network, simulation.run(number, memory_of(network.region)))


def test_the_chain_takes_little_more_time_than_a_step():
    cycles = []
    for network in NETWORKS[1:]:
        found = simulate(network, memory_of(network.region))
        check(network, found.arrays)
        cycles.append(found.cycles[0])
    assert cycles[-1] < 4 * cycles[0]


def test_half_of_the_deepest_fifo_is_a_deadlock_or_a_wait():
    network = NETWORKS[2]
    memory = memory_of(network.region)
    deep = max(network.stages[0].fifos, key=lambda fifo: fifo.depth)
    try:
        found = simulate(with_depth(network, deep.name, deep.depth // 2), memory)
    except Deadlock:
        return
    assert found.cycles > simulate(network, memory).cycles
