"""Process networks of integers as circuits: cycle by cycle what the simulator does, of the size in the model;
``python -m conformance.fpga.verilog`` installs the tools."""

import numpy as np
import pytest
from process_cycles import simulate

from conformance.fpga.circuits import simulate_network as verilate
from conformance.fpga.verilog import VerilogError, installed, synthesise
from dcarray.ir import interp
from dcarray.ir.parse import parse
from dcarray.lowering.errors import Unsupported
from dcarray.lowering.hls.model.model import model
from dcarray.lowering.hls.network.compose import compose
from dcarray.lowering.hls.verilog.emit import emit
from tests.support.ir_regions import assert_agree, make_case
from tests.support.stencil_chains import memory_of, stencil_chain, with_one_fifo_too_small

tools = pytest.mark.skipif(not installed(), reason="Verilator and Yosys are not installed")

STENCIL = """region() {
  in A: i32[40, 64];  out B: i32[38, 62];  temp t: i32[38, 62]
  t[i,j] = add(A[i,j+1], multiply(A[i+2,j+1], A[i+1,j])) for i<38, j<62
  B[i,j] = subtract(t[i,j], A[i+1,j+1]) for i<38, j<62
}"""
PRODUCT = """region() {
  in A: i32[20, 30];  in x: i32[30];  out y: i32[20]
  y[i] add= multiply(A[i,j], x[j]) init i32(3) for i<20, j<30
}"""


def agrees(region, memory):
    """Results are the interpreter's, cycles the simulator's."""
    network = compose(region)
    with np.errstate(all="ignore"):
        want = interp.run(region, {name: array.copy() for name, array in memory.items()})
        cycles = simulate(network, memory).cycles
    got, counted = verilate(network, memory)
    assert_agree({name: got[name] for name in want}, want)
    assert counted == cycles


@tools
@pytest.mark.parametrize("text", [STENCIL, PRODUCT])
def test_results_and_cycles(text):
    region = parse(text)
    agrees(region, memory_of(region))


@tools
def test_chains_of_stencils():
    region = stencil_chain(12)
    agrees(region, memory_of(region))


@tools
@pytest.mark.parametrize("seed", [4, 16])
def test_random_regions(seed):
    case = make_case(seed, control=False, calls=False, aliases=False, numpy_bits=False, dtypes="lli?iB")
    agrees(case.region, case.memory())


@tools
def test_too_small_a_fifo_is_a_deadlock():
    region = parse(STENCIL)
    small, _ = with_one_fifo_too_small(compose(region))
    with pytest.raises(VerilogError, match="no process can go on after"):
        verilate(small, memory_of(region))


@tools
@pytest.mark.parametrize("text", [STENCIL, PRODUCT])
def test_the_model_counts_what_synthesis_finds(text):
    network = compose(parse(text))
    cells, cost = synthesise(emit(network, "circuit").text, "circuit"), model(network).cost
    assert (cells.dsp, cells.bram) == (cost.dsp, cost.bram)
    assert cells.lut / 2 < cost.lut < 2 * cells.lut and cells.ff / 2 < cost.ff < 2 * cells.ff


@pytest.mark.parametrize(("text", "message"), [
    ("region() { in A: f64[4];  out B: f64[4]\n B[i] = negative(A[i]) for i<4 }", "A is float64"),
    ("region() { in A: i64[4];  out B: i64[4]\n B[i] = gcd(A[i], 6) for i<4 }", "gcd of int64"),
    (
        "region() { in A: i64[4];  out B: bool[4]\n B[i] = less(cast:f64(A[i]), 0.5) for i<4 }",
        "not with float64",
    ),
])  # fmt: skip
def test_what_has_no_circuit_is_an_error_that_names_it(text, message):
    with pytest.raises(Unsupported, match=message):
        emit(compose(parse(text)), "circuit")


def test_the_text_is_deterministic():
    network = compose(parse(STENCIL))
    assert emit(network, "circuit") == emit(network, "circuit")
