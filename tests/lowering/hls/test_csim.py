"""Kernels of both vendors, compiled as C++ with processes as coroutines, give the interpreter's results."""

import numpy as np
import pytest

from dcarray.ir import interp
from dcarray.ir.parse import parse
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.hls.network.compose import compose
from dcarray.lowering.hls.simulation.csim import INTEL, VITIS, Simulation, SimulationError
from tests.support.fold_regions import SUMS, TWICE
from tests.support.ir_regions import assert_agree, make_case
from tests.support.stencil_chains import memory_of, stencil_chain, with_one_fifo_too_small


@pytest.fixture(scope="module", params=[VITIS, INTEL], ids=["vitis", "intel"])
def stencils(request, tmp_path_factory):
    """Chains of stencils, sums, an array that two stages read, a chain with too small a FIFO: one program."""
    networks = [compose(stencil_chain(seed)) for seed in range(12)] + [
        compose(parse(SUMS)),
        compose(parse(TWICE)),
    ]
    deadlocked, deep = with_one_fifo_too_small(compose(stencil_chain(9, scale=2)))
    networks.append(deadlocked)
    return Simulation(networks, tmp_path_factory.mktemp("stencils"), request.param), deep


def test_chains_of_stencils_and_sums(stencils):
    for number, network in enumerate(stencils[0].networks[:-1]):
        memory = memory_of(network.region)
        got = stencils[0].run(number, memory)
        want = interp.run(network.region, {name: array.copy() for name, array in memory.items()})
        for name, array in want.items():
            rtol = 1e-6 if array.dtype.itemsize == 4 else 1e-13
            np.testing.assert_allclose(got[name], array, rtol=rtol, atol=1e-12, err_msg=f"{number} {name}")


def test_a_deadlock_is_reported_with_the_state_of_each_fifo(stencils):
    simulation, name = stencils
    number = len(simulation.networks) - 1
    with pytest.raises(SimulationError, match=rf"waits to send to(.|\n)*fifo \w*{name} holds 1 of 1"):
        simulation.run(number, memory_of(simulation.networks[number].region))


def test_kernels_can_run_again(stencils):
    """Autorun kernels begin again in the state of their first time, and no FIFO has an element left."""
    simulation = stencils[0]
    for number in (1, 12, 13):
        memory = memory_of(simulation.networks[number].region)
        once = simulation.run(number, memory)
        for name, array in simulation.run(number, memory, times=3).items():
            np.testing.assert_array_equal(array, once[name])


@pytest.mark.parametrize("language", [VITIS, INTEL], ids=["vitis", "intel"])
def test_random_regions(language, tmp_path):
    cases, networks = [], []
    for seed in range(20):
        case = make_case(seed, control=False, calls=False, aliases=False, numpy_bits=False, dtypes="ddlli?fB")
        try:
            network = compose(case.region)
            language.kernel(network, "kernel")
        except Unsupported:  # some operations on integers have no C, and inner values may be complex
            continue
        cases.append(case)
        networks.append(network)
    assert len(cases) > 10
    simulation = Simulation(networks, tmp_path, language)
    for number, case in enumerate(cases):
        got = simulation.run(number, case.memory())
        with np.errstate(all="ignore"):
            want = interp.run(case.region, case.memory())
        assert_agree(got, want, zero_signs=False, rtol=1e-6)
