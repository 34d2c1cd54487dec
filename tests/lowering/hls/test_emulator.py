"""Kernels in OpenCL on Intel's FPGA emulator; ``python -m conformance.fpga.emulator`` installs it."""

import numpy as np
import pytest

from conformance.fpga.circuits import emulate_network as emulate
from conformance.fpga.emulator import EmulatorError, installed
from dcarray.ir import interp
from dcarray.ir.parse import parse
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.hls.network.compose import compose
from tests.support.fold_regions import SUMS, TWICE
from tests.support.ir_regions import assert_agree, make_case
from tests.support.stencil_chains import memory_of, stencil_chain, with_one_fifo_too_small

pytestmark = pytest.mark.skipif(not installed(), reason="Intel's FPGA emulator is not installed")

TWO_WAYS = """region() {
  in A: i32[6, 8];  out B: i32[4, 6];  temp t: i32[4, 6]
  t[i,j] = add(A[i,j+1], A[i+2,j+1]) for i<4, j<6
  B[i,j] = subtract(t[i,j], A[i+1,j+1]) for i<4, j<6
}"""


@pytest.mark.parametrize("number", range(6))
def test_chains_of_stencils_and_sums_on_the_emulator(number):
    """The smaller networks with channels that are just as deep as declared."""
    region = {4: parse(SUMS), 5: parse(TWICE)}.get(number) or stencil_chain(number)
    network = compose(region)
    memory = memory_of(region)
    small = sum(len(stage.processes) for stage in network.stages) <= 5
    got = emulate(network, memory, strict=small, times=2)
    want = interp.run(region, {name: array.copy() for name, array in memory.items()})
    for name, array in want.items():
        rtol = 1e-6 if array.dtype.itemsize == 4 else 1e-13
        np.testing.assert_allclose(got[name], array, rtol=rtol, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("number", range(4))
def test_streams_of_vectors_on_the_emulator(number):
    region = stencil_chain(number, width=4)
    network = compose(region, width=4)
    memory = memory_of(region)
    got = emulate(network, memory, times=2)
    for name, array in interp.run(region, {name: a.copy() for name, a in memory.items()}).items():
        np.testing.assert_array_equal(got[name], array, err_msg=name)


def test_random_regions_on_the_emulator():
    done = 0
    for seed in range(16):
        case = make_case(seed, control=False, calls=False, aliases=False, numpy_bits=False, dtypes="ddlli?fB")
        try:
            network = compose(case.region)
            got = emulate(network, case.memory())
        except Unsupported:
            continue
        with np.errstate(all="ignore"):
            want = interp.run(case.region, case.memory())
        assert_agree({name: got[name] for name in want}, want, zero_signs=False, rtol=1e-6)
        done += 1
    assert done > 8


def test_too_small_a_channel_is_a_deadlock_on_the_emulator():
    network = compose(parse(TWO_WAYS))
    small, _ = with_one_fifo_too_small(network)
    memory = memory_of(network.region)
    emulate(network, memory, strict=True)
    with pytest.raises(EmulatorError, match="no end after"):
        emulate(small, memory, strict=True, timeout=6)
