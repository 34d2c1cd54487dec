"""Loops, branches, scans and products of matrices as processes that work in memory, one statement after the
other."""

import numpy as np
import pytest
from process_cycles import simulate

from dcarray.ir import interp
from dcarray.ir.parse import parse
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.hls.kernels.sequential import needs_scratch
from dcarray.lowering.hls.model.model import model
from dcarray.lowering.hls.network.compose import compose
from dcarray.lowering.hls.network.nodes import Sequential
from dcarray.lowering.hls.network.text import dump
from dcarray.lowering.hls.simulation.csim import INTEL, VITIS, Simulation
from tests.support.ir_regions import assert_agree, make_case
from tests.support.stencil_chains import memory_of

HAND = {
    "triangle": """region() {
      inout A: f64[7, 7];  temp t: f64[]
      for p in range(0, 7, 1) {
        for q in range(0, p, 1) {
          t[] add= multiply(A[p,i], A[q,i]) init 0.0 for i<q
          A[p,q] = divide(subtract(A[p,q], t[]), add(multiply(A[q,q], A[q,q]), 1.0))
        }
      }
    }""",
    "condition": """region() {
      in A: f64[9];  out n: f64[];  out B: f64[9]
      n[] = 1.0
      while less(n[], 50.0) {
        n[] = multiply(n[], 3.0)
        if less(n[], 20.0) {
          B[i] = multiply(A[i], n[]) for i<9
        } else {
          B[i] = B[-i+8] for i<9
        }
      }
    }""",
    "shifted": """region() {
      inout A: f64[9, 5]
      for p in range(4, 0, -1) {
        A[i+1,j] = add(A[i,j], A[i,0]) for i<8, j<5
        A[p,j] add= A[j,i] for i<4, j<5
      }
    }""",
    "scans": """region() {
      in A: f64[6, 4];  out P: f64[6, 4];  out Q: f64[6, 4]
      P[i,j] scan j add= multiply(A[i,j], A[i,j]) init 0.0 for i<6, j<4
      Q[i,j] scan i maximum= P[i,j] init -inf for i<6, j<4
    }""",
}
NETWORKS = {name: compose(parse(text)) for name, text in HAND.items()}


def _random(seeds):
    found = []
    for seed in seeds:
        case = make_case(seed, control=True, calls=True, aliases=False, numpy_bits=False, dtypes="ddlli?fB")
        try:
            network = compose(case.region)
            for language in (VITIS, INTEL):
                language.kernel(network, "kernel")
        except Unsupported:  # some operations on integers have no C, and inner values may be complex
            continue
        if any(isinstance(one, Sequential) for stage in network.stages for one in stage.processes):
            found.append((case, network))
    return found


CASES = _random(range(48))


@pytest.mark.parametrize("language", [VITIS, INTEL], ids=["vitis", "intel"])
def test_random_loops_branches_and_calls(language, tmp_path):
    assert len(CASES) > 5
    networks = [*(network for _, network in CASES), *NETWORKS.values()]
    simulation = Simulation(networks, tmp_path, language)
    for number, (case, _) in enumerate(CASES):
        got = simulation.run(number, case.memory())
        with np.errstate(all="ignore"):
            want = interp.run(case.region, case.memory())
        assert_agree(got, want, zero_signs=False, rtol=1e-6)
    for number, network in enumerate(NETWORKS.values(), len(CASES)):
        memory = memory_of(network.region)
        want = interp.run(network.region, {name: array.copy() for name, array in memory.items()})
        for name, array in simulation.run(number, memory, times=2).items():
            np.testing.assert_allclose(array, want[name], rtol=1e-12, err_msg=dump(network))


def test_the_simulator_runs_them():
    for case, network in CASES:
        with np.errstate(all="ignore"):
            want = interp.run(case.region, case.memory())
            got = simulate(network, case.memory())
        assert_agree(got.arrays, want, zero_signs=False, rtol=1e-6)


def test_the_model_has_a_cycle_for_each_point():
    network = NETWORKS["triangle"]
    memory = memory_of(network.region)
    assert model(network).cycles == sum(simulate(network, memory).cycles)


def test_what_other_points_still_read_is_computed_first():
    (loop,) = parse(HAND["shifted"]).body
    assert [needs_scratch(stmt) for stmt in loop.body] == [True, True]
    (loop,) = parse(HAND["triangle"]).body
    assert [needs_scratch(stmt) for stmt in loop.body[0].body] == [False, False]
    text = VITIS.kernel(NETWORKS["shifted"], "kernel")
    assert text.count("other points of the statement read what it writes") == 2


def test_sums_have_accumulators_in_turn():
    for language in (VITIS, INTEL):
        text = language.kernel(NETWORKS["triangle"], "kernel")
        assert "acc[0][lane] = (acc[0][lane] + " in text and "lane = (lane + 1) % 16;" in text
