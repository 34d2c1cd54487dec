"""Kernels for Vitis HLS, compiled as C++ with processes as threads, give the interpreter's results."""

from dataclasses import replace

import numpy as np
import pytest

from dcarray.ir import interp
from dcarray.ir.parse import parse
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.hls.csim import Simulation, SimulationError
from dcarray.lowering.hls.processes import LANES
from dcarray.lowering.hls.streaming import compose
from dcarray.lowering.hls.vitis import emit
from tests.support.ir_regions import assert_agree, make_case
from tests.support.stencil_chains import stencil_chain

SUM = """region() {
  in A: f64[9, 11];  in B: f64[9, 11];  out s: f64[];  out r: f64[9];  out c: f64[11];  inout m: f32[9]
  s[] add= multiply(A[i,j], B[i,j]) init 0.0 for i<9, j<11
  r[i] add= A[i,j] init 1.5 for i<9, j<11
  c[j] maximum= B[i,j] init -inf for i<9, j<11
  m[i] multiply= cast:f32(A[i,j]) for i<9, j<11
}"""

TWICE = """region() {
  in A: f64[9];  in a0: f64[];  out B: f64[9];  temp s: f64[]
  s[] maximum= A[i] init -inf for i<9
  B[i] = multiply(A[i], subtract(s[], a0[])) for i<9
}"""


def inputs(region):
    rng = np.random.default_rng(1)
    return {
        a.name: (rng.integers(-9, 10, a.shape) * (0.37 if a.dtype.kind == "f" else 1)).astype(a.dtype)
        for a in region.arrays
        if a.role in ("in", "inout")
    }


@pytest.fixture(scope="module")
def stencils(tmp_path_factory):
    """Chains of stencils, sums, an array that two stages read, a chain with too small a FIFO: one program."""
    networks = [compose(stencil_chain(seed)) for seed in range(12)] + [
        compose(parse(SUM)),
        compose(parse(TWICE)),
    ]
    deadlocked = compose(stencil_chain(9, scale=2))
    stage = deadlocked.stages[0]
    deep = max(stage.fifos, key=lambda fifo: fifo.depth)
    fifos = tuple(replace(fifo, depth=1) if fifo is deep else fifo for fifo in stage.fifos)
    networks.append(replace(deadlocked, stages=(replace(stage, fifos=fifos),)))
    return Simulation(networks, tmp_path_factory.mktemp("stencils")), deep.name


def test_chains_of_stencils_and_sums(stencils):
    for number, network in enumerate(stencils[0].networks[:-1]):
        memory = inputs(network.region)
        got = stencils[0].run(number, memory)
        want = interp.run(network.region, {name: array.copy() for name, array in memory.items()})
        for name, array in want.items():
            rtol = 1e-6 if array.dtype.itemsize == 4 else 1e-13
            np.testing.assert_allclose(got[name], array, rtol=rtol, atol=1e-12, err_msg=f"{number} {name}")


def test_a_deadlock_is_reported_with_the_state_of_each_fifo(stencils):
    simulation, name = stencils
    number = len(simulation.networks) - 1
    with pytest.raises(SimulationError, match=f"waits to send to(.|\n)*fifo {name} holds 1 of 1"):
        simulation.run(number, inputs(simulation.networks[number].region))


def test_random_regions(tmp_path):
    cases, networks = [], []
    for seed in range(20):
        case = make_case(seed, control=False, calls=False, aliases=False, numpy_bits=False, dtypes="ddlli?fB")
        try:
            network = compose(case.region)
            emit(network, "kernel")
        except Unsupported:  # some operations on integers have no C, and inner values may be complex
            continue
        cases.append(case)
        networks.append(network)
    assert len(cases) > 10
    simulation = Simulation(networks, tmp_path)
    for number, case in enumerate(cases):
        got = simulation.run(number, case.memory())
        with np.errstate(all="ignore"):
            want = interp.run(case.region, case.memory())
        assert_agree(got, want, zero_signs=False, rtol=1e-6)


def test_a_sum_has_no_addition_that_the_next_one_waits_for():
    text = emit(compose(parse(SUM)), "sums")
    assert text.count(f"lane = (lane + 1) % {LANES};") == 3  # not for the maximum
    assert "not NumPy's order" in text
    assert text == emit(compose(parse(SUM)), "sums")
